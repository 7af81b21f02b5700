"""Rows that no write takes: brokers store what our clients do not send, such as a tag with blanks.

A number of a queue that a topic does not have is not one of them: that depends on the topic.  Needs pyarrow
and no Spark.
"""

from collections.abc import Collection, Iterator

import pyarrow as pa

from bolide.arrow.frames import frames_of
from bolide.arrow.row_columns import cut
from bolide.arrow.rows import RowEncoder
from bolide.model.errors import BadRow


def refused(batch: pa.RecordBatch, topic: str | None = None) -> dict[int, str]:
    """Those of a batch, each with the reason; the others can be written together."""
    batch = batch.select([name for name in batch.schema.names if name != "queue_id"])
    return dict(_refused(batch, topic, 0))


def _refused(batch: pa.RecordBatch, topic: str | None, first: int) -> Iterator[tuple[int, str]]:
    """Those of a part of a batch, which begins at the row `first`.

    Around a row that no write takes the part is halved, so that the others are not encoded one by one.
    """
    why = _why_not(batch, topic)
    if why is None:
        return
    if batch.num_rows == 1:
        yield first, why
        return
    half = batch.num_rows // 2
    yield from _refused(batch.slice(0, half), topic, first)
    yield from _refused(batch.slice(half), topic, first + half)


def without(batch: pa.RecordBatch, rows: Collection[int]) -> pa.RecordBatch:
    """The batch, but for some of its rows."""
    return batch.filter(pa.array([row not in rows for row in range(batch.num_rows)])) if rows else batch


def _why_not(batch: pa.RecordBatch, topic: str | None) -> str | None:
    try:
        for rows in cut(batch, topic):
            frames_of(rows, RowEncoder("0" * 16))
    except BadRow as error:
        return f"its {error.column} {error.why}"
    return None
