"""Whatever strangers send to a real server: they get a clear answer or a closed connection, others notice nothing."""

import json
import socket
import struct
from collections.abc import Iterator

import pytest

from tests.peers import frames
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

UPDATE_TOPIC, PULL = 17, 11
NOT_SUPPORTED, INVALID, ILLEGAL_MESSAGE = 3, 29, 13
FRAME_BYTES_MAX = 16 * 1024 * 1024


@pytest.fixture(params=["nameserver", "broker"])
def address(request: pytest.FixtureRequest, server: Together) -> str:
    chosen: str = getattr(server, request.param)
    return chosen


@pytest.fixture(autouse=True)
def bystander(server: Together) -> Iterator[None]:
    """A connection to each server that was there before and must work all along."""
    folder = server.home / "data" / "consumequeue" / "bystander"
    with frames.Connection(server.broker) as broker, frames.Connection(server.nameserver) as names:
        assert broker.ask(frames.SEND_MESSAGE_V2, frames.send_fields("bystander"), b"x").code == 0
        wait_until((folder / "0").exists, PATIENCE_SECONDS, "the queue's folder, made a moment later")
        yield
        assert broker.ask(frames.SEND_MESSAGE_V2, frames.send_fields("bystander"), b"x").code == 0
        assert names.ask(frames.GET_CLUSTER_INFO).code == 0


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),  # a TLS greeting
        b"\xff" * 64,
        bytes(64),
        struct.pack(">ii", FRAME_BYTES_MAX + 1, 100),
        struct.pack(">ii", 0x7FFFFFFF, 0),
        struct.pack(">ii", -5, 0),
        struct.pack(">iI", 12, 0x00FFFFFF) + b"12345678",  # a header longer than its frame
        struct.pack(">iI", 12, 0x07000008) + b"12345678",  # a header form that does not exist
        struct.pack(">iI", 12, 8) + b"not json",
        struct.pack(">iI", 12, 8) + b'["list"]',
        struct.pack(">iI", 12, 0x01000008) + b"\x00\x0a\x00\x01\x00\x00\x00\x00",  # compact, cut short
    ],
    ids=[
        "http",
        "tls",
        "ones",
        "zeros",
        "over-limit",
        "2-gib",
        "negative",
        "long-header",
        "form",
        "text",
        "list",
        "cut",
    ],
)
def test_bytes_that_are_no_frame_close_their_own_connection(address: str, data: bytes) -> None:
    with _connect(address) as connection:
        connection.sendall(data)
        assert _read_to_end(connection) == b""


def test_a_frame_that_never_ends_holds_nobody_up(address: str) -> None:
    with _connect(address) as slow:
        slow.sendall(struct.pack(">ii", 8 * 1024 * 1024, 100) + b"{")
        with frames.Connection(address) as other:
            other.ask(frames.GET_CLUSTER_INFO)


@pytest.mark.parametrize("code", [0, 9999, 32767, -1, 0x7FFFFFFF])
def test_an_unknown_code_is_answered_as_such_and_the_connection_goes_on(address: str, code: int) -> None:
    with frames.Connection(address) as connection:
        answer = connection.ask(code)
        assert answer.code == NOT_SUPPORTED
        assert str(code) in answer.remark
        assert connection.ask(code).code == NOT_SUPPORTED


HOSTILE_NAMES = [
    *("", " ", ".", "..", "../../etc/passwd", "/etc/passwd", "a/b", "a\\b", "a\0b", "a\nb", "-" * 300),
    *("é", "名", "\u202e", "a b", "%s%n", "{}", "$(id)", "\ud83d\ude00"),
]


