"""Bodies about topics and progress, whose maps have queues as keys."""

import pytest

from bolide.model.errors import InvalidRequest
from bolide.model.offsets import MessageQueue
from bolide.model.topic import TopicConfig
from bolide.wire.bodies import offset, topic
from bolide.wire.bodies.offset import QueueProgress
from bolide.wire.bodies.topic import QueueBounds

QUEUE = MessageQueue("T", "broker-a", 0)


def test_topic_stats_have_bare_queues_as_keys() -> None:
    stats = {QUEUE: QueueBounds(0, 20, 1_700_000_000_000)}
    body = b"".join(topic.topic_stats_pieces(stats.items(), 1.5))
    assert body == (
        b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:'
        b'{"lastUpdateTimestamp":1700000000000,"maxOffset":20,"minOffset":0}},"topicPutTps":1.5}'
    )
    assert topic.decode_topic_stats(body) == stats


def test_consume_stats_have_bare_queues_as_keys() -> None:
    stats = {QUEUE: QueueProgress(20, 18, 20, 1_700_000_000_000)}
    body = b"".join(offset.consume_stats_pieces(stats.items(), lambda: 1.5))
    assert body == (
        b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:'
        b'{"brokerOffset":20,"consumerOffset":18,"lastTimestamp":1700000000000,"pullOffset":20}},"consumeTps":1.5}'
    )
    assert offset.decode_consume_stats(body) == stats
    assert stats[QUEUE].behind == 2


def test_a_topic_goes_both_ways() -> None:
    config = TopicConfig("T", 4, 8, 6, "MULTI_TAG", 2, True, {"message.type": "FIFO"}, {"x": 1})
    assert topic.decode_topic_config(topic.encode_topic_config(config)) == config
    table = b'{"topicConfigTable":{"T":' + topic.encode_topic_config(config) + b"}}"
    assert topic.decode_topic_table(table) == {"T": config}


def test_groups_go_both_ways() -> None:
    assert topic.decode_groups(b"".join(topic.group_list_pieces(["g", "h"]))) == ["g", "h"]


def test_attributes_are_set_and_removed_by_sign() -> None:
    changes = topic.parse_attribute_changes("+a=1,-b,+c=x=y")
    assert changes == {"+a": "1", "-b": "", "+c": "x=y"}
    assert topic.alter_attributes({"b": "2", "d": "4"}, changes) == {"a": "1", "c": "x=y", "d": "4"}
    assert topic.parse_attribute_changes("") == {}


@pytest.mark.parametrize("text", ["a=1", "+a", "-a=1", "=", "a"])
def test_changes_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        topic.parse_attribute_changes(text)


@pytest.mark.parametrize("changes", [{"a": "1"}, {"+": "1"}, {"-missing": ""}])
def test_a_change_that_cannot_be_made_is_refused(changes: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest):
        topic.alter_attributes({}, changes)
