"""Connections that cost: frames that never end, headers full of fields, floods, answers that nobody reads.

Whatever they do, the server's memory stays within its budget, and who asks beside them is answered.
"""

import json
import socket
import struct
from collections.abc import Iterator

import pytest

from bolide.model.limit import MIB
from bolide.model.limits import (
    DIALECT_BYTES_MAX,
    FRAME_BYTES_MAX,
    HEADER_BYTES_MAX,
    HEADER_FIELDS_MAX,
    KEPT_BYTES_MAX,
    LARGE_FRAMES_BYTES_MAX,
)
from tests.attack.stage import COMPACT_FORM, ONE_WAY, frame, framed, grows_at_most, is_closed, pour, strangers
from tests.peers import frames
from tests.peers.server import Together
from tests.peers.waiting import wait_until

LOCK, TOPIC_STATS, REGISTER_TOPIC, RUNTIME_INFO, PULL = 41, 202, 217, 28, 361
INVALID = 29
SOON_SECONDS = 30


@pytest.fixture(params=["nameserver", "broker"])
def address(request: pytest.FixtureRequest, server: Together) -> str:
    chosen: str = getattr(server, request.param)
    return chosen


@pytest.fixture(autouse=True)
def bystander(server: Together) -> Iterator[None]:
    """A connection to each server that was there before and must work all along."""
    with frames.Connection(server.broker) as broker, frames.Connection(server.nameserver) as names:
        yield
        assert broker.ask(frames.SEND_MESSAGE_V2, frames.send_fields("bystander"), b"x").code == 0
        assert names.ask(frames.GET_CLUSTER_INFO).code == 0


# ---- headers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [0, COMPACT_FORM], ids=["json", "compact"])
def test_a_header_over_the_limit_closes_its_connection_before_it_has_come(address: str, form: int) -> None:
    with strangers(address, 1) as (stranger,):
        stranger.sendall(struct.pack(">II", FRAME_BYTES_MAX, form | HEADER_BYTES_MAX + 1))
        assert is_closed(stranger)


def test_two_million_empty_fields_cost_next_to_nothing(server: Together, address: str) -> None:
    fields = bytes(6) * 2_700_000
    header = struct.pack(">hBhiii", 34, 0, 453, 1, 0, 0) + struct.pack(">I", len(fields)) + fields
    with grows_at_most(server, 20), strangers(address, 10) as many:
        assert max(pour(many, framed(header, form=COMPACT_FORM))) < len(header) / 2
        assert all(map(is_closed, many))


@pytest.mark.parametrize("form", [0, COMPACT_FORM], ids=["json", "compact"])
def test_more_fields_than_a_header_may_have_close_the_connection(address: str, form: int) -> None:
    count = HEADER_FIELDS_MAX + 1
    names = struct.pack(">h1sI", 1, b"x", 0) * count
    compact = struct.pack(">hBhiii", 34, 0, 453, 1, 0, 0) + struct.pack(">I", len(names)) + names
    plain = json.dumps({"code": 34, "extFields": {str(number): "" for number in range(count)}}).encode()
    with strangers(address, 1) as (stranger,):
        stranger.sendall(framed(compact if form else plain, form=form))
        assert is_closed(stranger)


def test_a_header_full_of_lists_closes_the_connection(address: str) -> None:
    header = b'{"code":34,"x":[' + b"[]," * 80_000 + b"[]]}"
    with strangers(address, 1) as (stranger,):
        stranger.sendall(framed(header))
        assert is_closed(stranger)


def test_the_largest_legal_properties_are_taken_however_they_are_escaped(server: Together) -> None:
    """Every one of 32,000 characters is written as six."""
    fields = frames.send_fields("escaped") | {"i": "k\x01" + "\x03" * 32_000 + "\x02"}
    with frames.Connection(server.broker) as connection:
        answer = connection.ask(frames.SEND_MESSAGE_V2, fields, b"x")
        assert answer.code == frames.SUCCESS, answer.remark