@pytest.mark.parametrize("name", [name for name in HOSTILE_NAMES if name != "%s%n"], ids=ascii)
def test_a_hostile_topic_name_is_refused_in_words_and_makes_no_file(server: Together, name: str) -> None:
    before = _files(server)
    with frames.Connection(server.broker) as connection:
        sent = connection.ask(frames.SEND_MESSAGE_V2, frames.send_fields(name), b"x")
        assert sent.code != frames.SUCCESS
        assert sent.remark
        created = connection.ask(
            UPDATE_TOPIC,
            {
                "topic": name,
                "defaultTopic": "TBW102",
                "readQueueNums": "1",
                "writeQueueNums": "1",
                "perm": "6",
            },
        )
        assert created.code != frames.SUCCESS
        assert created.remark
        pulled = connection.ask(PULL, _pull_fields(name))
        assert pulled.code != frames.SUCCESS
    assert _files(server) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"e": "99999"},
        {"e": "x"},
        {"e": "-7"},
        {"f": "99999999999999999999"},
        {"i": "\u0001" * 10},
        {"i": "a\u0001" + "b" * 40_000},
        {"b": "TBW102"},
        {"b": "SCHEDULE_TOPIC_XXXX"},
    ],
    ids=["queue", "queue-text", "queue-negative", "flags", "separators", "properties", "template", "system"],
)
def test_a_send_with_impossible_fields_is_answered_and_the_connection_goes_on(
    server: Together, changes: dict[str, str]
) -> None:
    fields = frames.send_fields("impossible") | changes
    with frames.Connection(server.broker) as connection:
        connection.ask(
            frames.SEND_MESSAGE_V2, fields, b"x"
        )  # refused or repaired: an answer comes either way
        assert connection.ask(frames.SEND_MESSAGE_V2, frames.send_fields("impossible"), b"x").code == 0


def test_a_body_over_the_limit_is_refused_in_words(server: Together) -> None:
    with frames.Connection(server.broker) as connection:
        fields = frames.send_fields("large")
        refused = connection.ask(frames.SEND_MESSAGE_V2, fields, bytes(5 * 1024 * 1024))
        assert refused.code == ILLEGAL_MESSAGE
        assert refused.remark
        assert connection.ask(frames.SEND_MESSAGE_V2, fields, bytes(3 * 1024 * 1024)).code == 0


def test_a_batch_that_lies_about_its_lengths_is_refused_whole(server: Together) -> None:
    fields = frames.send_fields("batch") | {"m": "true"}
    with frames.Connection(server.broker) as connection:
        for body in (b"", b"\xff" * 100, struct.pack(">iiiii", 1_000_000, 0, 0, 0, 5) + b"hello", bytes(20)):
            assert connection.ask(frames.SEND_MESSAGE_V2, fields, body).code != frames.SUCCESS


def test_a_header_with_wrong_types_is_answered_or_closes_only_itself(address: str) -> None:
    for members in (
        {"code": "105", "opaque": 1, "extFields": {"topic": 5}},
        {"code": 105, "opaque": 1, "extFields": {"topic": None}},
        {"code": {}, "opaque": 1},
        {"code": 105, "opaque": 1, "extFields": []},
        {"code": 105, "opaque": 2**40},
        {"code": 1e400, "opaque": 1},
    ):
        header = json.dumps(members).encode()
        with _connect(address) as connection:
            connection.sendall(struct.pack(">ii", 4 + len(header), len(header)) + header)
            connection.shutdown(socket.SHUT_WR)
            _read_to_end(connection)


def _pull_fields(topic: str) -> dict[str, str]:
    return {
        "consumerGroup": "g",
        "topic": topic,
        "queueId": "0",
        "queueOffset": "0",
        "maxMsgNums": "32",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "0",
    }


def _connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), PATIENCE_SECONDS)
    connection.settimeout(PATIENCE_SECONDS)
    return connection


def _read_to_end(connection: socket.socket) -> bytes:
    """Everything until the server closes; a time-out means that it did not."""
    received = b""
    try:
        while part := connection.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return received


def _files(server: Together) -> set[str]:
    """Queue folders of the store: what names become."""
    return {str(path) for path in (server.home / "data" / "consumequeue").glob("**") if path.is_dir()}
