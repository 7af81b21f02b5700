"""Python producers and the original's brokers: transactions that end or are asked for, requests with replies."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from bolide import (
    Message,
    Producer,
    PullConsumer,
    StoredMessage,
    Transaction,
    TransactionProducer,
    reply_to,
)
from tests.interop import claims
from tests.interop.python_clients import Seen, everything, stored_at, subscribed
from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.apache import Apache
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

_numbers = itertools.count(1)


@pytest.fixture(scope="module", params=java.VERSIONS, ids=lambda version: f"server-{version}")
def version(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="module")
def apache(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    """A broker that asks for transactions soon."""
    server = Together(Apache(version), tmp_path_factory.mktemp("apache"), claims.LATER).start()
    yield server
    server.kill()


@pytest.fixture
def stage(apache: Together, version: str, witnesses: Callable[[str], Witness]) -> Iterator[Stage]:
    stage = Stage(witnesses(version), apache.nameserver)
    yield stage
    stage.close()


def _name(what: str) -> str:
    return f"python-{what}-{next(_numbers)}"


def _ends(outcome: Transaction) -> Callable[[Message], Transaction]:
    """A local function that has nothing to do."""
    return lambda message: outcome


def test_a_transaction_is_committed_rolled_back_or_asked_for(apache: Together) -> None:
    """TX-01, TX-02"""
    topic, asked = _name("topic"), []

    def check(message: StoredMessage) -> Transaction:
        asked.append(message)
        return Transaction.COMMIT if message.keys == ("kept",) else Transaction.ROLLBACK

    producer = TransactionProducer(
        apache.nameserver, group=_name("group"), check=check, timeout_ms=PATIENCE_MS
    )
    seen = Seen()
    with producer, subscribed(apache, topic, _name("readers"), seen, start_from="first"):
        for body, outcome in ((b"committed", Transaction.COMMIT), (b"rolled back", Transaction.ROLLBACK)):
            assert producer.send_in_transaction(Message(topic, body), _ends(outcome)).outcome is outcome
        for key in ("kept", "dropped"):
            large = Message(topic, key.encode() * 1_000, keys=[key], properties={"colour": "red"})
            producer.send_in_transaction(large, _ends(Transaction.UNKNOWN))
        wait_until(lambda: len(asked) >= 2, PATIENCE_SECONDS, "nobody is asked")
        seen.wait(2)
    assert sorted(body[:9] for body in seen.bodies) == ["committed", "keptkeptk"]
    assert {message.body for message in asked} == {b"kept" * 1_000, b"dropped" * 1_000}
    assert {(message.topic, message.properties["colour"]) for message in asked} == {(topic, "red")}


def test_another_member_is_asked_for_what_a_dead_one_has_begun(apache: Together) -> None:
    """TX-04"""
    topic, group, seen = _name("topic"), _name("group"), Seen()

    def not_yet(message: StoredMessage) -> Transaction:
        return Transaction.UNKNOWN

    with TransactionProducer(apache.nameserver, group=group, check=not_yet, timeout_ms=PATIENCE_MS) as first:
        first.send_in_transaction(Message(topic, b"inherited"), _ends(Transaction.UNKNOWN))
    heir = TransactionProducer(apache.nameserver, group=group, check=lambda message: Transaction.COMMIT)
    with heir, subscribed(apache, topic, _name("readers"), seen, start_from="first"):
        seen.wait(1)
    assert seen.bodies == ["inherited"]


def test_a_python_request_gets_the_reply_of_a_java_consumer(apache: Together, stage: Stage) -> None:
    """RR-01: also one that the Java client has compressed."""
    topic, name = stage.topic(queues=2), stage.name("replier")
    stage.witness.ask(
        "reply",
        name=name,
        topic=topic,
        group=stage.name("repliers"),
        nameserver=stage.nameserver,
        size=8192,
    )
    try:
        with Producer(apache.nameserver, group=_name("askers")) as producer:
            for number in range(5):
                reply = producer.request(Message(topic, b"question-%d" % number), timeout_ms=PATIENCE_MS)
                assert (reply.body.strip(), len(reply.body)) == (b"re: question-%d" % number, 8192)
    finally:
        stage.witness.ask("stop", name=name)


def test_a_java_request_gets_the_reply_of_a_python_consumer(apache: Together, stage: Stage) -> None:
    """RR-01"""
    topic = stage.topic(queues=2)
    with Producer(apache.nameserver, group=_name("repliers"), timeout_ms=PATIENCE_MS) as producer:

        def handle(messages: list[StoredMessage]) -> None:
            for message in messages:
                producer.send(reply_to(message, b"re: " + message.body.partition(b"|")[0]))

        with subscribed(apache, topic, _name("group"), handle, start_from="first"):
            name = stage.name("requester")
            answer = stage.witness.ask(
                "request", name=name, topic=topic, count=5, nameserver=stage.nameserver
            )
    assert answer["errors"] == []
    assert answer["replies"] == [f"re: {name}-{number:06d}" for number in range(5)]


def test_many_messages_and_each_compression_arrive_whole(apache: Together, stage: Stage) -> None:
    """PR-04, PR-05: read by Java and by Python."""
    topic = stage.topic(queues=4)
    java_reader = stage.consume(topic, stage.name("readers"))
    with (
        Producer(apache.nameserver, timeout_ms=PATIENCE_MS) as producer,
        PullConsumer(apache.nameserver) as reader,
    ):
        messages = [
            Message(topic, b"m%04d" % number, sharding_key=str(number % 7)) for number in range(2_000)
        ]
        receipts = producer.send_many(messages)
        for at in range(7):
            own = receipts[at::7]
            assert len({receipt.queue for receipt in own}) == 1
            assert sorted(own, key=lambda receipt: receipt.queue_offset) == own
        for compression in ("zlib", "lz4", "zstd"):
            with Producer(apache.nameserver, compression=compression, timeout_ms=PATIENCE_MS) as packing:
                receipt = packing.send(Message(topic, f"{compression}|".encode() * 1_000))
            assert stored_at(reader, receipt).body == f"{compression}|".encode() * 1_000
        wait_until(
            lambda: len(everything(reader, topic)) == 2_003, PATIENCE_SECONDS, "not all messages are there"
        )
        wait_until(
            lambda: {"zlib", "lz4", "zstd"} <= {*java_reader.bodies},
            PATIENCE_SECONDS,
            lambda: f"{len(java_reader.bodies)} messages, the last {java_reader.bodies[-3:]}",
        )


def test_the_trace_of_a_message_is_found_by_the_tool_of_the_original(apache: Together, stage: Stage) -> None:
    topic, group = stage.topic(queues=1), _name("traced")
    with Producer(apache.nameserver, group=group, timeout_ms=PATIENCE_MS, trace=True) as producer:
        receipt = producer.send(Message(topic, b"x", tags="paid", keys=["k"]))
    said = ""

    def is_told() -> bool:
        nonlocal said
        said = stage.admin(f"queryMsgTraceById -i {receipt.message_id}")
        return group in said

    wait_until(is_told, PATIENCE_SECONDS, lambda: said)
    assert "Pub" in said
    assert "success" in said
