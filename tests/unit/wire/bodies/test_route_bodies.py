"""Bodies of the name server: the exact text for both kinds of clients, and reading what others write."""

import pytest

from bolide.model.errors import InvalidRequest
from bolide.wire.bodies import route as bodies
from bolide.wire.bodies.route import BrokerData, ClusterInfo, QueueData, TopicList, TopicRoute

ROUTE = TopicRoute(
    queues=(QueueData("broker-a", 4, 4, 6),),
    brokers=(BrokerData("broker-a", "DefaultCluster", {1: "10.0.0.6:10911", 0: "10.0.0.5:10911"}),),
)
STANDARD = (
    b'{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.5:10911","1":"10.0.0.6:10911"},"brokerName":"broker-a",'
    b'"cluster":"DefaultCluster","enableActingMaster":false}],"filterServerTable":{},'
    b'"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
)
BARE = STANDARD.replace(b'"0":', b"0:").replace(b'"1":', b"1:")


def test_a_route_has_quoted_broker_ids_for_new_clients_and_bare_ones_for_old() -> None:
    assert ROUTE.encode() == STANDARD
    assert ROUTE.encode(bare_keys=True) == BARE


@pytest.mark.parametrize("text", [STANDARD, BARE])
def test_a_route_is_read_in_either_form(text: bytes) -> None:
    assert TopicRoute.decode(text) == ROUTE


def test_a_route_keeps_its_optional_parts() -> None:
    broker = BrokerData("a", "C", {0: "x:1"}, enable_acting_master=True, zone_name="z")
    full = TopicRoute((QueueData("a", 1, 2, 4, 3),), (broker,), {"x:1": ["f:1"]}, "a:4")
    assert TopicRoute.decode(full.encode()) == full


def test_the_flag_of_old_name_servers_is_read_under_its_old_spelling() -> None:
    text = (
        b'{"queueDatas":[{"brokerName":"a","perm":6,"readQueueNums":1,"topicSynFlag":2,"writeQueueNums":1}]}'
    )
    assert TopicRoute.decode(text).queues == (QueueData("a", 1, 1, 6, 2),)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"queueDatas":{}}',
        b'{"queueDatas":[1]}',
        b'{"brokerDatas":[{"brokerAddrs":{"x":"y"}}]}',
        b'{"brokerDatas":[{"brokerAddrs":{0:1}}]}',
        b'{"brokerDatas":[{"brokerName":5}]}',
        b'{"queueDatas":[{"perm":"many"}]}',
    ],
)
def test_a_malformed_route_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidRequest):
        TopicRoute.decode(text)


def test_a_route_in_pieces_is_the_same_text() -> None:
    full = TopicRoute(ROUTE.queues * 300, ROUTE.brokers * 300, {"x:1": ["f:1"]}, "a:4")
    for bare_keys in (False, True):
        pieces = list(full.pieces(bare_keys=bare_keys))
        assert b"".join(pieces) == full.encode(bare_keys=bare_keys)
        assert len(pieces) > 4


def test_brokers_that_contend_for_a_name_are_told() -> None:
    info = ClusterInfo({"a": BrokerData("a", "C", {0: "x:1"}, rivals=("y:1",))}, {"C": ["a"]})
    assert b'"rivalAddrs":["y:1"]' in info.encode()
    assert ClusterInfo.decode(info.encode()) == info


def test_cluster_info_goes_there_and_back_and_is_read_with_bare_ids() -> None:
    info = ClusterInfo({"a": BrokerData("a", "C", {0: "x:1"})}, {"C": ["a"]})
    assert ClusterInfo.decode(info.encode()) == info
    assert ClusterInfo.decode(info.encode().replace(b'"0":', b"0:")) == info


def test_topic_lists_and_tables_go_there_and_back() -> None:
    assert (
        TopicList(("T", "%RETRY%G"), "x:1").encode() == b'{"topicList":["T","%RETRY%G"],"brokerAddr":"x:1"}'
    )
    assert TopicList.decode(TopicList(("T",)).encode()) == TopicList(("T",))
    assert bodies.encode_kv_table({"a": "1"}) == b'{"table":{"a":"1"}}'
    assert bodies.decode_kv_table(b'{"table":{"a":"1"}}') == {"a": "1"}
    assert bodies.decode_member_group(bodies.encode_member_group("C", "a", {2: "y:1", 0: "x:1"})) == {
        0: "x:1",
        2: "y:1",
    }
