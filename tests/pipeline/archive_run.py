"""An archive run that kills itself, for tests.  Not a test.

    archive_run.py NAMESERVER TOPIC PLACE STEP COUNT

Before the step has come so often, the driver and its JVM are killed.
"""

import os
import signal
import sys

from bolide.net.clock import SystemClock
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.archive.place import open_or_make
from bolide.pipeline.archive.run import run_archive
from bolide.pipeline.archive.wanted import Wanted
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.session import local_session


def main(nameserver: str, topic: str, folder: str, deadly: str, count: str) -> None:
    spark = local_session("archive", master="local[2]")
    java = spark._jvm.java.lang.ProcessHandle.current().pid()  # type: ignore[union-attr]
    left = int(count)

    def before(step: str) -> None:
        nonlocal left
        left -= step == deadly
        if left == 0:
            for process in (java, os.getpid()):
                os.kill(process, signal.SIGKILL)

    place = open_or_make(folder)
    wanted = Wanted([topic], ClusterAccess(nameserver), "1 second", once=True, batch_bytes=2000)
    kept = Checkpoint(str(place.folder / "checkpoint"))
    run_archive(spark, place, kept, wanted, now_ms=SystemClock().now_ms, before=before)


if __name__ == "__main__":
    main(*sys.argv[1:])
