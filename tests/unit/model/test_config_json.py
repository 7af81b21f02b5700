"""Topics and groups as JSON."""

import pytest

from bolide.model import java_json
from bolide.model.config_json import (
    INT32_MAX,
    group_as_json,
    group_bytes,
    group_from_json,
    topic_as_json,
    topic_bytes,
    topic_from_json,
)
from bolide.model.errors import InvalidRequest
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
        TopicConfig("%RETRY%" + "ü" * 120, INT32_MAX, INT32_MAX, 6, "MULTI_TAG", -INT32_MAX),
        TopicConfig("t", attributes={"message.type": "FIFO"}, extras={"later": [1, {"x": 10**18}]}),
    ],
)
def test_no_topic_is_longer_than_it_is_counted_and_none_much_shorter(topic: TopicConfig) -> None:
    entry = len(java_json.dumps({topic.name: topic_as_json(topic)}))
    assert entry - 1 <= topic_bytes(topic) <= entry + 50


@pytest.mark.parametrize("group", [GroupConfig("g"), GroupConfig("g" * 120, extras={"later": {"x": [1]}})])
def test_no_group_is_longer_than_it_is_counted_and_none_much_shorter(group: GroupConfig) -> None:
    entry = len(java_json.dumps({group.name: group_as_json(group)}))
    assert entry - 1 <= group_bytes(group) <= entry + 100
