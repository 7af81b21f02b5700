"""Bodies that clients read: routes in both dialects, members."""

import pytest

from bolide.model import limits
from bolide.model.errors import ProtocolError
from bolide.model.offsets import MessageQueue
from bolide.wire.bodies.client import Route, RouteQueues, decode_members, decode_route
from bolide.wire.bodies.route import BrokerData, QueueData, TopicRoute

ROUTE = (
    b'{"brokerDatas":[{"brokerAddrs":{%s:"10.0.0.5:10911",%s:"10.0.0.6:10911"},"brokerName":"broker-a",'
    b'"cluster":"c"}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,'
    b'"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":2}]}'
)


@pytest.mark.parametrize("ids", [(b"0", b"1"), (b'"0"', b'"1"')], ids=["bare", "quoted"])
def test_a_route_is_read_with_bare_and_with_quoted_broker_ids(ids: tuple[bytes, bytes]) -> None:
    route = decode_route(ROUTE % ids)
    assert route.queues == (RouteQueues("broker-a", 4, 2, 6),)
    assert route.brokers == {"broker-a": {0: "10.0.0.5:10911", 1: "10.0.0.6:10911"}}
    assert [queue.queue_id for queue in route.readable("T")] == [0, 1, 2, 3]
    assert [queue.queue_id for queue in route.writable("T")] == [0, 1]
    assert [queue.queue_id for queue in route.writable("T", 1)] == [0]


def test_queues_without_permission_or_without_a_master_are_left_out() -> None:
    parts = (RouteQueues("a", 1, 1, 4), RouteQueues("b", 1, 1, 2), RouteQueues("c", 1, 1, 6))
    route = Route(parts, {"a": {0: "x:1"}, "b": {0: "x:2"}, "c": {1: "x:3"}})
    assert route.readable("T") == [MessageQueue("T", "a", 0), MessageQueue("T", "c", 0)]
    assert route.writable("T") == [MessageQueue("T", "b", 0)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"not json",
        b'{"queueDatas":[7]}',
        b'{"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":"many","writeQueueNums":1}]}',
        b'{"brokerDatas":[{"brokerName":"a","brokerAddrs":{"zero":"x:1"}}]}',
        b'{"brokerDatas":[{"brokerName":"a","brokerAddrs":7}]}',
    ],
)
def test_what_is_no_route_is_one_error(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="route"):
        decode_route(body)


def test_members_are_a_list_of_text_or_an_error() -> None:
    assert decode_members(b'{"consumerIdList":["a","b"]}') == ["a", "b"]
    for body in (b"{}", b"[]", b'{"consumerIdList":[1]}', b'{"consumerIdList":7}', b"x"):
        with pytest.raises(ProtocolError, match="members"):
            decode_members(body)


def broker(name: str, *addresses: str) -> BrokerData:
    return BrokerData(name, "c", dict(enumerate(addresses)))


SOUND = broker("sound", "10.0.0.5:10911")
SOUND_QUEUES = QueueData("sound", 4, 4, 6)


@pytest.mark.parametrize(
    "odd",
    [
        broker("odd\x1b[2J\n", "10.0.0.6:10911"),
        broker("", "10.0.0.6:10911"),
        broker("o" * 256, "10.0.0.6:10911"),
        broker("odd", "10.0.0.6"),
        broker("odd", "10.0.0.6:0"),
        broker("odd", "10.0.0.6:99999999999999999999"),
        broker("odd", "10.0.0.6:10911\n"),
        broker("odd", *["10.0.0.6:10911"] * (limits.BROKER_ADDRESSES_MAX + 1)),
    ],
)
def test_a_broker_that_cannot_be_used_is_left_out_and_the_others_are_not(odd: BrokerData) -> None:
    queues = QueueData(odd.broker_name, 4, 4, 6)
    route = decode_route(TopicRoute((queues, SOUND_QUEUES), (odd, SOUND)).encode())
    assert route.brokers == {"sound": {0: "10.0.0.5:10911"}}
    assert {queue.broker_name for queue in route.readable("T")} == {"sound"}
    assert route.left_out
    assert all(text.isprintable() and len(text) < 1000 for text in route.left_out)


@pytest.mark.parametrize("count", [-1, 65_537, 2**31 - 1])
def test_a_broker_with_an_impossible_number_of_queues_is_left_out(count: int) -> None:
    told = TopicRoute((QueueData("odd", count, 1, 6), SOUND_QUEUES), (SOUND, broker("odd", "10.0.0.6:1")))
    route = decode_route(told.encode())
    assert [part.broker_name for part in route.queues] == ["sound"]
    assert str(count) in route.left_out[0]


def test_a_route_is_bounded_in_brokers_queues_and_bytes() -> None:
    many = [f"b{number}" for number in range(limits.ROUTE_BROKERS_MAX + 1)]
    for told in (
        TopicRoute((), tuple(broker(name, "10.0.0.5:1") for name in many)),
        TopicRoute(tuple(QueueData(name, 1, 1, 6) for name in many)),
        TopicRoute(tuple(QueueData(name, 40_000, 1, 6) for name in many[:2])),
        TopicRoute((), (broker("b", "10.0.0.5:1"),), order_config="x" * limits.ROUTE_BYTES_MAX),
    ):
        with pytest.raises(ProtocolError, match="a route"):
            decode_route(told.encode())


def test_a_broker_named_twice_has_its_queues_once() -> None:
    route = decode_route(TopicRoute((SOUND_QUEUES,) * 100, (SOUND,) * 100).encode())
    assert len(route.readable("T")) == 4


def test_what_is_wrong_with_a_route_is_said_in_few_words() -> None:
    with pytest.raises(ProtocolError) as raised:
        decode_route(b'{"brokerDatas":[{"brokerName":"a","brokerAddrs":{"%s":"x:1"}}]}' % (b"1" * 100_000))
    assert len(str(raised.value)) < 200


def test_members_are_bounded() -> None:
    text = b'{"consumerIdList":[%s]}'
    assert (
        len(decode_members(text % b",".join([b'"a"'] * limits.GROUP_MEMBERS_MAX))) == limits.GROUP_MEMBERS_MAX
    )
    with pytest.raises(ProtocolError, match="members"):
        decode_members(text % b",".join([b'"a"'] * (limits.GROUP_MEMBERS_MAX + 1)))
