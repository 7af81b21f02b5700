"""Memory that was freed serves again without the kernel."""

import platform
import subprocess
import sys

import pytest

BLOCKS = 50
BLOCK_BYTES = 4 * 1024 * 1024
PAGE_BYTES = 4096

PROGRAM = f"""
import resource, sys
from bolide.net.freed_memory import keep_freed_memory
if sys.argv[1:]:
    assert keep_freed_memory(int(sys.argv[1]))

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def come_and_go():
    several = [bytes([1]) * {BLOCK_BYTES} for _ in range(4)]  # at once: more than the library learns
    del several

come_and_go()
before = faults()
for _ in range({BLOCKS}):
    come_and_go()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have other rules")
def test_blocks_of_megabytes_that_come_and_go_cost_their_pages_once() -> None:
    def faults(*words: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *words], check=True, capture_output=True, text=True
        )
        return int(done.stdout)

    pages = 4 * BLOCKS * BLOCK_BYTES // PAGE_BYTES
    assert faults(str(64 * 1024 * 1024)) < pages // 20
