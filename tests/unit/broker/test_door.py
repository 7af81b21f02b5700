"""The door into the log: what follows a message follows by itself, whoever wrote it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bolide.broker import safety as safety_module
from bolide.broker.app import Broker
from bolide.broker.handlers.pull import Pulling
from bolide.store.append import QueueTail
from bolide.store.new_message import NewMessage
from tests.unit.broker.stage import MAY_WAIT, bodies_of, connect, fill, pull_request, send_request, serving
from tests.unit.net.stage import Wire, eventually
from tests.unit.store.stage import WatchedDisk

HOST = b"\x7f\x00\x00\x01\x00\x00\x2a\x9f"


def own(body: bytes = b"own", queue_id: int = 0) -> NewMessage:
    """A message that the broker writes by itself."""
    return NewMessage("T", queue_id, body, b"", 0, 0, 1, HOST)


def play(root: Path, act: Callable[[Broker, Wire], Awaitable[None]], flush: str = "ASYNC_FLUSH") -> None:
    async def main() -> None:
        async with serving(root, {"flushDiskType": flush}, disk=WatchedDisk()) as (broker, wire):
            await fill(wire, 1)
            await act(broker, wire)

    asyncio.run(main())


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_a_message_of_the_brokers_own_wakes_readers_is_written_behind_and_answered_when_it_is_kept(
    tmp_path: Path, flush: str
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        reader, store = await connect(broker), broker.state.store
        reader.send(pull_request(1, 7, flags=MAY_WAIT))
        await eventually(lambda: len(broker.part(Pulling).hold) == 1)
        told: list[tuple[bool, bool]] = []

        def tell(kept: bool) -> None:
            told.append((kept, store.durability.durable >= end))

        (appended,) = broker.state.door.append([own()])
        end = int(appended.end)
        broker.state.door.when_kept(end, tell)
        assert bodies_of(await reader.next()) == [b"own"]
        queue = store.queues.get("T", 0)
        await eventually(lambda: queue.tail.start == queue.end)
        await eventually(lambda: len(told) == 1)
        assert told[0][0]
        if flush == "SYNC_FLUSH":
            assert told == [(True, True)]

    play(tmp_path, act, flush)


def test_messages_of_several_queues_wake_the_readers_of_each(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        reader = await connect(broker)
        reader.send(pull_request(1, 7, flags=MAY_WAIT), pull_request(0, 8, flags=MAY_WAIT, queue_id=1))
        await eventually(lambda: len(broker.part(Pulling).hold) == 2)
        broker.state.door.append([own(b"one", 0), own(b"two", 1)])
        answers = [await reader.next(), await reader.next()]
        assert {answer.opaque: bodies_of(answer) for answer in answers} == {7: [b"one"], 8: [b"two"]}

    play(tmp_path, act)


def test_an_error_while_others_are_woken_costs_neither_the_sender_nor_the_queue_its_entries(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        heard: list[str] = []

        def broken(tail: QueueTail) -> None:
            raise ValueError("a bug")

        broker.state.door.on_arrival(broken)
        broker.state.door.on_arrival(lambda tail: heard.append(tail.key[0]))
        assert (await wire.ask(send_request(b"news"))).code == 0
        queue = broker.state.store.queues.get("T", 0)
        await eventually(lambda: queue.tail.start == queue.end == 2)
        assert heard == ["T"]

    with caplog.at_level(logging.ERROR):
        play(tmp_path, act)
    assert "a bug" in caplog.text


def test_more_than_may_wait_for_the_disk_are_refused_before_they_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: the disk takes its time, so every answer waits; SYSTEM_BUSY makes a client try again."""

    async def act(broker: Broker, wire: Wire) -> None:
        monkeypatch.setattr(safety_module, "UNSAFE_ANSWERS_MAX", 0)
        end = broker.state.store.log.end
        for topic in ("T", "new"):
            assert (await wire.ask(send_request(topic=topic))).code == 2
        assert broker.state.store.log.end == end
        monkeypatch.setattr(safety_module, "UNSAFE_ANSWERS_MAX", 10)
        assert (await wire.ask(send_request())).code == 0

    play(tmp_path, act, "SYNC_FLUSH")


def test_a_queue_that_cannot_be_read_is_not_a_failure_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        def broken(*_: object) -> bool:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(broker.state.store.reader, "is_readable", broken)
        for _ in range(3):
            assert (await wire.ask(send_request(b"news"))).code == 0
        assert broker.state.store.durability.failure is None
        assert not broker._flusher.failure.done()

    with caplog.at_level(logging.ERROR):
        play(tmp_path, act, "SYNC_FLUSH")
    assert "Input/output error" in caplog.text
