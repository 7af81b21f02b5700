"""The tables' files: read and written as Apache brokers read and write them, whole or not at all."""

from pathlib import Path

import pytest

from bolide.model import java_json
from bolide.model.data_version import DataVersion
from bolide.model.errors import StoreError
from bolide.model.json_pieces import PIECE_BYTES, PIECE_ENTRIES
from bolide.model.offsets import GroupOffset
from bolide.model.topic import TopicConfig
from bolide.rules.built_in_topics import built_in_topics
from bolide.store.disk import File
from bolide.store.disk_os import OsDisk
from bolide.store.tables import GroupTable, OffsetTable, TopicTable
from bolide.store.tables.offsets import WIDE
from bolide.store.tables.persisted import PersistedTable

GOLDEN = Path(__file__).parents[2] / "golden"


class FixedClock:
    def now_ms(self) -> int:
        return 1_700_000_000_000

    def monotonic_ms(self) -> int:
        return 0


class BrokenDisk(OsDisk):
    """Refuses to write."""

    def create(self, path: str, size: int, *, reserve: bool) -> File:
        raise OSError("no space left")


def table_at(kind: type[PersistedTable], path: Path) -> PersistedTable:
    return kind(OsDisk(), str(path), FixedClock())


def offsets_at(path: Path) -> OffsetTable:
    return OffsetTable(OsDisk(), str(path), FixedClock())


def topics_at(path: Path) -> TopicTable:
    return TopicTable(OsDisk(), str(path), FixedClock())


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (TopicTable, "topics.json"),
        (GroupTable, "subscriptionGroup.json"),
        (OffsetTable, "consumerOffset.json"),
    ],
)
def test_a_file_of_the_latest_original_is_written_back_byte_for_byte(
    kind: type[PersistedTable], name: str, tmp_path: Path
) -> None:
    """CF-01."""
    original = (GOLDEN / "config-5.5.0" / name).read_bytes()
    (tmp_path / name).write_bytes(original)
    table = table_at(kind, tmp_path / name)
    table.load()
    table.mark_dirty()
    (tmp_path / name).unlink()
    assert table.persist()
    assert (tmp_path / name).read_bytes() == original


def test_what_a_5_5_0_broker_knew_is_known(tmp_path: Path) -> None:
    folder = GOLDEN / "config-5.5.0"
    topics = TopicTable(OsDisk(), str(folder / "topics.json"), FixedClock())
    groups = GroupTable(OsDisk(), str(folder / "subscriptionGroup.json"), FixedClock())
    offsets = OffsetTable(OsDisk(), str(folder / "consumerOffset.json"), FixedClock())
    for table in (topics, groups, offsets):
        table.load()
    assert topics.get("orders-fifo") == TopicConfig(
        "orders-fifo", 2, 1, 4, order=True, attributes={"message.type": "FIFO"}
    )
    billing = groups.get("billing")
    assert billing is not None
    assert billing.retry_max_times == 3
    assert billing.extras["groupRetryPolicy"]["type"] == "EXPONENTIAL"
    assert [offsets.query("billing", "orders", queue) for queue in range(5)] == [8, 7, 7, 8, None]


def test_what_a_4_9_7_broker_knew_is_known() -> None:
    folder = GOLDEN / "config-4.9.7"
    topics = TopicTable(OsDisk(), str(folder / "topics.json"), FixedClock())
    groups = GroupTable(OsDisk(), str(folder / "subscriptionGroup.json"), FixedClock())
    offsets = OffsetTable(OsDisk(), str(folder / "consumerOffset.json"), FixedClock())
    for table in (topics, groups, offsets):
        table.load()
    assert topics.version == DataVersion(counter=5, timestamp_ms=1794737566803)
    assert topics.get("SCHEDULE_TOPIC_XXXX") == TopicConfig("SCHEDULE_TOPIC_XXXX", 18, 18)
    assert "living-497-277" in groups
    assert offsets.query("living-497-277", "topic-497-275", 3) == 150
    assert offsets.query("living-497-277", "%RETRY%living-497-277", 0) == 0


def test_a_damaged_file_gives_way_to_its_backup(tmp_path: Path) -> None:
    """CF-02."""
    path = tmp_path / "consumerOffset.json"
    table = offsets_at(path)
    table.commit("g", "t", 0, 5, end=10_000)
    table.persist()
    table.commit("g", "t", 0, 6, end=10_000)
    table.persist()
    path.write_bytes(path.read_bytes()[:-10])
    again = offsets_at(path)
    again.load()
    assert again.query("g", "t", 0) == 5


@pytest.mark.parametrize(
    "damage",
    [
        *(b"{", b"[]", b'{"offsetTable":7}', b'{"offsetTable":{"no separator":{0:1}}}', b"\xff\xfe"),
        *(
            b'{"offsetTable":{"t@g":{0:%b}}}' % bad
            for bad in (b"1e400", b"true", b"1.5", b'"x"', b"null", b"[]")
        ),
        *(b'{"offsetTable":{"t@g":{"0":%b}}}' % bad for bad in (b"1e400", b"9223372036854775808", b"1.0")),
        *(b'{"offsetTable":{"t@g":{"%b":1}}}' % bad for bad in (b"-1", b"2147483648", b"x", b"1.0", b"")),
        b'{"pullOffsetTable":{"t@g":{"0":true}}}',
        b'{"offsetTable":{"t@g":' + b"[" * 1000 + b"]" * 1000 + b"}}",
        b'{"dataVersion":{"counter":1e400},"offsetTable":{}}',
    ],
)
def test_a_backup_is_used_for_any_kind_of_damage(damage: bytes, tmp_path: Path) -> None:
    path = tmp_path / "consumerOffset.json"
    path.write_bytes(damage)
    (tmp_path / "consumerOffset.json.bak").write_bytes(b'{"offsetTable":{"t@g":{0:9}}}')
    table = offsets_at(path)
    table.load()
    assert table.query("g", "t", 0) == 9


