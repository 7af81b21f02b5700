"""What the tables of topics, groups and offsets allow, create and count."""

from contextlib import suppress
from pathlib import Path

import pytest

from bolide.model.errors import GroupNotFound, InvalidRequest, TableFull
from bolide.model.limits import TOPIC_QUEUES_MAX
from bolide.model.offsets import GroupOffset
from bolide.model.steps import at_once
from bolide.model.topic import GroupConfig, TopicConfig
from bolide.rules.built_in_topics import built_in_topics
from bolide.store.disk_os import OsDisk
from bolide.store.tables import GroupTable, OffsetTable, TopicTable, groups, offsets, topics
from bolide.store.tables.offsets import DROPPED_PER_STEP


class TickingClock:
    def __init__(self) -> None:
        self.ms = 1_000

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


@pytest.fixture
def topic_table(tmp_path: Path) -> TopicTable:
    table = TopicTable(OsDisk(), str(tmp_path / "topics.json"), TickingClock())
    table.add_missing(built_in_topics("DefaultCluster", "broker-a", template_queues=8))
    return table


@pytest.fixture
def group_table(tmp_path: Path) -> GroupTable:
    table = GroupTable(OsDisk(), str(tmp_path / "subscriptionGroup.json"), TickingClock())
    table.add_built_in()
    return table


@pytest.fixture
def offset_table(tmp_path: Path) -> OffsetTable:
    return OffsetTable(OsDisk(), str(tmp_path / "consumerOffset.json"), TickingClock())


# ---- topics


def test_built_in_topics_are_added_to_the_file_and_give_no_version(topic_table: TopicTable) -> None:
    assert {config.name for config in topic_table} >= {"TBW102", "SELF_TEST_TOPIC"}
    assert topic_table.version.counter == 0
    assert topic_table.is_dirty


@pytest.mark.parametrize("name", ["", " ", "a/b", "../up", "a" * 128, "tab\t"])
def test_a_hostile_name_never_becomes_a_topic(topic_table: TopicTable, name: str) -> None:
    with pytest.raises(InvalidRequest):
        topic_table.put(TopicConfig(name))


@pytest.mark.parametrize(("read", "write"), [(0, 4), (4, 0), (-1, 4), (TOPIC_QUEUES_MAX + 1, 4)])
def test_the_number_of_queues_is_bounded(topic_table: TopicTable, read: int, write: int) -> None:
    with pytest.raises(InvalidRequest):
        topic_table.put(TopicConfig("orders", read, write))


def test_the_number_of_topics_is_bounded(topic_table: TopicTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "TOPICS_MAX", len(topic_table) + 1)
    topic_table.put(TopicConfig("one"))
    with pytest.raises(TableFull):
        topic_table.put(TopicConfig("two"))
    topic_table.put(TopicConfig("one", 2, 2))


