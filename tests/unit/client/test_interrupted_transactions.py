"""Transactions whose senders are interrupted or cancelled: who says how they end, and when."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bolide import Message, StoredMessage, Transaction, TransactionProducer
from bolide.client import loop_thread
from bolide.model.pairs import parse_properties
from bolide.testing import EmbeddedServer
from tests.peers.waiting import wait_until
from tests.unit.client.scripted import cluster, wait_for
from tests.unit.client.test_transactions import PROMPT, bodies, check_of, ended, producer_of

COMMIT, ROLLBACK = Transaction.COMMIT, Transaction.ROLLBACK
WAIT_S = 30


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    """A broker that asks soon."""
    with EmbeddedServer(settings=PROMPT) as server:
        yield server


class Interrupt(Exception):
    """What a signal handler raises: a soft time limit."""


@contextmanager
def interrupted(name: str, *, waits_first: bool) -> Iterator[None]:
    """A signal ends the thread's wait for this coroutine; it may be done by then."""
    usual = loop_thread._Call.wait

    def wait(call: Any, timeout_s: float) -> Any:
        if call._work.__name__ != name:
            return usual(call, timeout_s)
        if waits_first:
            usual(call, timeout_s)
        raise Interrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop_thread._Call, "wait", wait)
        yield


def test_an_interrupt_before_the_thread_hears_that_a_transaction_has_begun_leaves_it_to_the_check(
    server: EmbeddedServer,
) -> None:
    calls: list[Message] = []

    def local(message: Message) -> Transaction:
        calls.append(message)
        return COMMIT

    with TransactionProducer(server.nameserver, group="tx-begun", check=lambda _: COMMIT) as producer:
        with interrupted("begin", waits_first=True), pytest.raises(Interrupt):
            producer.send_in_transaction(Message("tx-begun", b"x"), local)
        wait_until(lambda: bodies(server, "tx-begun") == [b"x"], WAIT_S, "nobody was asked")
    assert calls == []


