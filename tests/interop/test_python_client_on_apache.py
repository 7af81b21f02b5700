"""Our Python clients against the original servers, 5.5.0 and 4.9.7: produce, consume in a group, pull."""

import asyncio
import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import bolide.aio
from bolide import (
    LitePullConsumer,
    Message,
    MessageQueue,
    Producer,
    PullConsumer,
    PullStatus,
    PushConsumer,
    StoredMessage,
)
from bolide.admin.connection import AdminConnection
from bolide.admin.messages import find_messages, message_by_offset_id, message_by_unique_id
from bolide.cli.main import main
from bolide.model.errors import RemoteError
from bolide.net.clock import SystemClock
from tests.interop import ledger, python_polling, python_push
from tests.interop.python_clients import Seen, everything, first_of, polled, polling, stored_at, subscribed
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
    settings = {"recallMessageEnable": "true"} if version == java.LATEST else {}
    server = Together(Apache(version), tmp_path_factory.mktemp("apache"), settings).start()
    yield server
    server.kill()  # its orderly stop takes ten seconds and more


@pytest.fixture
def producer(apache: Together) -> Iterator[Producer]:
    with Producer(apache.nameserver, group="python-producer", timeout_ms=PATIENCE_MS) as producer:
        yield producer


@pytest.fixture
def reader(apache: Together) -> Iterator[PullConsumer]:
    with PullConsumer(apache.nameserver, group=_name("reader")) as reader:
        yield reader


def _name(what: str) -> str:
    return f"python-{what}-{next(_numbers)}"


def _is_classic(apache: Together) -> bool:
    return isinstance(apache.kind, Apache) and apache.kind.version == java.CLASSIC


def test_what_is_sent_is_stored_as_it_was_and_where_the_receipt_says(
    producer: Producer, reader: PullConsumer
) -> None:
    topic = _name("topic")
    sent = Message(
        topic, "käse".encode(), tags="paid", keys=["42", "43"], properties={"ключ": "значение"}, flag=9
    )
    receipt = producer.send(sent)
    message = stored_at(reader, receipt)
    assert (message.topic, message.body, message.flag) == (topic, sent.body, 9)
    assert (message.tags, message.keys, message.properties["ключ"]) == ("paid", ("42", "43"), "значение")
    assert message.message_id == receipt.message_id
    assert message.offset_message_id == receipt.offset_message_id
    assert message.queue_offset == receipt.queue_offset


