"""bulkWrites.json: what a table of bulk writers may take, and that all of it is read again."""

from pathlib import Path

import pytest

from bolide.store.disk_os import OsDisk
from bolide.store.tables import WriteTable, writes
from bolide.store.tables.writes import BatchBegun
from tests.unit.store.test_tables_rules import TickingClock

ROOM = 64 * 1024


@pytest.fixture
def table(tmp_path: Path) -> WriteTable:
    return WriteTable(OsDisk(), str(tmp_path / "bulkWrites.json"), TickingClock())


def begun(batch: int, names: int = 1) -> BatchBegun:
    return BatchBegun(batch, 4096, frozenset(f"broker-{number}-\u00fc\x01" for number in range(names)))


def test_writers_whose_batch_began_longest_ago_make_room_for_others(
    table: WriteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "WRITERS_BYTES_MAX", ROOM)
    for number in range(100):
        table.put(f"q{number}", begun(0, names=50))
        assert table.bytes_kept <= ROOM
    assert table.get("q0") is None
    assert table.get("q99") == begun(0, names=50)
    for batch in range(100):
        table.put("q99", begun(batch, names=100))
    assert table.get("q98") is not None, "a writer's own batches follow each other, and do not add up"


def test_what_is_counted_is_no_less_than_the_file_and_the_same_when_it_is_read(table: WriteTable) -> None:
    for number in range(200):
        table.put(f"q{number}", begun(number, names=number % 7))
    pieces = list(table.pieces())
    assert len(pieces) > 1, "it is made in several turns"
    assert sum(map(len, pieces)) <= table.bytes_kept
    table.persist()
    again = WriteTable(OsDisk(), table.file.path, TickingClock())
    again.load()
    assert again.bytes_kept == table.bytes_kept
    assert [again.get(f"q{number}") for number in range(200)] == [
        table.get(f"q{number}") for number in range(200)
    ]


def test_a_batch_that_began_behind_the_log_s_end_has_begun_there(table: WriteTable) -> None:
    """Power loss has taken the end of the log: what the batch stores now lies before the place that was noted."""
    table.put("ahead", BatchBegun(3, 9000, frozenset({"a"})))
    table.put("sound", BatchBegun(4, 10, frozenset({"a"})))
    table.fit(500)
    assert table.get("ahead") == BatchBegun(3, 500, frozenset({"a"}))
    assert table.get("sound") == BatchBegun(4, 10, frozenset({"a"}))
