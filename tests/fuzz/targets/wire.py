"""Frames, headers and bodies: what anybody can send to a server, and a server to a client."""

import inspect
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from bolide.model.data_version import DataVersion
from bolide.model.errors import ProtocolError, RequestError
from bolide.model.limits import FRAME_BYTES_MAX
from bolide.model.offsets import MessageQueue
from bolide.model.send_rows import COLUMNS
from bolide.model.topic import Subscription, TopicConfig
from bolide.wire.bodies import client, connection, group, lock, offset, properties, registration, route, topic
from bolide.wire.command import COMPACT, Command, encode_frame
from bolide.wire.frame import FrameReader, Intake, decode_frame
from bolide.wire.headers import group as group_headers
from bolide.wire.headers import offset as offset_headers
from bolide.wire.headers import pull as pull_headers
from bolide.wire.headers import query as query_headers
from bolide.wire.headers import route as route_headers
from bolide.wire.headers import send as send_headers
from bolide.wire.headers import topic as topic_headers
from bolide.wire.pull_frame import PullFrame
from bolide.wire.schema import Header, layout_of
from bolide.wire.send_run import SendRun
from tests.fuzz.mutate import SIZE_BYTES_MAX
from tests.fuzz.target import Target, same_again
from tests.property.test_scan_twins import Speller
from tests.property.twins import FRAMES, PULLS, outcome
from tests.unit.wire.stage import frame, send_frame

# ---- frames -------------------------------------------------------------------------------------------------

_PULL = (
    b'{"code":11,"extFields":{"consumerGroup":"g","topic":"T","queueId":"0","queueOffset":"5","maxMsgNums":"32",'
    b'"sysFlag":"6","commitOffset":"4","suspendTimeoutMillis":"15000","subscription":"*","subVersion":"0"},'
    b'"flag":0,"language":"JAVA","opaque":9,"serializeTypeCurrentRPC":"JSON","version":493}'
)
_FRAME_TOKENS = (
    *(
        b'"extFields":{',
        b'"code":',
        b'"code":10',
        b'"code":11',
        b'"code":310',
        b'"flag":2',
        b'"opaque":',
        b'"b":"',
    ),
    *(
        b'"i":"',
        b'"m":"true"',
        b'"queueOffset":"',
        b'"commitOffset":"',
        b"\x00\x00\x00\x04",
        b"\x01\x00\x00\x00",
    ),
)

_SMALL_INTAKE, _INTAKE = Intake(256), Intake(SIZE_BYTES_MAX)
_RUNS = [SendRun(4096) for _ in FRAMES]
"""Memory that is used again and again, as by the connections of a server."""


def _frames() -> list[bytes]:
    one, two = Command(34, {"a": "b", "c": "1"}, b"body", opaque=3), Command(0, {}, remark="why not", flag=1)
    compact = [
        encode_frame(Command(command.code, command.fields, command.body, command.remark, 7, 1, form=COMPACT))
        for command in (one, two)
    ]
    spelled = [frame(Speller(seed).header(), b"x") for seed in range(30)]
    pulls = [frame(_PULL), *(frame(Speller(seed).pull_header()) for seed in range(10))]
    batch = struct.pack(">IIIiI", 24, 0, 0, 0, 2) + b"hi" + struct.pack(">H", 0)
    sends = [send_frame(1) + send_frame(2, b"second", i="K\x01a\\b\x02"), send_frame(3, batch, m="true")]
    return [encode_frame(one), encode_frame(two), *compact, *spelled, *pulls, *sends]


def mend_frame(data: bytes) -> bytes:
    """One frame of all of it, whose header ends with the last brace."""
    if len(data) < 8:
        return data
    header_length = max(0, data.rfind(b"}") - 7) if data[4] == 0 else len(data) - 8
    return struct.pack(">IB", len(data) - 4, data[4]) + header_length.to_bytes(3, "big") + data[8:]


def _read_commands(data: bytes) -> list[Command]:
    """Through a reader whose memory is smaller than many frames."""
    reader = FrameReader(_SMALL_INTAKE)
    commands = reader.feed(data)
    assert reader.kept <= len(data)
    return commands


