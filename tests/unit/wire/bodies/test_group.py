"""Heartbeats of many languages, and the other bodies about clients and groups."""

from collections.abc import Callable

import pytest

from bolide.model import java_json
from bolide.model.errors import InvalidRequest
from bolide.model.java_hash import java_hash
from bolide.model.offsets import MessageQueue
from bolide.model.topic import Subscription
from bolide.wire.bodies import connection, group, lock
from bolide.wire.bodies.connection import ClientConnection, GroupConnections
from bolide.wire.bodies.group import (
    ClientCheck,
    ConsumeFrom,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
)

JAVA = (
    b'{"clientID":"10.0.0.7@4711#8899","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
    b'"consumeType":"CONSUME_PASSIVELY","groupName":"G","messageModel":"CLUSTERING","subscriptionDataSet":['
    b'{"classFilterMode":false,"codeSet":[2598919],"expressionType":"TAG","subString":"TagA",'
    b'"subVersion":1700000000000,"tagsSet":["TagA"],"topic":"T"},{"classFilterMode":false,"codeSet":[],'
    b'"expressionType":"TAG","subString":"*","subVersion":1700000000001,"tagsSet":[],"topic":"%RETRY%G"}],'
    b'"unitMode":false}],"heartbeatFingerprint":0,"producerDataSet":[{"groupName":"CLIENT_INNER_PRODUCER"}],'
    b'"withoutSub":false}'
)
CPP = (
    b'{"clientID":"10.0.0.7@DEFAULT","consumerDataSet":[{"consumeFromWhere":4,"consumeType":1,"groupName":"G",'
    b'"messageModel":0,"subscriptionDataSet":[{"codeSet":["65"],"subString":"A","subVersion":"1700000000000",'
    b'"tagsSet":["A"],"topic":"T"}]}],"producerDataSet":null}'
)


def test_a_java_heartbeat_is_read_and_written_unchanged() -> None:
    heartbeat = HeartbeatData.decode(JAVA)
    assert heartbeat.client_id == "10.0.0.7@4711#8899"
    assert heartbeat.producers == ("CLIENT_INNER_PRODUCER",)
    (consumer,) = heartbeat.consumers
    assert consumer.consume_type is ConsumeType.PASSIVELY
    assert [one.topic for one in consumer.subscriptions] == ["T", "%RETRY%G"]
    assert consumer.subscriptions[0].codes == {2598919}
    assert heartbeat.encode() == JAVA


def test_a_cpp_heartbeat_with_ordinals_and_numbers_as_text_is_read() -> None:
    heartbeat = HeartbeatData.decode(CPP)
    assert heartbeat.producers == ()
    (consumer,) = heartbeat.consumers
    assert consumer.message_model is MessageModel.BROADCASTING
    assert consumer.consume_from is ConsumeFrom.FIRST_OFFSET
    assert consumer.subscriptions == (
        Subscription("T", "A", frozenset("A"), frozenset({65}), 1_700_000_000_000),
    )


def test_a_heartbeat_with_nothing_but_an_id_is_one() -> None:
    assert HeartbeatData.decode(b'{"clientID":"c"}') == HeartbeatData("c")


@pytest.mark.parametrize("value", [b'"CONSUME_LITE"', b"17", b"-1", b"null", b"[]"])
def test_a_kind_that_only_newer_clients_know_counts_as_the_usual_one(value: bytes) -> None:
    body = b'{"clientID":"c","consumerDataSet":[{"groupName":"G","consumeType":' + value + b"}]}"
    assert HeartbeatData.decode(body).consumers[0].consume_type is ConsumeType.PASSIVELY


def test_codes_that_a_client_left_out_come_from_its_tags_or_its_expression() -> None:
    hashes = frozenset(map(java_hash, ("A", "B")))
    by_tags = group.subscription_from_json({"topic": "T", "subString": "A || B", "tagsSet": ["A", "B"]})
    by_expression = group.subscription_from_json({"topic": "T", "subString": "A||B"})
    assert by_tags.codes == by_expression.codes == hashes
    assert group.subscription_from_json({"topic": "T", "subString": None}).takes_all


