"""Bodies that clients read: routes in both dialects, members."""

import pytest

from bolide.model.errors import ProtocolError
from bolide.model.offsets import MessageQueue
from bolide.wire.bodies.client import Route, RouteQueues, decode_members, decode_route

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
        b'{"queueDatas":[{}]}',
        b'{"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":9999999,"writeQueueNums":1}]}',
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