class InterruptedLoop:
    """A signal comes right behind the call that gives a coroutine of this name to the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop, self._name = loop, name

    def call_soon_threadsafe(self, work: Any, *values: object) -> None:
        self._loop.call_soon_threadsafe(work, *values)
        if (
            getattr(work, "__func__", None) is loop_thread._Call.begin
            and work.__self__._work.__name__ == self._name
        ):
            raise Interrupt


@pytest.mark.parametrize("name", ["begin", "end"])
def test_an_interrupt_right_behind_the_call_of_the_loop_leaves_a_transaction_to_the_check(
    server: EmbeddedServer, name: str
) -> None:
    topic = f"tx-called-{name}"
    with TransactionProducer(server.nameserver, group=topic, check=lambda _: COMMIT) as producer:
        producer.send(Message(topic, b"before"))
        usual = producer._loop._loop
        producer._loop._loop = InterruptedLoop(usual, name)  # type: ignore[assignment]
        try:
            with pytest.raises(Interrupt):
                producer.send_in_transaction(Message(topic, b"x"), lambda message: COMMIT)
        finally:
            producer._loop._loop = usual
        producer.send(Message(topic, b"behind"))
        wait_until(lambda: not producer._core.transactions._open, WAIT_S, "it is still open here")
        if name == "end":
            wait_until(lambda: b"x" in bodies(server, topic), WAIT_S, "nobody was asked")


def test_an_interrupt_before_the_end_of_a_transaction_is_told_leaves_it_to_the_check(
    server: EmbeddedServer,
) -> None:
    """The loop is busy, so what tells the end is cancelled before its first step."""
    may_go_on = threading.Event()

    def busy(until: threading.Event) -> None:
        until.wait(WAIT_S)

    def local(message: Message) -> Transaction:
        producer._loop.call_soon(busy, may_go_on)
        return COMMIT

    with TransactionProducer(server.nameserver, group="tx-told", check=lambda _: COMMIT) as producer:
        with interrupted("end", waits_first=False), pytest.raises(Interrupt):
            producer.send_in_transaction(Message("tx-told", b"x"), local)
        may_go_on.set()
        wait_until(lambda: bodies(server, "tx-told") == [b"x"], WAIT_S, "nobody was asked")


def test_a_local_function_that_a_thread_still_runs_when_its_sender_is_cancelled_says_how_it_ended() -> None:
    """Asked before, `check` would find no row yet, and roll back what is committed a moment later."""

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            (broker,) = c.brokers
            begun, may_end = threading.Event(), threading.Event()
            asked: list[str] = []

            def local(message: Message) -> Transaction:
                begun.set()
                assert may_end.wait(WAIT_S)
                return COMMIT

            def check(message: StoredMessage) -> Transaction:
                asked.append(message.message_id)
                return ROLLBACK

            async with producer_of(c, check) as producer:
                sender = asyncio.ensure_future(producer.send_in_transaction(Message("orders", b"x"), local))
                await wait_for(begun.is_set, "the local function runs")
                sender.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await sender
                message_id = parse_properties(broker.sends[0].properties)["UNIQ_KEY"]
                (link,) = broker.links
                link.notify(check_of(77, 7_700, message_id))
                link.notify(check_of(5, 500, "OTHER"))
                await ended(broker, 1)
                may_end.set()
                await ended(broker, 2)
                assert not producer.transactions._open
            assert asked == ["OTHER"]
            found = [
                (end.msg_id, end.tran_state_table_offset, end.commit_or_rollback) for end, _ in broker.ends
            ]
            assert found == [("OTHER", 5, 12), (message_id, 77, 8)]

    asyncio.run(scenario())


def test_a_close_waits_for_a_local_function_whose_sender_was_cancelled_and_tells_how_it_ended() -> None:
    """As when Ctrl-C ends a program: its sender is cancelled first, and the producer closed then."""

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            (broker,) = c.brokers
            begun, may_end = threading.Event(), threading.Event()

            def local(message: Message) -> Transaction:
                begun.set()
                assert may_end.wait(WAIT_S)
                return COMMIT

            producer = producer_of(c, lambda _: ROLLBACK)
            await producer.start()
            sender = asyncio.ensure_future(producer.send_in_transaction(Message("orders", b"x"), local))
            await wait_for(begun.is_set, "the local function runs")
            sender.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sender
            closing = asyncio.ensure_future(producer.close())
            await asyncio.wait((closing,), timeout=0.01)
            may_end.set()
            await closing
            assert [end.commit_or_rollback for end, _ in broker.ends] == [8]

    asyncio.run(scenario())


def test_a_local_function_that_waits_for_a_thread_when_its_sender_is_cancelled_is_not_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bolide.client.transaction_producer.LOCALS_AT_ONCE", 1)

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            may_end = threading.Event()
            called: list[bytes] = []

            def local(message: Message) -> Transaction:
                called.append(message.body)
                assert may_end.wait(WAIT_S)
                return COMMIT

            async with producer_of(c) as producer:
                first, second = (
                    asyncio.ensure_future(producer.send_in_transaction(Message("orders", body), local))
                    for body in (b"first", b"second")
                )
                await wait_for(lambda: len(producer.transactions._open) == 2 and called, "both have begun")
                second.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await second
                may_end.set()
                assert (await first).outcome is COMMIT
                await wait_for(lambda: not producer.transactions._open, "the second is left to the check")
            assert called == [b"first"]
            assert len(c.brokers[0].ends) == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", ["coroutine function", "function that gives a coroutine"])
def test_a_coroutine_is_cancelled_with_its_sender_and_leaves_the_transaction_to_the_check(kind: str) -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            begun, cancelled = asyncio.Event(), asyncio.Event()

            async def local(message: Message) -> Transaction:
                begun.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    cancelled.set()
                return COMMIT

            async with producer_of(c) as producer:
                given = local if kind == "coroutine function" else lambda one: local(one)  # noqa: PLW0108 - which is no coroutine function
                sender = asyncio.ensure_future(producer.send_in_transaction(Message("orders", b"x"), given))
                await begun.wait()
                sender.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await sender
                assert cancelled.is_set()
                assert not producer.transactions._open

    asyncio.run(scenario())