def test_large_bodies_are_stored_packed_and_read_back_whole(producer: Producer, reader: PullConsumer) -> None:
    topic = _name("topic")
    for size in (4095, 4096, 1_000_000):
        body = b"abcdefgh" * (size // 8 + 1)
        receipt = producer.send(Message(topic, body[:size]))
        assert stored_at(reader, receipt).body == body[:size]
        block = reader.pull_block(receipt.queue, receipt.queue_offset, 1)
        assert (len(block.data) < size) == (size >= 4096)


def test_a_batch_becomes_separate_messages_one_behind_the_other(
    producer: Producer, reader: PullConsumer
) -> None:
    topic = _name("topic")
    receipts = producer.send_batch(
        [Message(topic, b"%d" % n, keys=[f"k{n}"], properties={"n": str(n)}) for n in range(20)]
    )
    assert stored_at(reader, receipts[-1]).body == b"19"
    found = {message.message_id: message for message in everything(reader, topic)}
    assert len(found) == 20
    for number, receipt in enumerate(receipts):
        message = found[receipt.message_id]
        assert (message.body, message.keys) == (b"%d" % number, (f"k{number}",))
        assert (message.queue_offset, message.offset_message_id) == (
            receipt.queue_offset,
            receipt.offset_message_id,
        )
    assert len({receipt.queue for receipt in receipts}) == 1


def test_one_way_chosen_and_selected_sends_arrive(producer: Producer, reader: PullConsumer) -> None:
    topic = _name("topic")
    chosen = producer.queues(topic)[3]
    assert producer.send(Message(topic, b"chosen"), queue=chosen).queue == chosen
    selected = [producer.send(Message(topic, b"selected"), selector=lambda q, _: q[1]) for _ in range(3)]
    assert {receipt.queue.queue_id for receipt in selected} == {1}
    producer.send_oneway(Message(topic, b"one way"))
    wait_until(lambda: len(everything(reader, topic)) == 5, PATIENCE_SECONDS, "five messages")


def test_offsets_of_queues_and_groups(apache: Together, producer: Producer, reader: PullConsumer) -> None:
    topic = _name("topic")
    queue = producer.queues(topic)[0]
    early = [producer.send(Message(topic, b"early"), queue=queue) for _ in range(5)]
    stored = [stored_at(reader, receipt) for receipt in early]
    clock = SystemClock()
    wait_until(
        lambda: clock.now_ms() > stored[-1].store_timestamp_ms + 50, PATIENCE_SECONDS, "the clock goes on"
    )
    between = clock.now_ms()
    wait_until(lambda: clock.now_ms() > between + 50, PATIENCE_SECONDS, "the clock goes on")
    late = [producer.send(Message(topic, b"late"), queue=queue) for _ in range(5)]
    assert stored_at(reader, late[-1]).body == b"late"
    assert (reader.min_offset(queue), reader.max_offset(queue)) == (0, 10)
    assert reader.offset_at(queue, 0) == 0
    assert reader.offset_at(queue, stored[0].store_timestamp_ms) == 0
    assert reader.committed_offset(queue) == (0 if _is_classic(apache) else None)  # 4.x: 0 for a young queue
    reader.commit(queue, 4)
    assert reader.committed_offset(queue) == 4
    if (
        isinstance(apache.kind, Apache) and apache.kind.version == java.LATEST
    ):  # the classic one says "nearest"
        assert reader.offset_at(queue, between) == 5
    beyond = reader.pull(queue, 99)
    assert (beyond.status, beyond.next_offset) == (PullStatus.OFFSET_ILLEGAL, 10)


def test_a_pull_may_filter_by_tag_and_wait_for_a_message(producer: Producer, reader: PullConsumer) -> None:
    topic = _name("topic")
    queue = producer.queues(topic)[0]
    for tag in ("a", "b", "c"):
        stored_at(reader, producer.send(Message(topic, tag.encode(), tags=tag), queue=queue))
    assert [m.body for m in reader.pull(queue, 0, tags="a || c").messages] == [b"a", b"c"]
    nothing = reader.pull(queue, 0, tags="z")
    assert (nothing.status, nothing.next_offset) == (PullStatus.NO_MATCHED_MESSAGE, 3)
    timer = threading.Timer(0.3, lambda: producer.send(Message(topic, b"late"), queue=queue))
    timer.start()
    assert [m.body for m in reader.pull(queue, 3, wait_ms=PATIENCE_MS).messages] == [b"late"]
    timer.join()


def test_a_refusal_is_an_error_with_the_brokers_code_and_words(producer: Producer) -> None:
    topic = _name("topic")
    producer.send(Message(topic, b"x"))
    with pytest.raises(RemoteError) as raised:
        producer.send(Message(topic, b"x"), queue=MessageQueue(topic, "broker-a", 999))
    assert raised.value.response_code in (1, 29)


def test_members_that_join_and_leave_share_the_queues_and_lose_nothing(
    apache: Together, producer: Producer, reader: PullConsumer
) -> None:
    topic, group = _name("topic"), _name("group")
    producer.send(Message(topic, b"0"))
    sent = itertools.count(1)
    first, second = Seen(), Seen()

    def send(count: int) -> None:
        for number in itertools.islice(sent, count):
            producer.send(Message(topic, b"%d" % number))

    def owned(consumer: PushConsumer) -> set[MessageQueue]:
        return {queue for queue in consumer.queues if queue.topic == topic}

    with ExitStack() as stack:
        one = stack.enter_context(subscribed(apache, topic, group, first, start_from="first"))
        wait_until(lambda: len(owned(one)) == 4, PATIENCE_SECONDS, "one member, four queues")
        send(100)
        two = subscribed(apache, topic, group, second, start_from="first")
        with two:
            wait_until(
                lambda: len(owned(one)) == len(owned(two)) == 2 and not owned(one) & owned(two),
                PATIENCE_SECONDS,
                lambda: f"two queues each, not {owned(one)} and {owned(two)}",
            )
            send(100)
            wait_until(
                lambda: len(set(first.bodies + second.bodies)) == 201, PATIENCE_SECONDS, "201 messages"
            )
            assert second.messages
        wait_until(lambda: len(owned(one)) == 4, PATIENCE_SECONDS, "the one that stays has all four again")
        send(100)
        wait_until(lambda: len(set(first.bodies + second.bodies)) == 301, PATIENCE_SECONDS, "301 messages")
    ledger.assert_nothing_lost([str(number) for number in range(301)], first.bodies + second.bodies)
    with PullConsumer(apache.nameserver, group=group) as check:
        for queue in check.queues(topic):
            assert int(check.committed_offset(queue) or 0) == int(check.max_offset(queue))


def test_a_member_sees_only_its_tags_and_goes_on_where_the_group_was(
    apache: Together, producer: Producer
) -> None:
    topic, group = _name("topic"), _name("group")
    for number in range(20):
        producer.send(Message(topic, b"%d" % number, tags="ab"[number % 2]))
    seen = Seen()
    with subscribed(apache, topic, group, seen, tags="a", start_from="first"):
        seen.wait(10)
    assert Counter(seen.bodies) == Counter(str(number) for number in range(0, 20, 2))
    for number in range(20, 30):
        producer.send(Message(topic, b"%d" % number, tags="ab"[number % 2]))
    again = Seen()
    with subscribed(apache, topic, group, again, tags="a", start_from="first"):
        again.wait(5)
    assert Counter(again.bodies) == Counter(str(number) for number in range(20, 30, 2))


def test_an_sql_expression_chooses_by_properties_in_a_group_and_in_a_pull(
    apache: Together, producer: Producer, reader: PullConsumer
) -> None:
    """FI-03"""
    topic, sql = _name("topic"), "price BETWEEN 5 AND 9 AND colour IS NOT NULL"
    queue = producer.queues(topic)[0]
    for price in range(20):
        properties = {"price": str(price)} | ({"colour": "red"} if price % 2 else {})
        last = producer.send(Message(topic, b"%d" % price, properties=properties), queue=queue)
    stored_at(reader, last)
    seen = Seen()
    with subscribed(apache, topic, _name("group"), seen, sql=sql, start_from="first"):
        seen.wait(3)
    assert sorted(seen.bodies) == ["5", "7", "9"]
    assert [message.body for message in reader.pull(queue, 0, sql=sql).messages] == [b"5", b"7", b"9"]
    nothing = reader.pull(queue, 0, sql="price > 99")
    assert (nothing.status, nothing.messages) == (PullStatus.NO_MATCHED_MESSAGE, [])


def test_a_message_comes_by_its_delay_level(producer: Producer, reader: PullConsumer) -> None:
    topic = _name("topic")
    receipt = producer.send(Message(topic, b"later", delay_level=1))
    assert receipt.recall_handle is None
    message = first_of(reader, receipt.queue)
    assert message.store_timestamp_ms - message.born_timestamp_ms >= 1000


def test_timed_messages_come_in_time_and_a_recalled_one_does_not(
    apache: Together, producer: Producer, reader: PullConsumer, capfd: pytest.CaptureFixture[str]
) -> None:
    """TM-01, TM-02: with the clients and with the command line; a broker of 4.9 knows no times."""
    topic, at = _name("topic"), ("-n", apache.nameserver)
    queue = producer.queues(topic)[0]
    if _is_classic(apache):
        at_once = producer.send(Message(topic, b"at once", delay=60), queue=queue)
        assert at_once.recall_handle is None
        assert stored_at(reader, at_once).body == b"at once"
        return
    clock = SystemClock()
    due_ms = clock.now_ms() + 16_000  # behind those that are recalled, which takes a busy machine its time
    recalled = producer.send(Message(topic, b"recalled", delay=15), queue=queue)
    kept = producer.send(Message(topic, b"kept", deliver_at=due_ms), queue=queue)
    assert kept.recall_handle
    assert main(("send", topic, "never", "--in", "15s", *at)) == 0
    handle = capfd.readouterr().out.strip()
    assert main(("message", "recall", handle, "--yes", *at)) == 0
    assert producer.recall(recalled) == recalled.message_id
    message = first_of(reader, queue)
    assert (message.body, message.message_id) == (b"kept", kept.message_id)
    assert message.store_timestamp_ms >= due_ms
    assert [message.body for message in everything(reader, topic)] == [b"kept"]
    with pytest.raises(RemoteError):
        producer.recall(kept)


def test_a_new_group_begins_at_the_moment_it_is_told(
    apache: Together, producer: Producer, reader: PullConsumer
) -> None:
    topic = _name("topic")
    queue = producer.queues(topic)[0]
    early = [producer.send(Message(topic, b"%d" % number), queue=queue) for number in range(3)]
    last = stored_at(reader, early[-1]).store_timestamp_ms
    clock = SystemClock()
    wait_until(lambda: clock.now_ms() > last + 100, PATIENCE_SECONDS, "the clock goes on")
    moment = clock.now_ms()
    wait_until(lambda: clock.now_ms() > moment + 100, PATIENCE_SECONDS, "the clock goes on")
    for number in range(3, 6):
        producer.send(Message(topic, b"%d" % number), queue=queue)
    seen = Seen()
    with subscribed(apache, topic, _name("group"), seen, start_from=moment):
        seen.wait(3)
        if not _is_classic(apache):  # 4.x begins a young queue at 0 whatever the group asks for
            assert seen.bodies == ["3", "4", "5"]


def test_a_message_whose_listener_fails_comes_again_and_is_dead_in_the_end(
    apache: Together, producer: Producer, reader: PullConsumer
) -> None:
    """RY-01, RY-03, RY-07."""
    python_push.fails_comes_again_and_is_dead(apache, producer, reader, _name("topic"), _name("group"))


def test_orderly_members_see_every_queue_in_order_while_one_leaves(
    apache: Together, producer: Producer, reader: PullConsumer
) -> None:
    """OR-01, OR-03, OR-05."""
    python_push.keeps_the_order(apache, producer, reader, _name("topic"), _name("group"))


def test_in_broadcasting_every_member_gets_everything_and_the_broker_keeps_no_offset(
    apache: Together, producer: Producer, tmp_path: Path
) -> None:
    """CO-02."""
    python_push.gives_everything_to_everybody(apache, producer, tmp_path, _name("topic"), _name("group"))


def test_in_broadcasting_a_file_of_java_is_gone_on_with(
    apache: Together, version: str, producer: Producer, witnesses: Callable[[str], Witness], tmp_path: Path
) -> None:
    """CO-02."""
    stage = Stage(witnesses(version), apache.nameserver)
    try:
        python_push.goes_on_where_java_was(stage, apache, producer, tmp_path, _name("topic"), _name("group"))
    finally:
        stage.close()


def test_a_java_member_and_a_python_member_share_one_group(
    apache: Together, version: str, producer: Producer, witnesses: Callable[[str], Witness]
) -> None:
    """Both compute the shares by themselves: together they must have every queue once."""
    topic, group = _name("topic"), _name("group")
    producer.send(Message(topic, b"warm-0"))
    stage = Stage(witnesses(version), apache.nameserver)
    seen = Seen()
    try:
        java_member = stage.consume(topic, group)
        with subscribed(apache, topic, group, seen) as member:
            wait_until(
                lambda: (
                    len([q for q in member.queues if q.topic == topic]) == 2
                    and len(java_member.queues(topic)) == 2
                ),
                PATIENCE_SECONDS,
                "two queues each",
            )
            sent = stage.produce(topic, 100).finish().bodies
            wait_until(
                lambda: {*sent} <= {*java_member.bodies, *map(_payload_id, seen.bodies)},
                PATIENCE_SECONDS,
                lambda: f"{len(java_member.bodies)} and {len(seen.bodies)} of {len(sent)}",
            )
            assert len(java_member.bodies) >= 40
            assert len(seen.bodies) >= 40
            said = stage.admin(f"consumerStatus -g {group} -i {member._core._instance.client_id}")
            assert "PROP_CONSUMEORDERLY" in said
            assert topic in said.partition("#Consumer RT&TPS#")[2], said
    finally:
        stage.close()


def test_a_polling_member_fetches_ahead_and_goes_on_where_the_group_was(
    apache: Together, producer: Producer, reader: PullConsumer
) -> None:
    """CO-13: the original's brokers give 32 messages per pull, so a backlog takes many."""
    topic, group = _name("topic"), _name("group")
    queue = producer.queues(topic)[0]
    for first in range(0, 2_000, 100):
        batch = [Message(topic, b"%d" % number) for number in range(first, first + 100)]
        last = producer.send_batch(batch, queue=queue)[-1]
    stored_at(reader, last)
    with polling(apache, topic, group) as consumer:
        assert polled(consumer, 1_500, 1_000) == list(range(1_500))
    with polling(apache, topic, group) as consumer:
        assert polled(consumer, 500) == list(range(1_500, 2_000))
        consumer.seek(queue, 1_990)
        assert polled(consumer, 10) == list(range(1_990, 2_000))
        consumer.commit()
        assert consumer.committed(queue) == 2_000
    assigned = LitePullConsumer(apache.nameserver, group=_name("group"))
    assigned.assign([queue])
    with assigned:
        assigned.seek(queue, "first")
        assert polled(assigned, 2_000) == list(range(2_000))
        assigned.seek(queue, "first")
        producer.send_arrow(pa.table({"body": ["2000"], "queue_id": [queue.queue_id]}), topic=topic)
        batches = iter(lambda: assigned.poll_arrow(10_000, columns=["body"]), None)
        rows = (int(row["body"]) for batch in batches for row in batch.to_pylist())
        assert list(itertools.islice(rows, 2_001)) == list(range(2_001))


def test_a_java_and_a_python_member_that_poll_share_one_group(
    apache: Together, version: str, producer: Producer, witnesses: Callable[[str], Witness]
) -> None:
    """CO-13: the Java member ends when it has half of the messages, and the other one goes on."""
    python_polling.shares_with_java(apache, witnesses(version), producer, _name("topic"), _name("group"))


def _payload_id(body: str) -> str:
    """The name at the head of a body that the Java program made; the rest is filler."""
    return body.partition("|")[0]


def test_the_same_on_asyncio(apache: Together) -> None:
    topic = _name("topic")
    seen: list[bytes] = []

    async def scenario() -> None:
        done = asyncio.Event()

        async def handle(messages: list[StoredMessage]) -> None:
            seen.extend(message.body for message in messages)
            if len(seen) >= 200:
                done.set()

        async with bolide.aio.Producer(apache.nameserver, timeout_ms=PATIENCE_MS) as producer:
            await asyncio.gather(*(producer.send(Message(topic, b"%d" % number)) for number in range(200)))
        consumer = bolide.aio.PushConsumer(
            apache.nameserver, group=_name("group"), listener=handle, start_from="first"
        )
        await consumer.subscribe(topic)
        async with consumer, asyncio.timeout(PATIENCE_SECONDS):
            await done.wait()

    asyncio.run(scenario())
    assert Counter(seen) == Counter(b"%d" % number for number in range(200))


# ---- messages by key and by id -----------------------------------------------------------------------------------


def test_messages_are_found_by_key_and_by_both_ids(apache: Together, producer: Producer) -> None:
    """The original indexes a moment after it has acknowledged."""
    topic = _name("found")
    keys = (["Aa", "one"], ["BB"], ["Aa"])
    receipts = [producer.send(Message(topic, b"%d" % n, keys=words)) for n, words in enumerate(keys)]

    def ask(work: Callable[[AdminConnection], Coroutine[Any, Any, Any]]) -> Any:
        async def run() -> Any:
            async with AdminConnection(apache.nameserver) as servers:
                return await work(servers)

        return asyncio.run(run())

    def bodies(key: str) -> list[bytes]:
        return [one.body for one in ask(lambda servers: find_messages(servers, topic, key))]

    wait_until(
        lambda: bodies("Aa") == [b"0", b"2"], PATIENCE_SECONDS, "the messages are not found by their key"
    )
    assert bodies("BB") == [b"1"]
    assert bodies("none") == []
    by_id = [
        partial(message_by_unique_id, topic=topic, message_id=receipts[1].message_id),
        partial(message_by_offset_id, message_id=receipts[1].offset_message_id),
    ]
    for found in map(ask, by_id):
        assert (found.body, found.message_id) == (b"1", receipts[1].message_id)
        assert found.broker_name == receipts[1].queue.broker_name


# ---- the command line, last: it drains the broker


def test_a_broker_is_listed_drained_and_let_back(apache: Together, capfd: pytest.CaptureFixture[str]) -> None:
    def listed() -> dict[str, Any]:
        capfd.readouterr()
        assert main(("broker", "list", "--json", "-n", apache.nameserver)) == 0
        (broker,) = json.loads(capfd.readouterr().out)
        return {key: broker[key] for key in ("broker", "answers", "drained", "reason")}

    told = {"broker": "broker-a", "answers": True, "drained": False, "reason": None}
    assert listed() == told
    for command, drained in (("drain", True), ("undrain", False)):
        assert main(("broker", command, "broker-a", "--yes", "-n", apache.nameserver)) == 0
        assert listed() == {**told, "drained": drained}
