"""Bodies of requests and answers, each with the parser that reads it."""

import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from bolide.model.data_version import DataVersion
from bolide.model.errors import ProtocolError, RequestError
from bolide.model.offsets import MessageQueue
from bolide.model.steps import at_once
from bolide.model.topic import Subscription, TopicConfig
from bolide.wire.bodies import (
    admin,
    client,
    connection,
    group,
    group_table,
    lock,
    offset,
    properties,
    registration,
    route,
    running,
    topic,
    write,
)
from tests.fuzz.target import Target, same_again

_QUEUE = MessageQueue("T", "b", 3)
_TOPIC = TopicConfig("orders", 4, 8, 6, order=True, attributes={"+k": "v"})
_ROUTE = route.TopicRoute(
    queues=(route.QueueData("b", 4, 4, 6),),
    brokers=(route.BrokerData("b", "c", {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}, rivals=("10.0.0.9:1",)),),
    filter_servers={"a": ["b"]},
    order_config="b:4",
)
_CONSUMER = group.ConsumerData(
    "g", subscriptions=(Subscription.parse("T", "A || B", 7), Subscription.parse("U", "*"))
)
_HEARTBEAT = group.HeartbeatData("id@1", ("p",), (_CONSUMER,))
_CONNECTION = connection.ClientConnection("id", "1.2.3.4:5", "JAVA", 493)
_REGISTRATION = registration.RegistrationBody(
    DataVersion(counter=3, timestamp_ms=1_700_000_000_000),
    (_TOPIC, *(TopicConfig(f"t{n}") for n in range(3))),
    ("f",),
)
_TOKENS = tuple(
    b'"%s":' % name
    for name in (
        *(
            b"groupName",
            b"subString",
            b"tagsSet",
            b"codeSet",
            b"subVersion",
            b"brokerDatas",
            b"brokerAddrs",
            b"queueId",
        ),
        *(
            b"topicConfigTable",
            b"dataVersion",
            b"topicSysFlag",
            b"perm",
            b"readQueueNums",
            b"attributes",
            b"mqSet",
        ),
        *(
            b"offsetTable",
            b"maxOffset",
            b"consumerDataSet",
            b"filterServerList",
            b"topicConfigSerializeWrapper",
        ),
    )
)


def _joined(pieces: Callable[..., Any]) -> Callable[[Any], bytes]:
    return lambda value: b"".join(pieces(value))


def _body(
    name: str,
    corpus: Sequence[bytes],
    decode: Callable[[bytes], Any],
    encode: Callable[[Any], bytes] | None = None,
    **more: Any,
) -> Target:
    if encode is not None:
        more["holds"] = same_again(encode, decode)
    return Target(f"bodies.{name}", lambda: corpus, decode, (RequestError,), tokens=_TOKENS, **more)


def _decode_connections(body: bytes) -> connection.GroupConnections:
    return connection.GroupConnections.decode("g", body)


def _encode_connections(value: connection.GroupConnections) -> bytes:
    return b"".join(connection.consumer_connection_pieces(value.connections, value.group))


def _decode_plain(body: bytes) -> registration.HeardRegistration:
    return registration.HeardRegistration.decode(body, compressed=False, version=493)


def _hold_connections(value: connection.GroupConnections) -> None:
    """Of subscriptions to one topic the last one counts."""
    again = _decode_connections(_encode_connections(value))
    assert again.connections == value.connections
    assert {one.topic: one for one in again.group.subscriptions} == {
        one.topic: one for one in value.group.subscriptions
    }


def _decode_packed(body: bytes) -> registration.HeardRegistration:
    """From blocks that are not packed yet, so that changes reach what is in them."""
    return registration.HeardRegistration.decode(zlib.compress(body, 1), compressed=True, version=493)


def _hold_registration(heard: registration.HeardRegistration) -> None:
    """A broker with these topics is heard so, in both forms.  Of topics that are told twice the last one counts; the
    packed form has no place for names with blanks, which no broker has."""
    topics = {one.name: one for one in heard.topics}
    body = registration.RegistrationBody(
        heard.data_version,
        tuple(TopicConfig(one.name, one.read_queues, one.write_queues, one.perm, sys_flag=one.sys_flag)
              for one in topics.values()),
        heard.filter_servers,
    )  # fmt: skip
    plain = _decode_plain(body.encode())
    assert (plain.data_version, plain.filter_servers) == (heard.data_version, heard.filter_servers)
    assert plain.topics == tuple(topics.values())
    if not any(re.search(r"\s", name) for name in topics):
        packed = registration.HeardRegistration.decode(
            body.encode(compressed=True), compressed=True, version=493
        )
        assert packed.topics == tuple(one._replace(sys_flag=0) for one in topics.values())


def _read_changes(data: bytes) -> dict[str, str]:
    changes = topic.parse_attribute_changes(data.decode("utf-8", "replace"))
    return topic.alter_attributes({"a": "1", "b": "2"}, changes)


def _hold_route(value: client.Route) -> None:
    assert len(value.readable("T")) <= 2**20
    assert all(one.broker_name in value.brokers for one in value.writable("T"))


_PLAIN_ROUTES = [_ROUTE.encode(), _ROUTE.encode(bare_keys=True)]
_PACKED = _REGISTRATION.encode(compressed=True)

