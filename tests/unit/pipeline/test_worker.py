"""What a worker of Spark is told when it reads for the first time."""

import subprocess
import sys

PROGRAM = """
import gc
from bolide.pipeline.worker import settle_worker

assert gc.get_freeze_count() == 0
settle_worker()
settled = gc.get_freeze_count()
later = [[number] for number in range(1000)]
settle_worker()
print(settled > 1000, gc.get_freeze_count() == settled)
"""


def test_what_is_there_at_the_first_read_is_no_garbage_to_look_for_and_what_comes_later_is() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "True"]
