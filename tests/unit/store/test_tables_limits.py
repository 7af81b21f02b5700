"""Whatever a table takes can be read again, also when it holds as much as it ever will."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bolide.model import java_json
from bolide.model.config_json import group_from_json, topic_from_json
from bolide.model.errors import InvalidRequest, StoreError, TableFull
from bolide.model.limits import (
    CONFIG_DEPTH_MAX,
    GROUP_TABLE_BYTES_MAX,
    JSON_DEPTH_MAX,
    SMALL_FILE_BYTES_MAX,
    TOPIC_TABLE_BYTES_MAX,
)
from bolide.model.names import GROUP_LENGTH_MAX, TOPIC_LENGTH_MAX
from bolide.model.numbers import INT32_MAX, INT64_MAX
from bolide.model.offsets import GroupOffset
from bolide.store import disk_os, small_file
from bolide.store.disk_os import OsDisk
from bolide.store.small_file import SmallFile
from bolide.store.tables import GroupTable, OffsetTable, TopicTable, offsets
from tests.unit.store.test_tables_rules import TickingClock

Take = Callable[[object], Any]


def nested(levels: int, inmost: str = "") -> str:
    return "[" * levels + inmost + "]" * levels


KINDS = pytest.mark.parametrize(
    ("kind", "take", "name"),
    [(TopicTable, topic_from_json, "topicName"), (GroupTable, group_from_json, "groupName")],
)


@KINDS
def test_what_is_nested_as_deep_as_a_request_may_be_is_refused_and_what_is_taken_is_read_again(
    kind: type[TopicTable | GroupTable], take: Take, name: str, tmp_path: Path
) -> None:
    taken = 0
    table: Any = kind(OsDisk(), str(tmp_path / "table.json"), TickingClock())
    for levels in range(1, JSON_DEPTH_MAX):
        value = java_json.loads(f'{{"{name}": "n{levels}", "later": {nested(levels)}}}')
        try:
            table.put(take(value))
        except InvalidRequest:
            continue
        taken += 1
    assert taken == CONFIG_DEPTH_MAX - 1  # the members themselves are a level
    table.persist()
    again: Any = kind(OsDisk(), table.file.path, TickingClock())
    again.load()
    assert list(again) == list(table)


@KINDS
def test_what_is_not_deep_may_have_many_parts(
    kind: type[TopicTable | GroupTable], take: Take, name: str
) -> None:
    config = take({name: "wide", "later": [[number] for number in range(1000)]})
    assert len(config.extras["later"]) == 1000


WORST = [[], [0] * 5000, java_json.loads(nested(CONFIG_DEPTH_MAX - 1, "0," * 5000 + "0"))]
"""Unknown members: none, and those that take many times more room in the file than in a request."""


@KINDS
@pytest.mark.parametrize("later", WORST, ids=["none", "flat", "deep"])
def test_the_file_of_a_full_table_has_less_than_twice_the_bytes_that_are_counted(
    kind: type[TopicTable | GroupTable], take: Take, name: str, later: Any, tmp_path: Path
) -> None:
    table: Any = kind(OsDisk(), str(tmp_path / "table.json"), TickingClock())
    for number in range(20):
        table.put(take({name: f"n{number}", "later": later} if later else {name: f"n{number}"}))
    table.persist()
    assert Path(table.file.path).stat().st_size < 2 * table._bytes
    assert 2 * max(TOPIC_TABLE_BYTES_MAX, GROUP_TABLE_BYTES_MAX) < SMALL_FILE_BYTES_MAX


# ---- any small file


def test_what_is_too_large_to_be_read_again_is_not_written_and_the_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (small_file, disk_os):
        monkeypatch.setattr(module, "SMALL_FILE_BYTES_MAX", 10)
    file = SmallFile(OsDisk(), str(tmp_path / "file"))
    file.save(b"x" * 10)
    with pytest.raises(StoreError, match="stays as it is"):
        file.save(b"y" * 11)
    assert file.load(bytes) == b"x" * 10


def test_the_copy_is_read_when_the_file_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = SmallFile(OsDisk(), str(tmp_path / "file"))
    file.save(b"before")
    file.save(b"far too large")
    monkeypatch.setattr(disk_os, "SMALL_FILE_BYTES_MAX", 10)
    assert file.load(bytes) == b"before"
    monkeypatch.setattr(disk_os, "SMALL_FILE_BYTES_MAX", 5)
    with pytest.raises(StoreError, match=r"no readable copy is left: .*file has 13 bytes.*file\.bak has 6"):
        file.load(bytes)


# ---- offsets


def longest(number: int) -> tuple[str, str]:
    """A group and a topic whose names are as long as they get."""
    return f"{number:g>{GROUP_LENGTH_MAX}}", f"{number:t>{TOPIC_LENGTH_MAX}}"


@pytest.mark.parametrize("name", [longest, lambda number: (f"{number}", "t"), lambda number: ("g", "t")])
def test_offsets_are_taken_until_they_are_too_many_and_what_is_counted_is_never_less_than_the_file(
    name: Callable[[int], tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "OFFSETS_BYTES_MAX", 200_000)
    table = OffsetTable(OsDisk(), str(tmp_path / "offsets.json"), TickingClock())

    def fill() -> None:
        for number in range(10_000):
            table.note_pull(*name(number), INT32_MAX - number, GroupOffset(INT64_MAX))
            table.commit(*name(number), INT32_MAX - number, INT64_MAX, INT64_MAX)

    with pytest.raises(TableFull, match="delete groups"):
        fill()
    table.persist()
    assert (tmp_path / "offsets.json").stat().st_size - 200 < table.bytes_kept <= 200_000
    again = OffsetTable(OsDisk(), table.file.path, TickingClock())
    again.load()
    assert again.bytes_kept == table.bytes_kept


def test_known_offsets_move_when_the_table_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = OffsetTable(OsDisk(), str(tmp_path / "offsets.json"), TickingClock())
    table.commit("g", "t", 0, 1, end=100)
    table.note_pull("g", "t", 0, GroupOffset(1))
    monkeypatch.setattr(offsets, "OFFSETS_BYTES_MAX", table.bytes_kept)
    table.commit("g", "t", 0, 99, end=100)
    table.note_pull("g", "t", 0, GroupOffset(99))
    assert (table.query("g", "t", 0), table.last_pull("g", "t", 0)) == (99, 99)
    for group, queue_id in (("g", 1), ("h", 0)):
        with pytest.raises(TableFull):
            table.commit(group, "t", queue_id, 1, end=100)
        table.note_pull(group, "t", queue_id, GroupOffset(1))
        assert table.last_pull(group, "t", queue_id) is None
    assert list(table.groups_of("t")) == ["g"]


def test_where_members_pulled_leaves_half_of_the_room_to_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offsets, "OFFSETS_BYTES_MAX", 100_000)
    table = OffsetTable(OsDisk(), str(tmp_path / "offsets.json"), TickingClock())
    for queue_id in range(10_000):
        table.note_pull("g", "t", queue_id, GroupOffset(1))
    assert 49_000 < table.bytes_kept <= 50_000
    table.commit("h", "t", 0, 1, end=100)


@pytest.mark.parametrize("drop", [lambda table: table.drop_topic("t"), lambda table: table.drop_group("g")])
def test_a_dropped_topic_or_group_gives_its_room_back(
    drop: Callable[[OffsetTable], None], tmp_path: Path
) -> None:
    table = OffsetTable(OsDisk(), str(tmp_path / "offsets.json"), TickingClock())
    for queue_id in range(10):
        table.commit("g", "t", queue_id, 1, end=100)
        table.note_pull("g", "t", queue_id + 5, GroupOffset(1))
    drop(table)
    assert table.bytes_kept == 0


def test_offsets_take_about_what_is_counted(tmp_path: Path) -> None:
    table = OffsetTable(OsDisk(), str(tmp_path / "offsets.json"), TickingClock())
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(2000):
            for queue_id in range(8):
                table.commit(
                    f"group {number}", f"topic {number}", queue_id, 10**9 + number + queue_id, 10**12
                )
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.7 * taken < table.bytes_kept < 1.5 * taken, (taken, table.bytes_kept)
