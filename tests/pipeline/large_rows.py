"""Messages of the largest size into an archive, compacted and read again, in little memory.  Not a test.

    large_rows.py PLACE MEMORY ROWS [SETTING=VALUE...]

Spark makes the rows itself; settings that are given win over those that `bolide pipeline archive` and `audit` use.
"""

import sys

from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from bolide.model.errors import BolideError
from bolide.model.limit import MIB
from bolide.pipeline.archive.compact import compact
from bolide.pipeline.archive.measure import measured_queues
from bolide.pipeline.archive.place import open_or_make
from bolide.pipeline.archive.read import archived
from bolide.pipeline.archive.write import Archive
from bolide.pipeline.schema import native_schema
from bolide.pipeline.session import MEMORY, for_messages, session_for

DAY_MS = 86_400_000
MASTER = "local[1]"
BODY = f"cast(repeat(sha2(cast(id as string), 512), {4 * MIB // 128}) as binary)"
"""4 MiB, which pack well: files are small, and what they are unpacked to is not."""

COLUMNS = {
    "topic": "'large'",
    "brokerName": "'broker-a'",
    "queueId": "0",
    "queueOffset": "id",
    "body": BODY,
    "storeTimestamp": "timestamp_millis(id)",
}


def main(folder: str, memory: str, rows: int, *given: str) -> None:
    settings = {**for_messages(MASTER), MEMORY: memory, **dict(one.split("=", 1) for one in given)}
    with session_for("large rows", master=MASTER, settings=settings) as spark:
        columns = [
            F.expr(COLUMNS.get(one.name, "null")).cast(one.dataType).alias(one.name)
            for one in native_schema()
        ]
        archive = Archive(open_or_make(folder), lambda: 2 * DAY_MS)
        archive.recover()
        for begin in (0, rows):
            archive.append(spark.range(begin, begin + rows, 1, 1).select(*columns))
        done = compact(spark, archive, target_bytes=16 * MIB)
        (found,) = measured_queues(archived(spark, folder)).values()
        sys.stdout.write(f"{found.rows} rows, {done.files_before} files became {done.files_after}\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
    except BolideError as error:
        sys.exit(f"{type(error).__name__}: {error}")
