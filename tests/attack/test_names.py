"""Registration and the name server: nobody fills it for the others, stops it, or makes a broker unknown."""

import json
import socket
import struct
import zlib
from collections.abc import Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from bolide.model import limits
from tests.attack.stage import ONE_WAY, frame, grows_at_most
from tests.peers import frames
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer, Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.system.command import run

HEART_BEAT, PUT_KV, REGISTER_BROKER, UNREGISTER_BROKER = 34, 100, 103, 104
SYSTEM_ERROR = 1
HONEST = "TBW102"


def registration_fields(name: str, address: str = "", *, packed: bool = True) -> dict[str, str]:
    return {
        **{"brokerName": name, "brokerAddr": address or f"{name}:10911", "clusterName": "C"},
        **{"haServerAddr": "", "brokerId": "0", "compressed": "true" if packed else "false"},
    }


def packed_body(topics: Iterable[str], attributes: bytes = b"{}") -> bytes:
    """As a broker of 5.x packs it."""
    lines = [f"{topic} 4 4 6 SINGLE_TAG ".encode() + attributes for topic in topics]
    blocks = [block(b'{"counter":1}'), struct.pack(">I", len(lines)), *map(block, lines)]
    return zlib.compress(b"".join([*blocks, block(b"[]"), struct.pack(">I", 0)]))