def test_a_subscription_of_another_type_keeps_its_expression() -> None:
    read = group.subscription_from_json({"topic": "T", "subString": "a > 3", "expressionType": "SQL92"})
    assert (read.expression, read.expression_type, read.codes) == ("a > 3", "SQL92", frozenset())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"clientID":7}',
        b'{"clientID":"' + b"x" * 2000 + b'"}',
        b'{"clientID":"c","consumerDataSet":{}}',
        b'{"clientID":"c","consumerDataSet":[{}]}',
        b'{"clientID":"c","consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"t","codeSet":7}]}]}',
        b'{"clientID":"c","producerDataSet":[' + b'{"groupName":"g"},' * 5000 + b'{"groupName":"g"}]}',
    ],
)
def test_what_is_no_heartbeat_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        HeartbeatData.decode(body)


def test_a_client_check_goes_both_ways() -> None:
    for subscription in (None, Subscription.parse("T", "A", 5)):
        check = ClientCheck("c", "g", subscription)
        assert ClientCheck.decode(check.encode()) == check


def test_member_ids_go_both_ways() -> None:
    body = group.encode_member_ids(["a", "b"])
    assert body == b'{"consumerIdList":["a","b"]}'
    assert group.decode_member_ids(body) == ["a", "b"]


def test_locks_go_both_ways() -> None:
    queues = (MessageQueue("T", "broker-a", 0), MessageQueue("T", "broker-a", 1))
    request = lock.LockRequest("G", "c", queues)
    assert lock.LockRequest.decode(request.encode()) == request
    answer = lock.encode_locked(queues[:1])
    assert answer == b'{"lockOKMQSet":[{"brokerName":"broker-a","queueId":0,"topic":"T"}]}'
    assert lock.decode_locked(answer) == [queues[0]]
    assert lock.LockRequest.decode(b'{"consumerGroup":"G","clientId":"c"}').queues == ()


def test_connections_go_both_ways() -> None:
    client = ClientConnection("c", "10.0.0.7:50432", "GO", 317)
    consumers = GroupConnections(
        (client,), ConsumerData("G", subscriptions=(Subscription.parse("T", "A", 1),))
    )
    pieces = connection.consumer_connection_pieces(consumers.connections, consumers.group)
    assert GroupConnections.decode("G", b"".join(pieces)) == consumers
    body = b"".join(connection.producer_connection_pieces((client,)))
    assert connection.decode_producer_connections(body) == (client,)
    assert java_json.loads(body)["connectionSet"][0]["clientAddr"] == "10.0.0.7:50432"


@pytest.mark.parametrize("decode", [HeartbeatData.decode, ClientCheck.decode])
def test_a_body_that_would_take_long_to_read_is_refused(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(InvalidRequest, match="1048577 bytes; 1048576 are allowed"):
        decode(JAVA.ljust(1024 * 1024 + 1))


def test_a_large_body_in_the_dialect_of_java_is_refused_and_a_small_one_read() -> None:
    body = b'{0:1,"clientId":"c"}'
    assert ClientCheck.decode(body).client_id == "c"
    with pytest.raises(InvalidRequest, match="not standard JSON"):
        ClientCheck.decode(body.ljust(32 * 1024 + 1))


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"tagsSet": ["a"] * 4097, "codeSet": [1] * 4096}, "8193 tags of a subscription"),
        ({"tagsSet": ["a" * 8193] * 4}, "32772 characters of the tags of a subscription"),
        ({"subString": "a" * 32_769}, "32769 characters of an expression"),
    ],
)
def test_one_subscription_has_no_more_than_is_read_in_a_step(members: dict[str, object], why: str) -> None:
    subscription = {"topic": "T", **members}
    consumers = [{"groupName": "g", "subscriptionDataSet": [subscription]}]
    with pytest.raises(InvalidRequest, match=why):
        HeartbeatData.decode(java_json.dumps({"clientID": "c", "consumerDataSet": consumers}))
    with pytest.raises(InvalidRequest, match=why):
        ClientCheck.decode(java_json.dumps({"clientId": "c", "group": "g", "subscriptionData": subscription}))
