"""bulkWrites.json: what a table of bulk writers may take, and that all of it is read again."""

from dataclasses import replace
from pathlib import Path

import pytest

from bolide.model.errors import TableFull
from bolide.model.limits import WRITERS_BYTES_MAX
from bolide.store.disk_os import OsDisk
from bolide.store.tables import WriteTable, writes
from bolide.store.tables.writes import BatchBegun
from tests.unit.store.test_tables_rules import TickingClock

ROOM = 64 * 1024


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def table(tmp_path: Path, clock: TickingClock) -> WriteTable:
    return WriteTable(OsDisk(), str(tmp_path / "bulkWrites.json"), clock)


def begun(batch: int, names: int = 1, told_ms: int = 0) -> BatchBegun:
    brokers = frozenset(f"broker-{number}-\u00fc\x01" for number in range(names))
    return BatchBegun(batch, 4096, brokers, told_ms)


def bare(entry: BatchBegun | None) -> BatchBegun | None:
    return None if entry is None else replace(entry, told_ms=0)


def _brought(table: WriteTable, host: str, names: int = 1) -> int:
    """How many writers of the host the table takes."""
    for number in range(2000):
        try:
            table.put(f"{host} {number}", begun(0, names), host)
        except TableFull:
            return number
    return 2000


def test_a_host_begins_no_more_than_stay_free_for_others_and_takes_nothing_from_who_is_under_way(
    table: WriteTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "WRITERS_MAX", 1024)
    table.put("honest", begun(7), "10.0.0.1")

    assert 256 < _brought(table, "10.0.0.2") <= 384
    assert sum(_brought(table, f"10.0.1.{number}") for number in range(100)) <= 1024 - 385
    assert bare(table.get("honest")) == begun(7)
    table.put("honest", begun(8), "10.0.0.1")


def test_a_host_s_large_writers_leave_room_for_others(table: WriteTable) -> None:
    assert _brought(table, "10.0.0.2", names=300) < 2000
    assert table.get("10.0.0.2 0") is not None
    assert table.bytes_kept < WRITERS_BYTES_MAX // 2
    table.put("q", begun(0, names=300), "10.0.0.1")


def test_writers_that_were_silent_for_days_make_room_and_no_others_do(
    table: WriteTable, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "WRITERS_MAX", 16)

    def left() -> list[int]:
        return [number for number in range(8) if table.get(f"old{number}")]

    for number in range(8):
        table.put(f"old{number}", begun(0), f"10.0.1.{number}")
    clock.ms += writes.WRITER_RECENT_MS + 1
    table.put("old0", begun(1), "10.0.1.0")
    for number in range(8):
        table.put(f"new{number}", begun(0), f"10.0.0.{number}")
    assert left() == list(range(8)), "there is room for all"
    table.put("new8", begun(0), "10.0.0.8")
    assert left() == [0, 2, 3, 4, 5, 6, 7]
    table.put("new9", begun(0), "10.0.0.9")
    assert left() == [0, 3, 4, 5, 6, 7]
    with pytest.raises(TableFull):
        table.put("new10", begun(0), "10.0.0.10")


def test_who_was_under_way_before_a_restart_is_afterwards(
    table: WriteTable, clock: TickingClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writes, "WRITERS_MAX", 16)
    for number in range(6):
        table.put(f"q{number}", begun(0), f"10.0.0.{number}")
    table.persist()
    again = WriteTable(OsDisk(), table.file.path, clock)
    again.load()
    assert 0 < _brought(again, "10.0.0.9") < 8
    assert all(again.get(f"q{number}") for number in range(6))


def test_what_is_counted_is_no_less_than_the_file_and_the_same_when_it_is_read(
    table: WriteTable, clock: TickingClock
) -> None:
    for number in range(200):
        table.put(f"q{number}", begun(number, names=number % 7))
    pieces = list(table.pieces())
    assert len(pieces) > 1, "it is made in several turns"
    assert sum(map(len, pieces)) <= table.bytes_kept
    table.persist()
    again = WriteTable(OsDisk(), table.file.path, clock)
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
    assert bare(table.get("ahead")) == BatchBegun(3, 500, frozenset({"a"}))
    assert bare(table.get("sound")) == BatchBegun(4, 10, frozenset({"a"}))
