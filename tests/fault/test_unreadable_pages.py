"""Mapped files with pages that cannot be had: the tools for a store without a broker never die of a bus error."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fault.test_full_disk import BOLIDE, MIB, SECONDS_MAX, can_mount
from tests.unit.store.stage import opened, put_many

QUEUE_FILE_BYTES = 100 * 4096 * 5  # a hundred thousand entries: nearly all of the file is a hole

COMMANDS = {
    "inspect": "300",
    "verify": "sound: 300 records",
    "repair": "the store is sound",
    "export": '"queueOffset":299',
}
CUT_WHILE_READ = """
import os, sys
from bolide.offline.verify import verify
from bolide.store.disk_os import OsDisk

verify(OsDisk(), sys.argv[1], progress=lambda done: os.truncate(sys.argv[2], 0))
"""
CUT_BEHIND_ITS_BACK = """
import mmap, os, sys
from bolide.offline.faults import forget, watch

def mapped(name):
    with open(os.path.join(sys.argv[1], name), "w+b") as file:
        file.truncate(8192)
        return memoryview(mmap.mmap(file.fileno(), 8192, access=mmap.ACCESS_READ))

ours, foreign = mapped("ours"), mapped("foreign")
watched = watch(ours)
if sys.argv[2] == "forgotten":
    forget(watched)
os.truncate(os.path.join(sys.argv[1], "foreign"), 0)
foreign[0]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store whose queue files are sparse."""
    root = tmp_path / "store"
    store = opened(root, segment_bytes=MIB, queue_file_bytes=QUEUE_FILE_BYTES)
    put_many(store, 300)
    store.close()
    return root


@pytest.mark.parametrize("command", COMMANDS)
def test_a_store_on_a_full_tmpfs_is_read_as_any_other(command: str, root: Path, tmp_path: Path) -> None:
    """There a page of memory is taken for every hole that is looked at; when none is left, that is a bus error."""
    if not can_mount():
        pytest.skip("needs a mount namespace (unshare --mount): run as root or allow user namespaces")
    disk = tmp_path / "disk"
    disk.mkdir()
    script = (
        f"mount -t tmpfs -o size=4m tmpfs {disk} && cp -a --sparse=always {root} {disk}"
        f" && ! head -c {8 * MIB} /dev/urandom 2>/dev/null >{disk}/ballast"
        f" && exec {BOLIDE} store {command} {disk}/store"
    )
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done
    assert COMMANDS[command] in done.stdout + done.stderr


def test_a_file_that_is_cut_while_it_is_read_is_named(root: Path) -> None:
    (segment,) = (root / "commitlog").iterdir()
    done = python(CUT_WHILE_READ, str(root), str(segment))
    assert done.stderr.splitlines()[-1].endswith(f"StoreError: {segment} was cut short while it was read"), (
        done
    )


@pytest.mark.parametrize("ours", ["watched", "forgotten"])
def test_a_bus_error_of_anybody_else_is_one_as_before(ours: str, tmp_path: Path) -> None:
    assert python(CUT_BEHIND_ITS_BACK, str(tmp_path), ours).returncode == -signal.SIGBUS


def python(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