BODIES = [
    _body(
        "admin.topics",
        [b'{"topicConfigList":[%s,{"topicName":"b"}]}' % topic.encode_topic_config(_TOPIC)],
        lambda body: list(admin.decode_topic_list(body)),
    ),
    _body(
        "admin.groups",
        [b'{"groupConfigList":[{"groupName":"g","retryMaxTimes":3},{"groupName":"h"}]}'],
        lambda body: list(admin.decode_group_list(body)),
    ),
    _body(
        "admin.offsets",
        [b'{"messageQueueTable":{{"brokerName":"b","queueId":3,"topic":"T"}:7}}'],
        lambda body: at_once(admin.decode_member_offsets(body)),
    ),
    _body("group.heartbeat", [_HEARTBEAT.encode()], group.HeartbeatData.decode, group.HeartbeatData.encode),
    _body(
        "group.check",
        [group.ClientCheck("id", "g", _CONSUMER.subscriptions[0]).encode()],
        group.ClientCheck.decode,
        group.ClientCheck.encode,
    ),
    _body(
        "group.members",
        [group.encode_member_ids(["a", "b"])],
        group.decode_member_ids,
        group.encode_member_ids,
    ),
    _body(
        "lock.request",
        [lock.LockRequest("g", "id", (_QUEUE,)).encode()],
        lock.LockRequest.decode,
        lock.LockRequest.encode,
    ),
    _body("lock.answer", [lock.encode_locked([_QUEUE])], lock.decode_locked, lock.encode_locked),
    _body(
        "offset.stats",
        [b"".join(offset.consume_stats_pieces([(_QUEUE, offset.QueueProgress(9, 5, 6, 1))]))],
        offset.decode_consume_stats,
        lambda value: b"".join(offset.consume_stats_pieces(value.items())),
    ),
    _body(
        "properties",
        [b"# why\nbrokerName = b\nflushDiskType=SYNC_FLUSH\n\n a = b = c \n"],
        properties.parse_settings,
        properties.format_settings,
    ),
    _body("registration.plain", [_REGISTRATION.encode()], _decode_plain, holds=_hold_registration),
    _body("registration.packed", [zlib.decompress(_PACKED)], _decode_packed, holds=_hold_registration),
    _body(
        "registration.stream",
        [_PACKED],
        lambda body: registration.HeardRegistration.decode(body, compressed=True, version=0),
    ),
    _body("route.topic", _PLAIN_ROUTES, route.TopicRoute.decode, route.TopicRoute.encode),
    _body(
        "route.dialect",
        _PLAIN_ROUTES,
        route.TopicRoute.decode,
        lambda value: value.encode(bare_keys=True),
    ),
    _body(
        "route.cluster",
        [route.ClusterInfo({"b": _ROUTE.brokers[0]}, {"c": ["b"]}).encode()],
        route.ClusterInfo.decode,
        route.ClusterInfo.encode,
    ),
    _body(
        "route.topics",
        [route.TopicList(("a", "b"), "1.2.3.4:5").encode()],
        route.TopicList.decode,
        route.TopicList.encode,
    ),
    _body("route.kv", [route.encode_kv_table({"a": "b"})], route.decode_kv_table, route.encode_kv_table),
    _body(
        "route.members",
        [route.encode_member_group("c", "b", {0: "1.2.3.4:5"})],
        route.decode_member_group,
        lambda value: route.encode_member_group("c", "b", value),
    ),
    _body(
        "write.ranges",
        [b"".join(write.ranges_pieces([write.StoredRange("T", 1, 2, 3)]))],
        write.decode_ranges,
        _joined(write.ranges_pieces),
    ),
    _body(
        "topic.stats",
        [b"".join(topic.topic_stats_pieces([(_QUEUE, topic.QueueBounds(1, 2, 3))]))],
        topic.decode_topic_stats,
        lambda value: b"".join(topic.topic_stats_pieces(value.items())),
    ),
    _body(
        "topic.config",
        [topic.encode_topic_config(_TOPIC)],
        topic.decode_topic_config,
        topic.encode_topic_config,
    ),
    _body(
        "topic.table",
        [
            b'{"dataVersion":{"counter":1},"topicConfigTable":{"orders":%s}}'
            % topic.encode_topic_config(_TOPIC)
        ],
        topic.decode_topic_table,
    ),
    _body(
        "topic.groups", [b'{"groupList":["a","b"]}'], topic.decode_groups, _joined(topic.group_list_pieces)
    ),
    _body(
        "group.table",
        [
            b'{"dataVersion":{"counter":1},"subscriptionGroupTable":{"g":{"groupName":"g","retryMaxTimes":16}}}'
        ],
        group_table.decode_group_table,
    ),
    _body(
        "group.offsets",
        [b'{"offsetTable":{"t@g":{0:5,1:7}}}', b'{"offsetTable":{"t@g":{"0":5}}}'],
        group_table.decode_offset_table,
    ),
    _body(
        "running.direct",
        [b'{"autoCommit":true,"consumeResult":"CR_SUCCESS","order":false,"remark":"","spentTimeMills":3}'],
        running.decode_direct_result,
    ),
    _body("topic.attributes", [b"+a=1,-b,+message.type=FIFO"], _read_changes),
    _body(
        "connection.consumers",
        [_encode_connections(connection.GroupConnections((_CONNECTION,), _CONSUMER))],
        _decode_connections,
        holds=_hold_connections,
    ),
    _body(
        "connection.producers",
        [b"".join(connection.producer_connection_pieces([_CONNECTION]))],
        connection.decode_producer_connections,
        _joined(connection.producer_connection_pieces),
    ),
    Target(
        "client.route",
        lambda: _PLAIN_ROUTES,
        client.decode_route,
        (ProtocolError,),
        _hold_route,
        tokens=_TOKENS,
    ),
    Target(
        "client.members", lambda: [group.encode_member_ids(["a"])], client.decode_members, (ProtocolError,)
    ),
]
