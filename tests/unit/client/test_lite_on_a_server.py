"""The lite pull consumer against a real server, from plain code."""

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from typing import Any

import pytest

from bolide import LitePullConsumer, Message, MessageQueue, Producer, PullConsumer, StoredMessage
from bolide.net.clock import SystemClock
from bolide.testing import EmbeddedServer
from tests.peers.waiting import wait_until

MANY = 5_000


@pytest.fixture
def producer(bolide_module_server: EmbeddedServer) -> Iterator[Producer]:
    with Producer(bolide_module_server.nameserver) as producer:
        yield producer


def _send(producer: Producer, topic: str, numbers: range, queue: MessageQueue | None = None) -> None:
    for number in numbers:
        producer.send(Message(topic, b"%d" % number, properties={"n": str(number)}), queue=queue)


def _member(server: EmbeddedServer, topic: str, **options: object) -> LitePullConsumer:
    given = {"group": f"{topic}-readers", "start_from": "first"} | options
    consumer = LitePullConsumer(server.nameserver, **given)  # type: ignore[arg-type]
    consumer.subscribe(topic)
    return consumer


def _polled(consumer: LitePullConsumer, count: int) -> list[int]:
    messages: list[StoredMessage] = []

    def have_come() -> bool:
        messages.extend(consumer.poll(timeout_ms=100))
        return len(messages) >= count

    wait_until(have_come, 30, lambda: f"{len(messages)} of {count}")
    return sorted(int(message.body) for message in messages)


def test_a_group_goes_on_where_it_was(bolide_module_server: EmbeddedServer, producer: Producer) -> None:
    """CO-13."""
    server, topic = bolide_module_server, "lite-restart"
    _send(producer, topic, range(50))
    with _member(server, topic) as consumer:
        assert _polled(consumer, 50) == list(range(50))
    _send(producer, topic, range(50, 80))
    with _member(server, topic) as consumer:
        assert _polled(consumer, 30) == list(range(50, 80))


def test_one_poll_may_bring_many_messages_of_one_pull(
    bolide_module_server: EmbeddedServer, producer: Producer
) -> None:
    server, topic = bolide_module_server, "lite-many"
    queue = producer.queues(topic)[0]
    for first in range(0, MANY, 500):
        producer.send_batch([Message(topic, b"%d" % n) for n in range(first, first + 500)], queue=queue)
    with _member(server, topic) as consumer:
        polls: list[int] = []
        seen: list[int] = []
        while len(seen) < MANY:
            messages = consumer.poll(messages_max=1_000)
            polls.append(len(messages))
            seen += [int(message.body) for message in messages]
    assert seen == list(range(MANY))
    assert max(polls) == 1_000


def test_members_that_join_and_leave_lose_nothing(
    bolide_module_server: EmbeddedServer, producer: Producer
) -> None:
    """CO-13: a thread iterates over each member; the other one leaves in the middle."""
    server, topic = bolide_module_server, "lite-members"
    _send(producer, topic, range(200))
    seen: list[int] = []

    def iterate(consumer: LitePullConsumer) -> None:
        seen.extend(int(message.body) for message in consumer)

    with ExitStack() as stack:
        one = stack.enter_context(_member(server, topic))
        thread = threading.Thread(target=iterate, args=(one,))
        thread.start()
        with _member(server, topic) as two:
            wait_until(lambda: len(one.queues) == len(two.queues), 30, "equal shares")
            assert not set(one.queues) & set(two.queues)
            _send(producer, topic, range(200, 400))
            seen += _polled(two, 1)
        wait_until(lambda: len(one.queues) == len(one_and_two(server, topic)), 30, "all queues again")
        _send(producer, topic, range(400, 500))
        wait_until(lambda: len(set(seen)) == 500, 30, lambda: f"{len(set(seen))} of 500")
    thread.join(30)
    assert not thread.is_alive()


def one_and_two(server: EmbeddedServer, topic: str) -> list[MessageQueue]:
    with PullConsumer(server.nameserver) as reader:
        return reader.queues(topic)


def test_a_seek_goes_to_a_moment(bolide_module_server: EmbeddedServer, producer: Producer) -> None:
    server, topic, clock = bolide_module_server, "lite-moment", SystemClock()
    queue = producer.queues(topic)[0]
    _send(producer, topic, range(5), queue)
    early = clock.now_ms()
    wait_until(lambda: clock.now_ms() > early + 20, 5, "the clock goes on")
    moment = datetime.fromtimestamp((early + 10) / 1000)  # noqa: DTZ006 - local, as people write it
    _send(producer, topic, range(5, 10), queue)
    consumer = LitePullConsumer(server.nameserver, group="lite-moment-readers", start_from="last")
    consumer.assign([queue])
    with consumer:
        consumer.seek(queue, moment)
        assert _polled(consumer, 5) == list(range(5, 10))
        consumer.seek(queue, "first")
        assert _polled(consumer, 10) == list(range(10))