def test_the_bytes_of_all_topics_are_bounded(
    topic_table: TopicTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topics, "TOPIC_TABLE_BYTES_MAX", (topic_table._bytes + 1000) * 16 // 15)
    for number in range(4):
        topic_table.put(TopicConfig(f"a-topic-with-number-{number}"))
    for more in (
        TopicConfig("a-topic-with-number-4"),
        TopicConfig("a-topic-with-number-0", extras={"later": "x" * 1000}),
    ):
        with pytest.raises(TableFull, match="delete some"):
            topic_table.put(more)
    topic_table.put(TopicConfig("a-topic-with-number-0", 2, 2))  # what does not grow may change
    topic_table.delete("a-topic-with-number-0")
    topic_table.put(TopicConfig("a-topic-with-number-9"))


def fill(table: TopicTable, names: str) -> None:
    with suppress(TableFull):
        for number in range(100):
            table.put(TopicConfig(names % number))


@pytest.mark.parametrize("bound", ["TOPICS_MAX", "TOPIC_TABLE_BYTES_MAX"])
def test_the_last_of_the_room_is_for_topics_that_groups_need(
    topic_table: TopicTable, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(topics, bound, 32 if bound == "TOPICS_MAX" else topic_table._bytes + 2000)
    topic_table.keep_room_for(lambda topic: topic.endswith("needed"))
    fill(topic_table, "%d-other")
    with pytest.raises(TableFull, match="delete some"):
        topic_table.put(TopicConfig("%RETRY%other"))
    topic_table.put(TopicConfig("%RETRY%needed"))
    fill(topic_table, "%d-needed")
    with pytest.raises(TableFull, match="delete some"):
        topic_table.put(TopicConfig("%DLQ%needed"))


def test_each_change_of_a_topic_is_a_version_and_the_same_again_is_none(topic_table: TopicTable) -> None:
    """CF-03."""
    topic_table.put(TopicConfig("orders", 4, 4))
    topic_table.put(TopicConfig("orders", 4, 4))
    assert topic_table.version.counter == 1
    topic_table.put(TopicConfig("orders", 8, 4))
    before_ms = topic_table.version.timestamp_ms
    assert topic_table.delete("orders")
    assert not topic_table.delete("orders")
    assert topic_table.version.counter == 3
    assert topic_table.version.timestamp_ms > before_ms


# ---- groups


def test_the_built_in_groups_are_there(group_table: GroupTable) -> None:
    assert "TOOLS_CONSUMER" in group_table
    assert len(group_table) == 8


def test_a_group_is_created_when_that_is_allowed(group_table: GroupTable) -> None:
    with pytest.raises(GroupNotFound):
        group_table.find("billing", auto_create=False)
    assert group_table.find("billing", auto_create=True) == GroupConfig("billing")
    assert group_table.find("billing", auto_create=False) == GroupConfig("billing")
    assert group_table.find("CID_RMQ_SYS_NEW", auto_create=False).name == "CID_RMQ_SYS_NEW"


def test_a_hostile_name_never_becomes_a_group(group_table: GroupTable) -> None:
    with pytest.raises(InvalidRequest):
        group_table.find("a" * 121, auto_create=True)


def test_the_number_of_groups_is_bounded(group_table: GroupTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "GROUPS_MAX", len(group_table))
    with pytest.raises(TableFull):
        group_table.find("billing", auto_create=True)


def test_the_bytes_of_all_groups_are_bounded(
    group_table: GroupTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups, "GROUP_TABLE_BYTES_MAX", group_table._bytes + 1000)
    group_table.put(GroupConfig("one"))
    group_table.put(GroupConfig("two"))
    for more in (GroupConfig("three"), GroupConfig("two", extras={"later": "x" * 1000})):
        with pytest.raises(TableFull, match="delete some"):
            group_table.put(more)
    group_table.delete("one")
    group_table.put(GroupConfig("three"))


def test_a_table_that_is_read_counts_as_one_that_was_made(
    topic_table: TopicTable, group_table: GroupTable
) -> None:
    topic_table.put(TopicConfig("orders", attributes={"message.type": "FIFO"}))
    group_table.put(GroupConfig("billing"))
    for table in (topic_table, group_table):
        again = type(table)(OsDisk(), table.file.path, table._clock)
        table.persist()
        again.load()
        assert again._bytes == table._bytes


def test_a_deleted_group_is_gone(group_table: GroupTable) -> None:
    group_table.put(GroupConfig("billing"))
    assert group_table.delete("billing")
    assert not group_table.delete("billing")
    assert group_table.version.counter == 2


# ---- offsets


def test_a_commit_may_go_backwards_but_not_below_zero(offset_table: OffsetTable) -> None:
    offset_table.commit("g", "t", 0, 9, end=10_000)
    offset_table.commit("g", "t", 0, 3, end=10_000)
    assert offset_table.query("g", "t", 0) == 3
    offset_table.commit("g", "t", 0, -1, end=10_000)
    assert offset_table.query("g", "t", 0) == 3


def test_a_commit_past_the_end_of_the_queue_is_one_of_the_end(offset_table: OffsetTable) -> None:
    offset_table.commit("g", "t", 0, 12, end=10)
    assert offset_table.query("g", "t", 0) == 10


def test_a_negative_commit_of_a_new_queue_leaves_no_trace(offset_table: OffsetTable) -> None:
    offset_table.commit("g", "t", 0, -1, end=10_000)
    assert offset_table.query("g", "t", 0) is None
    assert list(offset_table.topics_of("g")) == []
    assert not offset_table.is_dirty


def test_members_hear_of_a_reset_of_each_queue_once_whichever_was_reset_last(
    offset_table: OffsetTable,
) -> None:
    offset_table.reset("g", "t", {0: 3}, is_online=True)
    offset_table.reset("g", "t", {1: 4}, is_online=True)
    assert offset_table.take_reset("g", "t", 0) == 3
    assert offset_table.take_reset("g", "t", 0) is None
    assert offset_table.take_reset("g", "t", 1) == 4


def test_a_commit_of_who_has_not_heard_of_a_reset_is_not_taken(offset_table: OffsetTable) -> None:
    offset_table.reset("g", "t", {0: 3}, is_online=True)
    offset_table.reset("g", "t", {1: 4}, is_online=True)
    offset_table.commit("g", "t", 0, 9, end=10_000)
    assert offset_table.query("g", "t", 0) == 3
    offset_table.take_reset("g", "t", 0)
    offset_table.commit("g", "t", 0, 9, end=10_000)
    assert offset_table.query("g", "t", 0) == 9


def test_a_reset_for_which_the_table_has_no_room_takes_nothing_from_those_before(
    offset_table: OffsetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    offset_table.reset("g", "t", {0: 3, 1: 4}, is_online=True)
    monkeypatch.setattr(offsets, "OFFSETS_BYTES_MAX", offset_table.bytes_kept)
    heard: list[int] = []
    offset_table.on_reset(lambda topic, queues: heard.extend(queues))
    with pytest.raises(TableFull):
        offset_table.reset("g", "t", {1: 7, 2: 8}, is_online=True)
    assert (offset_table.query("g", "t", 1), offset_table.query("g", "t", 2)) == (7, None)
    assert offset_table.resets_of("g", "t") == {0: 3, 1: 7}, (
        "what was moved is told, and what was not as before"
    )
    assert heard == [1]
    offset_table.commit("g", "t", 0, 9, end=10_000)
    assert offset_table.query("g", "t", 0) == 3


def test_the_version_moves_every_five_hundred_commits(offset_table: OffsetTable) -> None:
    for number in range(1, 1_001):
        offset_table.commit("g", "t", number % 4, number, end=10_000)
        assert offset_table.version.counter == number // 500


def test_topics_and_groups_find_each_other(offset_table: OffsetTable) -> None:
    offset_table.commit("g", "t", 0, 1, end=10_000)
    offset_table.commit("g", "u", 0, 1, end=10_000)
    offset_table.commit("h", "t", 0, 1, end=10_000)
    assert list(offset_table.topics_of("g")) == ["t", "u"]
    assert list(offset_table.groups_of("t")) == ["g", "h"]


def test_a_dropped_topic_takes_everybodys_progress_with_it(offset_table: OffsetTable) -> None:
    offset_table.commit("g", "t", 0, 1, end=10_000)
    offset_table.commit("g", "u", 0, 2, end=10_000)
    offset_table.note_pull("h", "t", 0, GroupOffset(5))
    offset_table.drop_topic("t")
    assert offset_table.query("g", "t", 0) is None
    assert offset_table.last_pull("h", "t", 0) is None
    assert offset_table.query("g", "u", 0) == 2


def test_a_dropped_group_leaves_the_others_alone(offset_table: OffsetTable) -> None:
    offset_table.commit("g", "t", 0, 1, end=10_000)
    offset_table.commit("h", "t", 0, 2, end=10_000)
    offset_table.drop_group("g")
    assert list(offset_table.groups_of("t")) == ["h"]


def test_groups_that_stand_behind_the_end_of_a_queue_are_brought_back_to_it(
    offset_table: OffsetTable,
) -> None:
    for queue_id, offset in enumerate((4, 5, 6)):
        offset_table.commit("G", "T", queue_id, offset, end=10_000)
    before = offset_table.version
    assert offset_table.bring_back(lambda topic, queue_id: 5 if topic == "T" else 0) == 1
    assert [offset_table.query("G", "T", queue_id) for queue_id in range(3)] == [4, 5, 5]
    assert offset_table.version != before
    assert offset_table.bring_back(lambda topic, queue_id: 5) == 0


def test_a_pull_is_remembered_but_does_not_make_the_file_be_written(offset_table: OffsetTable) -> None:
    offset_table.note_pull("g", "t", 0, GroupOffset(7))
    assert offset_table.last_pull("g", "t", 0) == 7
    assert not offset_table.is_dirty


def test_a_group_that_is_made_again_while_its_offsets_go_keeps_what_it_commits_meanwhile(
    offset_table: OffsetTable,
) -> None:
    wide = 3 * DROPPED_PER_STEP
    for number in range(wide):
        offset_table.commit("g", f"t{number}", 0, 5, 9)
        offset_table.commit("g", f"t{number}", 1, 5, 9)
    dropping = offset_table.dropping_group("g")
    next(dropping)
    last, other = f"t{wide - 1}", f"t{wide - 2}"
    assert offset_table.query("g", last, 0) is None, "it is on its way out"
    assert not offset_table.offsets_of("g", other)
    offset_table.commit("g", last, 0, 7, 9)
    offset_table.note_pull("g", other, 0, GroupOffset(3))
    at_once(dropping)
    assert dict(offset_table.offsets_of("g", last)) == {0: 7}
    assert offset_table.last_pull("g", other, 0) == 3
    assert list(offset_table.topics_of("g")) == [last]
    offset_table.drop_group("g")
    assert offset_table.bytes_kept == 0
    offset_table.commit("g", last, 1, 7, 9)
    assert offset_table.query("g", last, 1) == 7