def block(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def register(
    connection: frames.Connection, name: str, topics: Iterable[str], **options: bytes
) -> frames.Answer:
    return connection.ask(REGISTER_BROKER, registration_fields(name), packed_body(topics, **options))


def is_routed(server: Together, topic: str = HONEST) -> bool:
    with frames.Connection(server.nameserver) as connection:
        return connection.ask(frames.GET_ROUTE, {"topic": topic}).code == frames.SUCCESS


def make_topic(server: Together, topic: str) -> None:
    with frames.Connection(server.broker) as connection:
        assert connection.ask(frames.SEND_MESSAGE_V2, frames.send_fields(topic), b"x").code == frames.SUCCESS


def served_meanwhile(server: Together, request: bytes) -> int:
    """How many routes somebody else is told before the answer to a request comes."""
    host, _, port = server.nameserver.rpartition(":")
    with (
        socket.create_connection((host, int(port)), frames.TIMEOUT_SECONDS) as attacker,
        frames.Connection(server.nameserver) as honest,
    ):
        attacker.sendall(request)
        attacker.setblocking(False)
        served = 0
        while True:
            assert honest.ask(frames.GET_ROUTE, {"topic": HONEST}).code == frames.SUCCESS
            try:
                attacker.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                served += 1
            else:
                return served


# ---- a registration always fits --------------------------------------------------------------------------------


def test_heartbeats_with_thousands_of_long_group_names_leave_the_broker_routed(server: Together) -> None:
    """Each of them made a retry topic, and together a registration that no name server takes."""
    with frames.Connection(server.broker) as connection:
        for number in range(4):
            groups = [f"{number}-{one}-".ljust(120, "g") for one in range(4_000)]
            wanted = [
                {
                    "groupName": group,
                    "consumeType": "CONSUME_PASSIVELY",
                    "messageModel": "CLUSTERING",
                    "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                    "subscriptionDataSet": [{"topic": f"%RETRY%{group}", "subString": "*", "subVersion": 1}],
                }
                for group in groups
            ]
            beat = {"clientID": "stranger", "consumerDataSet": wanted, "producerDataSet": []}
            connection.ask(HEART_BEAT, {}, json.dumps(beat).encode())
        make_topic(server, "after-the-groups")
        wait_until(
            lambda: is_routed(server, "after-the-groups"), PATIENCE_SECONDS, "a new topic has no route"
        )
        with frames.Connection(server.nameserver) as names:
            listed = json.loads(names.ask(206).body)["topicList"]
    made = [topic for topic in listed if topic.startswith("%RETRY%")]
    assert len(made) <= limits.RETRY_TOPICS_PER_CONNECTION_MAX


# ---- time ------------------------------------------------------------------------------------------------------


def test_others_are_served_while_a_packed_registration_is_unpacked(server: Together) -> None:
    """Some KiB on the wire; the attributes of its topics are deep, and nobody looks into them."""
    body = packed_body((f"deep-{number}" for number in range(30_000)), attributes=b"[" * 60)
    assert len(body) < 512 * 1024
    assert served_meanwhile(server, frame(REGISTER_BROKER, registration_fields("deep"), body)) >= 20


def test_others_are_served_while_a_plain_registration_is_parsed(server: Together) -> None:
    one = {"readQueueNums": 4, "writeQueueNums": 4, "perm": 6, "attributes": {"+note": "x" * 60}}
    table = {f"plain-{number}": one for number in range(30_000)}
    body = json.dumps({"topicConfigSerializeWrapper": {"topicConfigTable": table}}).encode()
    fields = registration_fields("plain", packed=False)
    assert served_meanwhile(server, frame(REGISTER_BROKER, fields, body)) >= 20


def test_what_unpacks_without_end_is_refused_and_costs_little(server: Together) -> None:
    """The last one unpacks to a registration, but for its end."""
    fine = block(b"{}") + struct.pack(">I", 0) + block(b"[]") + struct.pack(">I", 0)
    bodies = (
        zlib.compress(bytes(50_000_000)),
        zlib.compress(fine + bytes(50_000_000)),
        zlib.compress(fine)[:-2],
    )
    with grows_at_most(server, 16), frames.Connection(server.nameserver) as connection:
        for body in bodies:
            answer = connection.ask(REGISTER_BROKER, registration_fields("bomb"), body)
            assert answer.code != frames.SUCCESS
            assert answer.remark


# ---- shares ----------------------------------------------------------------------------------------------------


def test_strangers_that_register_all_they_can_leave_room_and_the_broker_where_it_is(server: Together) -> None:
    with ExitStack() as stack, grows_at_most(server, 256):
        for number, count in enumerate((110_000, 110_000, 50_000)):
            connection = stack.enter_context(frames.Connection(server.nameserver))
            for name, code in (("all", frames.SUCCESS), ("more", SYSTEM_ERROR)):
                topics = (f"{number}-{name}-{topic}" for topic in range(count))
                assert register(connection, f"hog-{number}-{name}", topics).code == code
        with frames.Connection(server.nameserver) as newcomer:
            some = [f"honest-{number}" for number in range(900)]
            assert register(newcomer, "honest", some).code == frames.SUCCESS
            assert is_routed(server, "honest-899")
        make_topic(server, "in-a-full-house")
        wait_until(lambda: is_routed(server, "in-a-full-house"), PATIENCE_SECONDS, "a new topic has no route")
    # Their connections are closed now, and the sweeping goes in steps.
    wait_until(lambda: not is_routed(server, "0-all-0"), PATIENCE_SECONDS, "strangers are still there")
    assert is_routed(server)


def test_a_connection_registers_so_many_brokers_and_clusters_and_no_more(server: Together) -> None:
    with frames.Connection(server.nameserver) as connection:
        codes = [register(connection, f"many-{number}", ["a", "b"]).code for number in range(40)]
    assert codes.count(frames.SUCCESS) == limits.BROKERS_PER_CONNECTION_MAX


def test_many_registrations_at_once_keep_no_broker_from_registering(server: Together) -> None:
    """What waits is bounded for each connection, and a small change waits for a step of each of the others."""
    body = packed_body(f"flood-{number}" for number in range(20_000))
    flood = b"".join(
        frame(REGISTER_BROKER, registration_fields("flood"), body, flag=ONE_WAY, opaque=number)
        for number in range(50)
    )
    with ExitStack() as stack, grows_at_most(server, 128):
        for _ in range(5):
            connection = stack.enter_context(frames.Connection(server.nameserver))
            connection._socket.sendall(flood)
        with frames.Connection(server.nameserver) as honest:
            assert register(honest, "honest-b", ["a", "b"]).code == frames.SUCCESS
        assert is_routed(server)


def test_key_value_settings_have_a_bound_for_all_of_them(server: Together) -> None:
    value = "v" * 60_000
    with frames.Connection(server.nameserver) as connection:
        codes = [
            connection.ask(PUT_KV, {"namespace": "n", "key": f"k{number}", "value": value}).code
            for number in range(30)
        ]
    assert codes.count(frames.SUCCESS) == limits.KV_TABLE_BYTES_MAX // (60_000 + 70)
    assert codes[-1] != frames.SUCCESS


# ---- two brokers of one name -----------------------------------------------------------------------------------


@pytest.fixture
def apart(tmp_path: Path) -> Path:
    return tmp_path / "servers"


def test_a_second_broker_of_a_name_does_not_start(apart: Path) -> None:
    names = NameServer(Bolide(), apart / "names").start()
    first = Broker(Bolide(), apart / "first", "broker-a", [names]).start()
    second = Broker(Bolide(), apart / "second", "broker-a", [names])
    try:
        process = second.launch()
        assert process.wait_exit(PATIENCE_SECONDS) == 5
        assert f"a broker called broker-a (id 0) is running at {first.address}" in process.log_tail()
        assert "give it another brokerName" in process.log_tail()
        assert run("doctor", "-n", names.address).code == 0
    finally:
        first.stop()
        names.stop()


def test_two_brokers_of_one_name_that_could_not_know_are_named_by_name_server_and_doctor(apart: Path) -> None:
    """Both start while their name server is down."""
    names = NameServer(Bolide(), apart / "names")
    brokers = [Broker(Bolide(), apart / f"broker-{number}", "broker-a", [names]) for number in range(2)]
    try:
        for broker in brokers:
            broker.launch().wait_ready(partial(frames.answers, broker.address))
        names.start()
        assert names.process is not None
        log = names.process.log_tail
        wait_until(lambda: "two brokers call themselves 'broker-a'" in log(), PATIENCE_SECONDS, log)
        doctor = run("doctor", "-n", names.address)
        assert doctor.code == 1
        assert "calls itself broker-a, too" in doctor.out
        assert "give it another brokerName" in doctor.out
    finally:
        for broker in brokers:
            broker.stop()
        names.stop()
