"""Consumers whose listeners do not end, and processes that end without a close."""

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest

import bolide
from bolide.aio import ClientNotRunning, StoredMessage, Transaction, TransactionProducer
from bolide.client import hub, turns
from bolide.wire.codes import RequestCode
from tests.peers.waiting import PATIENCE_MS
from tests.unit.client.consuming import consumer_of, on_cluster
from tests.unit.client.scripted import WAIT_S, Cluster, wait_for
from tests.unit.client.test_blocking import running_cluster
from tests.unit.client.test_transactions import check_of


class Deaf:
    """Waits for its release, and does not hear of its cancellation."""

    def __init__(self) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def wait(self) -> None:
        self.begun.set()
        while not self.may_end.is_set():
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                continue


def test_a_close_does_not_wait_for_ever_for_a_coroutine_that_is_deaf_to_its_cancellation(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turns, "CANCELLED_MS", 1)

    async def scenario(c: Cluster) -> None:
        c.brokers[0].store("orders", 0, b"x")
        deaf = Deaf()

        async def listener(messages: list[StoredMessage]) -> None:
            await deaf.wait()

        consumer = await consumer_of(c, listener, start_from="first", close_timeout_ms=1)
        await consumer.start()
        await deaf.begun.wait()
        async with asyncio.timeout(WAIT_S):
            await consumer.close()
        assert c.brokers[0].offsets.get(("g", "orders", 0), 0) == 0
        deaf.may_end.set()

    on_cluster(scenario)
    assert "left alone" in caplog.text


def test_nor_for_a_check_of_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "CANCELLED_MS", 1)

    async def scenario(c: Cluster) -> None:
        deaf, (broker,) = Deaf(), c.brokers

        async def check(message: StoredMessage) -> Transaction:
            await deaf.wait()
            return Transaction.COMMIT

        producer = TransactionProducer(c.nameserver.address, group="g", check=check, topics=["orders"])
        await producer.start()
        await wait_for(lambda: broker.heartbeats, "the broker knows it")
        (link,) = broker.links
        link.notify(check_of(1, 1))
        await deaf.begun.wait()
        async with asyncio.timeout(WAIT_S):
            await producer.close()
        deaf.may_end.set()

    on_cluster(scenario)


@pytest.mark.parametrize("is_coroutine", [True, False])
def test_a_close_inside_the_listener_is_refused_instead_of_waiting_for_itself(is_coroutine: bool) -> None:
    refused: list[str] = []

    async def scenario(c: Cluster) -> None:
        async def listener(messages: list[StoredMessage]) -> None:
            try:
                await consumer.close()
            except ClientNotRunning as error:
                refused.append(str(error))

        def plain(messages: list[StoredMessage]) -> Any:
            return listener(messages)

        c.brokers[0].store("orders", 0, b"x")
        consumer = await consumer_of(c, listener if is_coroutine else plain, start_from="first")
        async with consumer:
            await wait_for(lambda: refused, "the refusal")

    on_cluster(scenario)
    assert "inside the listener" in refused[0]


def test_nor_does_the_close_of_a_blocking_consumer_and_another_thread_may_close_it() -> None:
    refused: list[str] = []
    told = threading.Event()

    def listener(messages: list[StoredMessage]) -> None:
        try:
            consumer.close()
        except ClientNotRunning as error:
            refused.append(str(error))
        told.set()

    with running_cluster() as c:
        c.brokers[0].store("orders", 0, b"x")
        consumer = bolide.PushConsumer(
            c.nameserver.address,
            group="g",
            listener=listener,
            start_from="first",
            close_timeout_ms=PATIENCE_MS,
        )
        consumer.subscribe("orders")
        with consumer:
            assert told.wait(WAIT_S)
    assert "inside the listener" in refused[0]


LISTENER_THAT_STAYS = """
import sys, threading
from bolide import PushConsumer
begun = threading.Event()
def listener(messages):
    begun.set()
    threading.Event().wait()
consumer = PushConsumer(sys.argv[1], group="g", listener=listener, start_from="first", close_timeout_ms=1)
consumer.subscribe("orders")
with consumer:
    assert begun.wait(20)
"""


def test_a_process_ends_although_a_listener_never_returns() -> None:
    with running_cluster() as c:
        c.brokers[0].store("orders", 0, b"x")
        command = [sys.executable, "-c", LISTENER_THAT_STAYS, c.nameserver.address]
        subprocess.run(command, timeout=60, check=True)


NO_CLOSE = """
import atexit, sys, threading
from bolide import Message, Producer, PushConsumer
first, last = threading.Event(), threading.Event()
def listener(messages):
    (last if messages[0].body == b"last" else first).set()
producer = Producer(sys.argv[1])
producer.start()
consumer = PushConsumer(sys.argv[1], group="g", listener=listener, start_from="first", concurrency=1)
consumer.subscribe("orders")
consumer.start()
assert first.wait(20)
@atexit.register  # when Python has ended its own pools of threads
def end():
    producer.send(Message("orders", b"last"))
    print(last.wait(20), flush=True)
"""


def test_what_comes_while_a_process_ends_without_a_close_is_not_a_failure_of_the_listener() -> None:
    with running_cluster() as c:
        c.brokers[0].store("orders", 0, b"x")
        command = [sys.executable, "-c", NO_CLOSE, c.nameserver.address]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert (run.stdout.strip(), c.brokers[0].sent_back) == ("True", []), run.stderr


NO_FLUSH = """
import os, sys
from bolide import Message, Producer
producer = Producer(sys.argv[1], linger_ms=60_000, timeout_ms=int(sys.argv[2]))
producer.start()
for number in range(3):
    producer.send_soon(Message("orders", b"%d" % number))
"""


def _ends_without_a_flush(c: Cluster, more: str = "", timeout_ms: int = PATIENCE_MS) -> str:
    """What such a process says."""
    command = [sys.executable, "-c", NO_FLUSH + more, c.nameserver.address, str(timeout_ms)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stderr


def _stored(c: Cluster) -> int:
    return sum(map(len, c.brokers[0].queues.values()))


@pytest.mark.parametrize("end", ["", "sys.exit()", "del producer"])
def test_a_program_that_ends_without_a_close_sends_what_send_soon_has_collected(end: str) -> None:
    with running_cluster() as c:
        said = _ends_without_a_flush(c, end)
        assert (_stored(c), said) == (3, "")


def test_and_says_how_many_of_them_nobody_has_acknowledged() -> None:
    with running_cluster() as c:
        c.brokers[0].silences |= {RequestCode.SEND_BATCH_MESSAGE}
        said = _ends_without_a_flush(c, timeout_ms=50)
        assert "3 messages of send_soon were never acknowledged" in said
        assert "close the producer, or use `with`" in said
        assert "Traceback" not in said


def test_a_forked_process_sends_nothing_of_its_parent_when_it_ends() -> None:
    fork = "child = os.fork()\nif not child: sys.exit()\nos.waitpid(child, 0)\nos._exit(0)"
    with running_cluster() as c:
        assert _ends_without_a_flush(c, fork) == ""
        assert _stored(c) == 0
