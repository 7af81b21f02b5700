"""Topics and groups as JSON."""

import pytest

from bolide.model import java_json
from bolide.model.config_json import (
    group_as_json,
    group_bytes,
    group_from_json,
    topic_as_json,
    topic_bytes,
    topic_from_json,
)
from bolide.model.errors import InvalidRequest
from bolide.model.numbers import INT32_MAX
from bolide.model.topic import GroupConfig, TopicConfig


def test_a_topic_has_the_originals_keys_in_its_order() -> None:
    assert list(topic_as_json(TopicConfig("t"))) == [
        *("attributes", "order", "perm", "readQueueNums", "topicFilterType", "topicName"),
        *("topicSysFlag", "writeQueueNums"),
    ]


def test_a_group_has_the_originals_keys_in_its_order() -> None:
    members = group_as_json(GroupConfig("g"))
    assert list(members) == sorted(members)
    assert members["groupRetryPolicy"] == {"type": "CUSTOMIZED"}
    assert len(members) == 14


def test_both_survive_the_way_there_and_back() -> None:
    topic = TopicConfig("t", 1, 2, 4, "MULTI_TAG", 3, True, {"a": "b"}, {"later": [1]})
    group = GroupConfig(
        "g", False, False, False, True, 2, 3, 4, 5, False, 6, 7, {"a": "b"}, {"later": {"x": 1}}
    )
    assert topic_from_json(topic_as_json(topic)) == topic
    assert group_from_json(group_as_json(group)) == group


def test_what_is_missing_or_null_has_its_default() -> None:
    assert topic_from_json({"topicName": "t", "perm": None}) == TopicConfig("t")
    assert group_from_json({"groupName": "g", "attributes": None}) == GroupConfig("g")


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"topicName": 7},
        {"topicName": "t", "perm": "6"},
        {"topicName": "t", "perm": True},
        {"topicName": "t", "readQueueNums": 2**31},
        {"topicName": "t", "order": 1},
        {"topicName": "t", "attributes": {"a": 1}},
    ],
)
def test_a_wrong_kind_of_value_is_refused(value: object) -> None:
    with pytest.raises(InvalidRequest):
        topic_from_json(value)


@pytest.mark.parametrize(
    "topic",
    [
        TopicConfig("t", 1, 1),
        TopicConfig("%RETRY%" + "ü" * 120, 65_536, 65_536, -INT32_MAX, "MULTI_TAG", -INT32_MAX),
        TopicConfig("t", attributes={"message.type": "FIFO"}, extras={"later": [1, {"x": 10**18}]}),
    ],
)
def test_no_topic_is_longer_than_it_is_counted_and_none_much_shorter(topic: TopicConfig) -> None:
    entry = len(java_json.dumps({topic.name: topic_as_json(topic)}))
    assert entry - 1 <= topic_bytes(topic) <= entry + 120


@pytest.mark.parametrize("group", [GroupConfig("g"), GroupConfig("g" * 120, extras={"later": {"x": [1]}})])
def test_no_group_is_longer_than_it_is_counted_and_none_much_shorter(group: GroupConfig) -> None:
    entry = len(java_json.dumps({group.name: group_as_json(group)}))
    assert entry - 1 <= group_bytes(group) <= entry + 200


def nested(levels: int) -> object:
    value: object = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("topicSysFlag", 2**40),
        ("topicSysFlag", 2**31),
        ("perm", 2**31),
        ("perm", -(2**31) - 1),
        ("readQueueNums", 65_537),
        ("writeQueueNums", -1),
        ("topicName", "x" * 256),
        ("topicName", " "),
        ("topicFilterType", "TWO WORDS"),
        ("topicFilterType", "X" * 65),
        ("topicFilterType", ""),
        ("attributes", {"a": "x" * 65_536}),
        ("later", ["x" * 65_536]),
        ("later", nested(300)),
        ("later", 2**70),
    ],
)
def test_what_could_not_be_registered_or_read_again_is_no_topic(key: str, value: object) -> None:
    with pytest.raises(InvalidRequest):
        topic_from_json({"topicName": "t", key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retryQueueNums", 2**31),
        ("retryMaxTimes", 2**40),
        ("consumeTimeoutMinute", -(2**31) - 1),
        ("groupSysFlag", 2**31),
        ("brokerId", 2**63),
        ("whichBrokerWhenConsumeSlowly", 2**63),
        ("groupName", ""),
        ("attributes", {"a": "x" * 65_536}),
        ("later", nested(1_000)),
    ],
)
def test_nor_is_it_a_group(key: str, value: object) -> None:
    with pytest.raises(InvalidRequest):
        group_from_json({"groupName": "g", key: value})


def test_what_java_keeps_in_64_bits_is_kept_here_too() -> None:
    assert group_from_json({"groupName": "g", "brokerId": 2**40}).broker_id == 2**40
