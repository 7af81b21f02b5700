"""`send_soon` on a real server: collected in the caller's thread, acknowledged one by one, in order where it counts."""

import asyncio
import contextlib
import os
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import bolide.aio
from bolide import (
    CallTimeout,
    ClientError,
    ClientNotRunning,
    ConfigError,
    InvalidRequest,
    Message,
    MessageIllegal,
    MessageQueue,
    NoRoom,
    Producer,
    PullConsumer,
    RouteNotFound,
    SendStatus,
)
from bolide.client import rounds
from bolide.client import soon as soon_module
from bolide.net.clock import SystemClock
from bolide.net.surroundings import Surroundings
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_MS
from tests.unit.net.stage import eventually


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


def stored(server: EmbeddedServer, topic: str) -> list[Any]:
    """By queue and offset."""
    found: list[Any] = []
    with PullConsumer(server.nameserver) as consumer:
        for queue in consumer.queues(topic):
            offset = 0
            while (result := consumer.pull(queue, offset)).messages:
                found += result.messages
                offset = result.next_offset
    return found


def test_every_message_is_stored_and_its_receipt_names_its_place(server: EmbeddedServer) -> None:
    with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
        futures = [
            producer.send_soon(Message("soon", b"%d" % number, tags="t", keys=[f"k{number}"]))
            for number in range(5000)
        ]
        receipts = [future.result(timeout_ms=PATIENCE_MS) for future in futures]
    by_place = {(message.queue_id, message.queue_offset): message for message in stored(server, "soon")}
    assert len(by_place) == 5000
    assert len({receipt.message_id for receipt in receipts}) == 5000
    for number, receipt in enumerate(receipts):
        message = by_place[receipt.queue.queue_id, receipt.queue_offset]
        assert message.body == b"%d" % number
        assert (message.message_id, message.offset_message_id) == (
            receipt.message_id,
            receipt.offset_message_id,
        )
        assert receipt.status is SendStatus.SEND_OK