@pytest.mark.parametrize(
    "text", [b'{0:"a"},', b"{0:[[[]]]},", b'{{"q":1}:1},'], ids=["numbers", "lists", "objects"]
)
def test_more_of_the_java_dialect_than_is_allowed_is_refused_in_words(server: Together, text: bytes) -> None:
    body = b'{"mqSet":[' + text * (DIALECT_BYTES_MAX // len(text)) + b"{}]}"
    with frames.Connection(server.broker) as broker, frames.Connection(server.nameserver) as names:
        for answer in (broker.ask(LOCK, {}, body), names.ask(REGISTER_TOPIC, {"topic": "T"}, body)):
            assert answer.code == INVALID
            assert "not standard JSON" in answer.remark
        megabyte = b'{"mqSet":[' + text * (MIB // len(text)) + b"{}]}"
        assert broker.ask(LOCK, {}, megabyte).code == INVALID
        assert names.ask(REGISTER_TOPIC, {"topic": "T"}, megabyte).code == INVALID


def test_the_java_dialect_is_understood_where_it_is_short(server: Together) -> None:
    body = b'{"queueDatas":[],"x":{0:"%s"}}' % (b"a" * (DIALECT_BYTES_MAX - 100))
    with frames.Connection(server.nameserver) as names:
        assert names.ask(REGISTER_TOPIC, {"topic": "T"}, body).code == frames.SUCCESS


# ---- time -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", [0, ONE_WAY], ids=["answered", "one-way"])
def test_a_flood_from_many_connections_leaves_others_their_turn(address: str, flag: int) -> None:
    """Each asks 5,000 times at once and last of all for an answer; an honest one is served long before they are."""
    flood = frame(frames.GET_ROUTE, {"topic": "nobody"}, flag=flag) * 5_000
    with strangers(address, 20) as many, frames.Connection(address) as honest:
        for stranger in many:
            stranger.setblocking(False)
        taken = pour(many, flood)
        for _ in range(20):
            honest.ask(frames.GET_CLUSTER_INFO)
        assert min(taken) > 0
        assert sum(map(_answered, many)) < 20 * 5_000


def test_answers_that_nobody_asked_for_are_dropped_and_others_served(address: str) -> None:
    unasked = frame(0, flag=1) * 4_000
    with strangers(address, 5) as many, frames.Connection(address) as honest:
        pour(many, unasked)
        for _ in range(10):
            honest.ask(frames.GET_CLUSTER_INFO)
        many[0].sendall(frame(9999, opaque=5))
        assert b'"opaque":5' in many[0].recv(4096)  # the connection goes on


# ---- memory -----------------------------------------------------------------------------------------------------

WHOLE_BUDGET = (KEPT_BYTES_MAX + LARGE_FRAMES_BYTES_MAX) / 1e6 + 40


def test_frames_that_never_end_stay_within_the_room_for_large_ones(server: Together, address: str) -> None:
    """Forty connections with all but the last byte of 15 MiB each; then one that means it."""
    body = bytes(15 * MIB)
    with strangers(address, 40) as many:
        for stranger in many:
            stranger.setblocking(False)
        with grows_at_most(server, int(LARGE_FRAMES_BYTES_MAX / 1e6) + 60):
            pour(many, frame(34, body=body)[:-1])
            with frames.Connection(address) as honest:
                honest.ask(frames.GET_CLUSTER_INFO)
                honest.ask(
                    9999, body=bytes(4 * MIB)
                )  # waits for room, until those that stand still are closed


def test_many_beginnings_of_small_frames_stay_within_the_budget(server: Together, address: str) -> None:
    part = frame(34, body=bytes(250_000))[:-1]
    with grows_at_most(server, int(WHOLE_BUDGET)), strangers(address, 800) as many:
        for stranger in many:
            stranger.setblocking(False)
        pour(many, part)
        with frames.Connection(address) as honest:
            for _ in range(10):
                honest.ask(frames.GET_CLUSTER_INFO)
        if address == server.broker:
            assert _kept_bytes(server) <= KEPT_BYTES_MAX


def test_answers_that_nobody_reads_stay_within_the_budget(server: Together) -> None:
    with frames.Connection(server.broker) as connection:
        for _ in range(16):
            fields = frames.send_fields("unread")
            assert connection.ask(frames.SEND_MESSAGE_V2, fields, bytes(256 * 1024)).code == 0
    pulls = b"".join(frame(PULL, _pull_fields("unread"), opaque=number) for number in range(20))
    with grows_at_most(server, int(WHOLE_BUDGET)), strangers(server.broker, 60) as many:
        pour(many, pulls)
        with frames.Connection(server.broker) as honest:
            for _ in range(20):
                assert honest.ask(frames.SEND_MESSAGE_V2, frames.send_fields("bystander"), b"x").code == 0
        assert _kept_bytes(server) <= KEPT_BYTES_MAX
    wait_until(lambda: _kept_bytes(server) == 0, SOON_SECONDS, "nothing is kept for who has gone")


def _answered(stranger: socket.socket) -> int:
    """How many answers wait to be read."""
    try:
        return stranger.recv(64 * MIB).count(b'"opaque"')
    except BlockingIOError:
        return 0


def _kept_bytes(server: Together) -> int:
    with frames.Connection(server.broker) as connection:
        figures = json.loads(connection.ask(RUNTIME_INFO).body)["table"]
    return int(figures["connectionsKeptBytes"])


def _pull_fields(topic: str) -> dict[str, str]:
    return {
        "consumerGroup": "deaf",
        "topic": topic,
        "queueId": "0",
        "queueOffset": "0",
        "maxMsgNums": "32768",
        "maxMsgBytes": str(4 * MIB),
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "0",
    }
