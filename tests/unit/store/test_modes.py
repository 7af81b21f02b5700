"""Messages, tables and names are for the user who runs the broker: whatever is made is closed to all others."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide.store.disk_os import OsDisk
from bolide.store.index_file import IndexSizes
from bolide.store.tables import TopicTable
from tests.unit.store.stage import HeldClock, make_durable, opened, put_many

INDEX = IndexSizes(slots=50, entries=200)


@pytest.fixture
def open_house() -> Iterator[None]:
    """A umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root.parent)): stat.filemode(path.lstat().st_mode)
        for path in [root, *root.rglob("*")]
    }


@pytest.mark.usefixtures("open_house")
def test_everything_that_a_store_makes_is_private(tmp_path: Path) -> None:
    root = tmp_path / "made" / "for" / "it"
    store = opened(root, index=INDEX)
    put_many(store, 60)
    put_many(store, 5, "Orders")
    table = TopicTable(OsDisk(), str(root / "config" / "topics.json"), HeldClock())
    for _ in range(2):
        table.touch()
        table.persist()
    make_durable(store)
    store.delete_topic("T")
    store.queues.trash.settle()
    while_open = modes(tmp_path / "made")
    store.close()
    for path, mode in (while_open | modes(tmp_path / "made")).items():
        assert mode in ("-rw-------", "drwx------"), f"{path} has the mode {mode}"
    for part in (
        "commitlog",
        "consumequeue",
        "index",
        "deleted",
        "deletions",
        "checkpoint",
        "topics.json.bak",
    ):
        assert any(part in path for path in while_open), part


def test_the_umask_takes_away_more_and_what_was_there_keeps_its_mode(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "lock").chmod(0o644)
    before = os.umask(0o277)
    try:
        OsDisk().create(str(tmp_path / "new"), 1, reserve=False).close()
    finally:
        os.umask(before)
    opened(tmp_path).close()
    assert modes(tmp_path)[f"{tmp_path.name}/lock"] == "-rw-r--r--"
    assert modes(tmp_path)[f"{tmp_path.name}/new"] == "-r--------"