def test_a_missing_file_with_a_backup_is_a_crash_of_the_original_between_two_steps(tmp_path: Path) -> None:
    (tmp_path / "consumerOffset.json.bak").write_bytes(b'{"offsetTable":{"t@g":{"0":"9"}}}')
    table = offsets_at(tmp_path / "consumerOffset.json")
    table.load()
    assert table.query("g", "t", 0) == 9


def test_when_both_copies_are_damaged_the_error_names_them(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_bytes(b"{")
    (tmp_path / "topics.json.bak").write_bytes(b'{"topicConfigTable":{"t":{"perm":"six","topicName":"t"}}}')
    with pytest.raises(StoreError, match=r"topics\.json: .*; .*topics\.json\.bak: .*perm is not"):
        topics_at(path).load()


def test_a_table_without_a_file_starts_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "topics.json").write_bytes(b"")
    table = topics_at(tmp_path / "topics.json")
    table.load()
    assert len(table) == 0


def test_nothing_is_written_when_nothing_has_changed(tmp_path: Path) -> None:
    table = topics_at(tmp_path / "config" / "topics.json")
    assert not table.persist()
    table.put(TopicConfig("orders"))
    assert table.persist()
    assert not table.persist()
    assert list((tmp_path / "config").iterdir()) == [tmp_path / "config" / "topics.json"]


def test_an_unchanged_restart_keeps_the_version(tmp_path: Path) -> None:
    """CF-03."""
    table = topics_at(tmp_path / "topics.json")
    table.put(TopicConfig("orders"))
    table.put(TopicConfig("orders", 8, 8))
    table.persist()
    again = topics_at(tmp_path / "topics.json")
    again.load()
    again.add_missing(built_in_topics("C", "b", template_queues=8))
    assert again.version == table.version == DataVersion(counter=2, timestamp_ms=1_700_000_000_000)


def test_a_failed_write_leaves_the_table_to_be_written_again(tmp_path: Path) -> None:
    table = TopicTable(BrokenDisk(), str(tmp_path / "topics.json"), FixedClock())
    table.put(TopicConfig("orders"))
    with pytest.raises(OSError, match="no space"):
        table.persist()
    assert table.is_dirty


def test_keys_of_other_versions_survive(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_bytes(b'{"topicConfigTable":{"t":{"topicName":"t","perm":6,"liteExpiration":[1,{"a":2}]}}}')
    table = topics_at(path)
    table.load()
    table.put(TopicConfig("other"))
    table.persist()
    again = topics_at(path)
    again.load()
    config = again.get("t")
    assert config is not None
    assert config.extras == {"liteExpiration": [1, {"a": 2}]}


def test_an_offset_that_is_none_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "consumerOffset.json"
    path.write_bytes(b'{"offsetTable":{"orders@billing":{"3":1.5}}}')
    with pytest.raises(StoreError, match=r"'1.5' is not an offset in queue 3 of 'orders@billing'"):
        offsets_at(path).load()


def test_a_topic_that_is_none_is_named(tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_bytes(b'{"topicConfigTable":{"orders":{"topicName":"orders","topicSysFlag":1099511627776}}}')
    with pytest.raises(StoreError, match=r"'orders': topicSysFlag is 1099511627776"):
        topics_at(path).load()


def test_no_pull_is_noted_that_the_file_could_not_give_back(tmp_path: Path) -> None:
    path = tmp_path / "consumerOffset.json"
    table = offsets_at(path)
    table.note_pull("g", "t", 0, GroupOffset(-5))
    table.note_pull("g", "t", 1, GroupOffset(5))
    table.mark_dirty()
    table.persist()
    again = offsets_at(path)
    again.load()
    assert [(one.last_pull("g", "t", 0), one.last_pull("g", "t", 1)) for one in (table, again)] == [
        (None, 5)
    ] * 2


def test_the_offsets_of_a_wide_topic_are_written_in_pieces_and_as_ever(tmp_path: Path) -> None:
    """Forty groups in a topic of 16,384 queues were half a second in one go."""
    table = offsets_at(tmp_path / "consumerOffset.json")
    queues = 3 * WIDE
    for queue_id in range(queues):
        table.commit("g", "wide", queue_id, queue_id, end=queues)
    pieces = list(table.pieces())
    assert max(map(len, pieces)) <= 2 * PIECE_BYTES
    assert max(piece.count(b":") for piece in pieces) <= 2 * PIECE_ENTRIES
    members = table.members()
    whole = {**members, "offsetTable": {"wide@g": dict(table._offsets["wide@g"])}}
    whole |= {"groupTopicMap": {"g": ["wide"]}, "pullOffsetTable": {}}
    assert b"".join(pieces) == java_json.text_of(whole, "\n").encode()
    table.persist()
    again = offsets_at(tmp_path / "consumerOffset.json")
    again.load()
    assert again._offsets == table._offsets


@pytest.mark.parametrize("name", ["other", "../../../x", ""])
def test_a_topic_that_has_another_name_inside_is_refused(tmp_path: Path, name: str) -> None:
    """From the name inside come the folders of its queues."""
    path = tmp_path / "topics.json"
    path.write_text(f'{{"topicConfigTable":{{"T":{{"topicName":"{name}"}}}}}}')
    with pytest.raises(StoreError, match="'T'"):
        topics_at(path).load()