def test_threads_may_send_at_once_and_callbacks_hear_of_each(server: EmbeddedServer) -> None:
    heard: Counter[str] = Counter()
    lock = threading.Lock()

    def note(receipt: Any, error: Any) -> None:
        assert error is None
        with lock:
            heard[receipt.message_id] += 1

    with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:

        def send(who: int) -> None:
            for number in range(2000):
                producer.send_soon(Message("threads", b"%d %d" % (who, number)), callback=note)

        threads = [threading.Thread(target=send, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush()
        assert heard.total() == len(heard) == 8000
    bodies = Counter(message.body for message in stored(server, "threads"))
    assert bodies == Counter(b"%d %d" % (who, number) for who in range(4) for number in range(2000))


def test_messages_of_one_sharding_key_keep_their_order_large_and_odd_ones_among_them(
    server: EmbeddedServer,
) -> None:
    """Those that cannot be part of a batch too: compressed ones, and tags that are not plain ASCII."""
    with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
        for number in range(300):
            body = b"%06d" % number + (bytes(5000) if number % 50 == 7 else b"")
            tags = "größe" if number % 40 == 3 else None
            producer.send_soon(Message("ordered", body, tags=tags, sharding_key="customer-7"))
    found = stored(server, "ordered")
    assert len({message.queue_id for message in found}) == 1
    assert [int(message.body[:6]) for message in found] == list(range(300))


def test_a_sharding_key_among_the_properties_chooses_the_queue_as_with_send(server: EmbeddedServer) -> None:
    """As of a message that is forwarded."""

    def kept(number: int) -> Message:
        return Message("forwarded", b"%d" % number, properties={"__SHARDINGKEY": "customer-7", "n": "1"})

    async def on_loop() -> list[Any]:
        async with bolide.aio.Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
            futures = []
            for number in range(50, 100):
                futures.append(await producer.send_soon(kept(number)))
                await producer.send_soon(Message("forwarded", b"any"))
            return [await future for future in futures]

    with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
        by_send = producer.send(Message("forwarded", b"0", sharding_key="customer-7"))
        futures = []
        for number in range(1, 50):
            futures.append(producer.send_soon(kept(number)))
            producer.send_soon(Message("forwarded", b"any"))
        receipts = [future.result(timeout_ms=PATIENCE_MS) for future in futures]
        with pytest.raises(MessageIllegal, match="another __SHARDINGKEY"):
            producer.send_soon(
                Message("forwarded", b"x", sharding_key="8", properties={"__SHARDINGKEY": "7"})
            )
    receipts += asyncio.run(on_loop())
    assert {receipt.queue for receipt in receipts} == {by_send.queue}
    offsets = [receipt.queue_offset for receipt in receipts]
    assert offsets == sorted(offsets)


def test_what_was_collected_is_sent_when_the_producer_closes(server: EmbeddedServer) -> None:
    with Producer(server.nameserver, group="tests", linger_ms=60_000, timeout_ms=PATIENCE_MS) as producer:
        future = producer.send_soon(Message("closing", b"x"))
        assert not future.done()
    assert future.result().queue.topic == "closing"
    with pytest.raises(ClientNotRunning):
        producer.send_soon(Message("closing", b"x"))


def test_timed_messages_can_be_sent_so_and_have_a_handle(server: EmbeddedServer) -> None:
    with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
        receipt = producer.send_soon(Message("later", b"x", delay=60)).result(timeout_ms=PATIENCE_MS)
        assert receipt.recall_handle


def test_who_has_no_room_waits_and_is_told_when_there_is_none(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soon_module, "SOON_MESSAGES_MAX", 10)
    with Producer(server.nameserver, group="tests", linger_ms=60_000, timeout_ms=50) as producer:
        for _ in range(10):
            producer.send_soon(Message("full", b"x"))
        with pytest.raises(NoRoom, match="10 messages wait"):
            producer.send_soon(Message("full", b"x"))
        producer.flush()
        producer.send_soon(Message("full", b"x"))
    assert len(stored(server, "full")) == 11


@pytest.mark.parametrize(
    ("message", "options", "error"),
    [
        ("x", {}, MessageIllegal),
        (Message("bad topic", b"x"), {}, InvalidRequest),
        (Message("wrong", b""), {}, MessageIllegal),
        (Message("wrong", b"x", tags="two words"), {}, MessageIllegal),
        (Message("wrong", b"x"), {"queue": 5}, InvalidRequest),
        (Message("wrong", b"x"), {"selector": lambda queues, message: 5}, InvalidRequest),
    ],
)
def test_a_message_that_cannot_be_sent_is_refused_at_once(
    server: EmbeddedServer, message: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
        producer.send_soon(Message("wrong", b"good"))
        with pytest.raises(error):
            producer.send_soon(message, **options)


def test_what_no_broker_takes_fails_in_the_future_and_in_the_callback() -> None:
    with EmbeddedServer(settings={"autoCreateTopicEnable": "false"}) as server:
        heard: list[Any] = []
        with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
            future = producer.send_soon(
                Message("nowhere", b"x"), callback=lambda receipt, error: heard.append((receipt, error))
            )
            error = future.exception(timeout_ms=PATIENCE_MS)
        assert isinstance(error, RouteNotFound)
        assert heard == [(None, error)]
        with pytest.raises(RouteNotFound):
            future.result()


def test_on_an_event_loop_the_future_is_awaited(server: EmbeddedServer) -> None:
    async def act() -> None:
        async with bolide.aio.Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
            futures = [await producer.send_soon(Message("loop", b"%d" % number)) for number in range(3000)]
            receipts = [await future for future in futures]
            assert len({receipt.message_id for receipt in receipts}) == 3000
            with pytest.raises(ClientNotRunning, match="awaited"):
                (await producer.send_soon(Message("loop", b"x"))).result()
            await producer.flush()

    asyncio.run(act())
    assert len(stored(server, "loop")) == 3001


def test_a_process_that_was_forked_hears_that_it_needs_a_producer_of_its_own(server: EmbeddedServer) -> None:
    with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
        producer.send_soon(Message("forked", b"x")).result(timeout_ms=PATIENCE_MS)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                producer.send_soon(Message("forked", b"y"))
            except ClientNotRunning as error:
                code = 0 if "forked" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_message_that_is_given_while_the_producer_closes_has_an_outcome(server: EmbeddedServer) -> None:
    """Its thread had found its lane before, and puts it in after."""
    with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
        producer.send_soon(Message("closing-late", b"x")).result(timeout_ms=PATIENCE_MS)
        lane = producer._core.soon.lanes["closing-late"]
    late = lane.add(Message("closing-late", b"y"))
    assert late is not None
    assert isinstance(late.exception(timeout_ms=PATIENCE_MS), ClientNotRunning)


def test_a_fault_of_ours_is_an_outcome_too(server: EmbeddedServer, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(message: Message, queue: Any) -> Any:
        raise ValueError("ours")

    with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
        producer._core.soon._send_one = broken
        error = producer.send_soon(Message("faulty", b"x", delay=60)).exception(timeout_ms=PATIENCE_MS)
    assert type(error) is ClientError
    assert "ours" in str(error)
    assert "ended with an error" in caplog.text


class _Clock(SystemClock):
    """One that goes on by itself not at all."""

    now = 1000

    def monotonic_ms(self) -> int:
        return self.now


@asynccontextmanager
async def _one_by_one(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, timeout_ms: int
) -> AsyncIterator[tuple[bolide.aio.Producer, MessageQueue, _Clock]]:
    """A producer whose messages go to one queue, each in a request of its own, and a clock to turn."""
    monkeypatch.setattr(soon_module, "SOON_BATCH_MESSAGES_MAX", 1)
    clock = _Clock()
    async with bolide.aio.Producer(
        server.nameserver, linger_ms=0, timeout_ms=PATIENCE_MS, surroundings=Surroundings(clock=clock)
    ) as producer:
        await producer.send(Message("one-by-one", b"x"))
        producer.sending._timeout_ms = timeout_ms
        yield producer, (await producer.queues("one-by-one"))[0], clock


def test_what_waits_behind_a_silent_broker_fails_with_the_first_and_not_each_after_a_time_of_its_own(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act() -> None:
        async with _one_by_one(server, monkeypatch, 1000) as (producer, queue, clock):
            tries: list[int] = []

            async def silence(*_: object, **__: object) -> Any:
                tries.append(clock.now)
                clock.now += 1001
                raise CallTimeout("of the request")

            monkeypatch.setattr(producer.sending, "acknowledged", silence)
            futures = [await producer.send_soon(Message("one-by-one", b"x"), queue=queue) for _ in range(24)]
            await producer.flush()
            assert tries == [1000]
            errors = [str(future.exception()) for future in futures]
            assert errors[0] == "of the request"
            assert all("has waited 1001 ms" in error for error in errors[1:])

    asyncio.run(act())


@pytest.mark.parametrize(("requests", "stored"), [(20, 20), (200, 122)])
def test_messages_may_wait_while_those_before_them_are_acknowledged_but_not_for_ever(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, requests: int, stored: int
) -> None:
    async def act() -> None:
        async with _one_by_one(server, monkeypatch, 1000) as (producer, queue, clock):
            real = producer.sending.acknowledged

            async def slowly(outgoing: Any, **given: Any) -> Any:
                answer = await real(outgoing, PATIENCE_MS, **given)
                clock.now += 990
                return answer

            monkeypatch.setattr(producer.sending, "acknowledged", slowly)
            futures = [
                await producer.send_soon(Message("one-by-one", b"x"), queue=queue) for _ in range(requests)
            ]
            await producer.flush()
            outcomes = [future.exception() for future in futures]
            assert outcomes[:stored] == [None] * stored
            assert [type(error) for error in outcomes[stored:]] == [CallTimeout] * (requests - stored)

    asyncio.run(act())


def test_a_flush_waits_no_longer_than_it_is_told(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act() -> None:
        async with _one_by_one(server, monkeypatch, PATIENCE_MS) as (producer, queue, _):
            real, goes_on = producer.sending.acknowledged, asyncio.Event()

            async def held(outgoing: Any, **given: Any) -> Any:
                await goes_on.wait()
                return await real(outgoing, **given)

            monkeypatch.setattr(producer.sending, "acknowledged", held)
            future = await producer.send_soon(Message("one-by-one", b"x"), queue=queue)
            with pytest.raises(
                CallTimeout, match="1 messages of send_soon were not acknowledged within 20 ms"
            ):
                await producer.flush(timeout_ms=20)
            assert not future.done()
            goes_on.set()
            await producer.flush(timeout_ms=PATIENCE_MS)
            assert future.exception() is None
            with pytest.raises(ConfigError):
                await producer.flush(timeout_ms=0)

    asyncio.run(act())


def test_a_close_that_waits_for_messages_says_for_how_many_and_how_long(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(rounds, "SLOW_S", 0.01)

    async def act() -> None:
        async with _one_by_one(server, monkeypatch, PATIENCE_MS) as (producer, queue, _):
            real, goes_on = producer.sending.acknowledged, asyncio.Event()

            async def held(outgoing: Any, **given: Any) -> Any:
                await goes_on.wait()
                return await real(outgoing, **given)

            monkeypatch.setattr(producer.sending, "acknowledged", held)
            await producer.send_soon(Message("one-by-one", b"x"), queue=queue)
            closing = asyncio.ensure_future(producer.soon.close(PATIENCE_MS))
            said = (
                f"waiting for 1 messages of send_soon to be acknowledged, for {PATIENCE_MS // 1000} s at most"
            )
            await eventually(lambda: said in caplog.text)
            goes_on.set()
            await closing

    asyncio.run(act())


@pytest.mark.parametrize("ends", ["in time", "cancelled"])
def test_every_future_has_an_outcome_when_the_producer_is_closed_even_of_a_request_that_had_not_begun(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    async def act() -> None:
        async with _one_by_one(server, monkeypatch, PATIENCE_MS) as (producer, queue, _):
            heard: list[Any] = []

            async def no_time() -> None:
                raise TimeoutError if ends == "in time" else asyncio.CancelledError

            monkeypatch.setattr(producer.soon, "_flush", no_time)
            futures = [
                await producer.send_soon(
                    Message("one-by-one", b"x"), queue=queue, callback=lambda _, error: heard.append(error)
                )
                for _ in range(5)
            ]
            with contextlib.suppress(asyncio.CancelledError):
                await producer.soon.close(PATIENCE_MS)
            monkeypatch.undo()
            assert all(isinstance(future.exception(), ClientNotRunning) for future in futures)
            assert len(heard) == 5
            assert producer.soon.pool.messages == 0

    asyncio.run(act())
