"""A store directory from outside: how many files are open at a time, and what is forgotten with them."""

import os
from pathlib import Path

import pytest

from bolide.offline import open_files
from bolide.offline.files import StoreFiles
from bolide.store.disk_os import OsDisk
from tests.unit.store.stage import message, opened, put

QUEUES = 60


def test_many_queues_do_not_keep_their_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_files, "OPEN_FILES_MAX", 4)
    store = opened(tmp_path)
    for queue_id in range(QUEUES):
        put(store, message(queue_id=queue_id))
    store.close()
    found = StoreFiles(OsDisk(), str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    try:
        assert [queue.end() for queue in found.queues.values()] == [1] * QUEUES
        assert len(os.listdir("/proc/self/fd")) - before <= 2 * 4  # a mapping has a descriptor of its own
    finally:
        found.close()
    assert len(os.listdir("/proc/self/fd")) == before
