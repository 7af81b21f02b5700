"""A stream into a Delta table that may kill itself, for tests.  Not a test.

    delta_run.py FOLDER STEP COUNT

Reads FOLDER/in file by file and writes FOLDER/table.  Before the step has come so often, the driver and its JVM are
killed; a step that never comes lets it end.
"""

import os
import signal
import sys
from pathlib import Path

from bolide.net.clock import SystemClock
from bolide.pipeline.declared.delta_sink import DeltaSink
from bolide.pipeline.session import local_session


def main(folder: Path, deadly: str, count: int) -> None:
    spark = local_session("delta", master="local[2]")
    java = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    left = count

    def before(step: str) -> None:
        nonlocal left
        left -= step == deadly
        if left == 0:
            for process in (java, os.getpid()):
                os.kill(process, signal.SIGKILL)

    sink = DeltaSink(folder / "table", SystemClock().now_ms, ["city"], before)
    rows = spark.readStream.schema("id long, city string").option("maxFilesPerTrigger", 1)
    writer = rows.json(str(folder / "in")).writeStream.foreachBatch(sink.batch)
    writer = writer.option("checkpointLocation", str(folder / "cp"))
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