def _hold_commands(commands: list[Command]) -> None:
    for command in commands:
        assert decode_frame(encode_frame(command)) == command


def _read_hot(data: bytes) -> list[tuple[bytes, Command]]:
    """Runs and pulls as a server's connection takes them, each beside what the general path makes of its frame."""
    reader = FrameReader(_INTAKE, hot=True)
    reader.writable()[: len(data)] = data
    reader.received(len(data))
    found: list[tuple[bytes, Command]] = []
    while (item := reader.next()) is not None:
        if isinstance(item, SendRun):
            found += [(bytes(item.frame(row)), _general(item.frame(row))) for row in range(item.count)]
        elif isinstance(item, PullFrame):
            found.append((item.frame(), _general(item.frame())))
    return found


def _general(whole: bytes | memoryview) -> Command:
    """What a plain request is to the general path, which may find fault with parts that nobody needs."""
    try:
        return decode_frame(whole)
    except ProtocolError:
        return Command(-1)


def _hold_hot(found: list[tuple[bytes, Command]]) -> None:
    assert all(command.code in (-1, 10, 310, 320, 11, 361) for _, command in found)


def _scan(data: bytes) -> None:
    """Compiled and readable scans take the same requests, and answer them alike."""
    seen = [_scanned(module, run, data) for module, run in zip(FRAMES, _RUNS, strict=True)]
    assert seen[0] == seen[1]
    pulls = [outcome(module.scan_pull, bytearray(data), 0, len(data)) for module in PULLS]
    assert pulls[0] == pulls[1]
    counts = [module.count_marks(memoryview(data)) for module in FRAMES]
    assert counts[0] == counts[1]


def _scanned(module: Any, run: SendRun, data: bytes) -> tuple[Any, ...]:
    """Everything that a scan leaves behind, and the answers."""
    stop = module.scan_sends(run, bytearray(data), 0, len(data), FRAME_BYTES_MAX)
    answers = module.encode_send_answers(run, 0, run.count, b"7F000001", b',"x":"y"},"opaque":')
    rows = run.rows[: run.count * COLUMNS]
    return stop, rows, run.topics, bytes(run.properties[: run.properties_used]), answers


# ---- headers ------------------------------------------------------------------------------------------------


def _headers_in(*modules: ModuleType) -> dict[str, type[Header]]:
    return {
        name: found
        for module in modules
        for name, found in inspect.getmembers(module, inspect.isclass)
        if issubclass(found, Header) and found is not Header
    }


HEADERS = _headers_in(
    group_headers, offset_headers, pull_headers, query_headers, route_headers, send_headers, topic_headers
)


def _header_texts() -> list[bytes]:
    """The name of the class, then a line for each field, with a value that most types take."""
    return [
        "\n".join([name, *(f"{one.spelling}=1" for one in layout_of(found))]).encode()
        for name, found in HEADERS.items()
    ]


def _read_header(data: bytes) -> Header | None:
    name, *lines = data.decode("utf-8", "replace").split("\n")
    fields = dict(line.partition("=")[::2] for line in lines)
    if name == "SendRequest":
        send_headers.SendRequest.decode_long(
            {"topic": "T", **{letter: text for letter, text in fields.items() if len(letter) > 1}}
        )
    return HEADERS[name].decode(fields) if name in HEADERS else None


def _hold_header(header: Header | None) -> None:
    if header is not None:
        assert type(header).decode(header.encode()) == header


# ---- bodies -------------------------------------------------------------------------------------------------

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
]

WIRE = [
    Target(
        "frame.commands", _frames, _read_commands, (ProtocolError,), _hold_commands, mend_frame, _FRAME_TOKENS
    ),
    Target("frame.hot", _frames, _read_hot, (ProtocolError,), _hold_hot, mend_frame, _FRAME_TOKENS),
    Target("frame.twins", _frames, _scan, mend=mend_frame, tokens=_FRAME_TOKENS),
    Target(
        "headers",
        _header_texts,
        _read_header,
        (RequestError,),
        _hold_header,
        tokens=tuple(name.encode() for name in HEADERS),
    ),
    *BODIES,
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