def test_a_new_group_that_gets_old_messages_by_last_is_told_so_and_one_that_went_on_is_not(
    bolide_module_server: EmbeddedServer, producer: Producer, caplog: pytest.LogCaptureFixture
) -> None:
    server, topic = bolide_module_server, "lite-young"
    queues = producer.queues(topic)
    _send(producer, topic, range(5), queues[0])
    caplog.set_level(logging.INFO, "bolide.client.start")
    known = {"group": "lite-young-known", "auto_commit": False}
    with _member(server, topic, **known), PullConsumer(server.nameserver, group="lite-young-known") as reader:
        for queue in queues:
            reader.commit(queue, 0)
    for group in ("lite-young-known", "lite-young-new"):
        with _member(server, topic, group=group, start_from="last") as consumer:
            assert _polled(consumer, 5) == list(range(5))
        said = [record.getMessage() for record in caplog.records if record.name == "bolide.client.start"]
        assert len(said) == (group == "lite-young-new")
    assert all(words in said[0] for words in (str(queues[0]), "5 messages", "start_from=datetime.now()"))


def test_an_sql_expression_chooses(bolide_module_server: EmbeddedServer, producer: Producer) -> None:
    server, topic = bolide_module_server, "lite-sql"
    _send(producer, topic, range(40))
    consumer = LitePullConsumer(server.nameserver, group="lite-sql-readers", start_from="first")
    consumer.subscribe(topic, sql="n BETWEEN 10 AND 14")
    with consumer:
        assert _polled(consumer, 5) == [10, 11, 12, 13, 14]
    with PullConsumer(server.nameserver, group="lite-sql-readers") as reader:
        for queue in reader.queues(topic):
            assert int(reader.committed_offset(queue) or 0) == int(reader.max_offset(queue))


def test_a_listener_may_use_the_consumer_that_tells_it(
    bolide_module_server: EmbeddedServer, producer: Producer
) -> None:
    server, topic = bolide_module_server, "lite-listener"
    _send(producer, topic, range(20))
    told = threading.Event()

    def changed(topic: str, queues: list[MessageQueue], ours: list[MessageQueue]) -> None:
        consumer.pause(ours)
        told.set()

    consumer = _member(server, topic, on_queues_changed=changed)
    with consumer:
        assert told.wait(30)
        while consumer.poll(timeout_ms=50):
            pass  # what came before it was told
        consumer.resume(consumer.queues)
        for queue in consumer.queues:
            consumer.seek(queue, 0)
        assert _polled(consumer, 20) == list(range(20))


def test_a_restarted_server_is_polled_again(bolide_server: EmbeddedServer) -> None:
    with Producer(bolide_server.nameserver) as producer:
        _send(producer, "orders", range(10))
        with _member(bolide_server, "orders") as consumer:
            assert _polled(consumer, 10) == list(range(10))
            bolide_server.stop()
            bolide_server.start()
            _send(producer, "orders", range(10, 20))
            assert [n for n in _polled(consumer, 10) if n >= 10] == list(range(10, 20))


class _InterruptedLoop:
    """The loop of a consumer whose thread gets an exception of a signal handler while it waits."""

    def __init__(self, loop: Any, moment: str) -> None:
        self._loop = loop
        self._moment = moment
        self.is_calm = False

    def run(self, work: Any) -> Any:
        if self.is_calm:
            return self._loop.run(work)
        if self._moment == "after the poll":
            self._loop.run(work)
        else:
            self._loop.call_soon(asyncio.ensure_future, work)
        raise KeyboardInterrupt

    def call_soon(self, work: Any, what: Any) -> None:
        self._loop.call_soon(work, what)


@pytest.mark.parametrize("moment", ["before the poll", "after the poll"])
@pytest.mark.parametrize("begins", ["poll", "iteration"])
def test_what_an_interrupted_poll_took_is_given_by_the_next(
    bolide_module_server: EmbeddedServer, producer: Producer, moment: str, begins: str
) -> None:
    topic = f"lite-interrupted-{moment}-{begins}".replace(" ", "-")
    _send(producer, topic, range(100))
    with _member(bolide_module_server, topic) as consumer:
        seen = [int(next(iter(consumer)).body)] if begins == "iteration" else []
        calm = consumer._loop
        consumer._loop = interrupted = _InterruptedLoop(calm, moment)  # type: ignore[assignment]
        for _ in range(20):
            with pytest.raises(KeyboardInterrupt):
                consumer.poll(timeout_ms=1000, messages_max=7)
        interrupted.is_calm = True
        seen += _polled(consumer, 100 - len(seen))
        assert sorted(seen) == list(range(100))
        consumer.commit()
        assert sum(consumer.committed(queue) or 0 for queue in consumer.queues) == 100
