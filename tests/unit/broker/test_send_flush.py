"""SYNC_FLUSH and ASYNC_FLUSH: who is answered when, what is visible when (check-list FL-01 to FL-05)."""

import asyncio
import threading
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bolide.broker.app import Broker
from bolide.broker.handlers.pull import Pulling
from bolide.net.clock import SystemClock
from tests.unit.broker.stage import (
    MAY_WAIT,
    batch_of,
    bodies_of,
    connect,
    fill,
    properties_of,
    pull_request,
    send_request,
    serving,
)
from tests.unit.broker.test_send import play
from tests.unit.net.stage import Wire, eventually, pause
from tests.unit.store.stage import WatchedDisk

SYNC = {"flushDiskType": "SYNC_FLUSH"}


class Gate:
    """Holds up every sync of a disk until it is opened."""

    def __init__(self, disk: WatchedDisk) -> None:
        self._open = threading.Event()
        self.entered = threading.Event()
        disk.before_sync = self._pass

    def open(self) -> None:
        self._open.set()

    def shut(self) -> None:
        self._open.clear()
        self.entered.clear()

    def _pass(self) -> None:
        self.entered.set()
        assert self._open.wait(20)


class JumpingClock(SystemClock):
    """The real clock, moved forward on request."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.ahead_ms


def on_gated_disk(root: Path, act: Any, settings: Mapping[str, str] | None = None, **parts: Any) -> None:
    """Run with syncs that wait for a gate; it is open at the end, whatever happens."""
    disk = WatchedDisk()
    gate = Gate(disk)

    async def with_gate(broker: Broker, wire: Wire) -> None:
        try:
            await act(broker, wire, gate, disk)
        finally:
            gate.open()

    gate.open()
    play(root, with_gate, {**SYNC, **(settings or {})}, disk=disk, **parts)


def has_more_than(broker: Broker, offset: int) -> bool:
    return broker.state.store.reader.queue_range("T", 1)[1] > offset


def commit_log_syncs(disk: WatchedDisk) -> int:
    """Syncs of messages; the first of a segment makes its length durable."""
    synced = [path for path in disk.synced if "commitlog" in path]
    return len(synced) - len(set(synced))


def test_under_sync_flush_an_answer_follows_a_sync(tmp_path: Path) -> None:
    """FL-01."""

    async def act(broker: Broker, wire: Wire, gate: Gate, disk: WatchedDisk) -> None:
        await fill(wire, 1)
        gate.shut()
        wire.send(send_request(b"plain", 1), send_request(b"general", 2, properties="TAGS\x01A\x02"))
        await eventually(gate.entered.is_set)
        assert broker.state.store.log.end > broker.state.store.durability.durable
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wire.reader.read(1), 0.1)
        gate.open()
        assert {(await wire.next()).opaque for _ in range(2)} == {1, 2}
        assert broker.state.store.durability.durable == broker.state.store.log.end

    on_gated_disk(tmp_path, act)


def test_one_sync_answers_many(tmp_path: Path) -> None:
    """FL-03: group commit."""

    async def act(broker: Broker, wire: Wire, gate: Gate, disk: WatchedDisk) -> None:
        await fill(wire, 1)
        wires = [await connect(broker) for _ in range(20)]
        gate.shut()
        before = commit_log_syncs(disk)
        wire.send(send_request())
        await eventually(gate.entered.is_set)
        for one in wires:
            one.send(*(send_request(b"x", number) for number in range(10)))
        await eventually(lambda: broker.state.store.reader.queue_range("T", 0)[1] == 202)
        gate.open()
        await wire.next()
        for one in wires:
            for _ in range(10):
                assert (await one.next()).code == 0
        assert commit_log_syncs(disk) - before <= 5

    on_gated_disk(tmp_path, act)


def test_a_sync_that_takes_too_long_is_said_and_the_message_stays(tmp_path: Path) -> None:
    """FL-01, second half: code 10 with all fields of an acknowledgement."""
    clock = JumpingClock()

    async def act(broker: Broker, wire: Wire, gate: Gate, disk: WatchedDisk) -> None:
        await fill(wire, 1)
        gate.shut()
        wire.send(
            send_request(b"plain", 1),
            send_request(b"general", 2, properties="TAGS\x01A\x02"),
            send_request(batch_of(b"a", b"b"), 3, batch=True),
        )
        await eventually(gate.entered.is_set)
        clock.ahead_ms += 5_000
        for _ in range(3):
            answer = await wire.next()
            assert answer.code == 10
            assert "took too long" in (answer.remark or "")
            assert {"msgId", "queueId", "queueOffset"} <= set(answer.fields)
        gate.open()
        await eventually(lambda: broker.state.store.durability.durable == broker.state.store.log.end)
        assert bodies_of(await wire.ask(pull_request(1))) == [b"plain", b"general", b"a", b"b"]

    on_gated_disk(tmp_path, act, clock=clock)


def test_who_does_not_want_to_wait_does_not(tmp_path: Path) -> None:
    """FL-04, and what nobody waits for becomes visible as soon as everything else."""

    async def act(broker: Broker, wire: Wire, gate: Gate, disk: WatchedDisk) -> None:
        await fill(wire, 1)
        gate.shut()
        answer = await wire.ask(send_request(b"hurried", properties=properties_of(1, WAIT="false")))
        assert answer.code == 0
        wire.send(send_request(b"one-way", 2, flag=2))
        wire.send(pull_request(1, 50, flags=MAY_WAIT, count=1))
        await eventually(gate.entered.is_set)
        gate.open()
        assert bodies_of(await wire.next()) == [b"hurried"]
        await eventually(lambda: broker.state.store.durability.durable == broker.state.store.log.end)
        assert bodies_of(await wire.ask(pull_request(2))) == [b"one-way"]

    on_gated_disk(tmp_path, act)


def test_under_sync_flush_nothing_is_visible_before_it_is_durable(tmp_path: Path) -> None:
    """FL-05, and a pull that waits is woken by the sync."""

    async def act(broker: Broker, wire: Wire, gate: Gate, disk: WatchedDisk) -> None:
        await fill(wire, 1)
        reader = await connect(broker)
        gate.shut()
        wire.send(send_request(b"new", 1))
        await eventually(gate.entered.is_set)
        answer = await reader.ask(pull_request(1))
        assert (answer.code, answer.fields["nextBeginOffset"]) == (19, "1")
        reader.send(pull_request(1, 5, flags=MAY_WAIT))
        await eventually(lambda: len(broker.part(Pulling).hold) == 1)
        gate.open()
        answer = await reader.next()
        assert (answer.opaque, bodies_of(answer)) == (5, [b"new"])

    on_gated_disk(tmp_path, act)


def test_a_message_stored_while_a_sync_runs_wakes_its_reader_with_the_next_one(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire, gate: Gate, disk: WatchedDisk) -> None:
        await fill(wire, 1)
        reader = await connect(broker)
        for _ in range(10):
            offset = int(broker.state.store.reader.queue_range("T", 1)[1])
            gate.shut()
            wire.send(send_request(b"first", 1))
            await eventually(gate.entered.is_set)
            wire.send(send_request(b"second", 2, queue_id=1))
            await eventually(partial(has_more_than, broker, offset))
            reader.send(pull_request(offset, 9, queue_id=1, flags=MAY_WAIT))
            await eventually(lambda: len(broker.part(Pulling).hold) == 1)
            gate.open()
            assert bodies_of(await reader.next()) == [b"second"]
            assert {(await wire.next()).opaque for _ in range(2)} == {1, 2}

    on_gated_disk(tmp_path, act)


def test_after_a_failed_sync_nothing_is_acknowledged_any_more(tmp_path: Path) -> None:
    """Not those who wait, not those who come, not late: the kernel may have thrown the pages away."""
    disk = WatchedDisk()
    clock = JumpingClock()

    def fail() -> None:
        raise OSError(5, "Input/output error")

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        disk.before_sync = fail
        wire.send(send_request(b"waits", 1))
        failure = await asyncio.wait_for(broker.failed(), 10)
        assert isinstance(failure, OSError)
        assert failure.errno == 5
        clock.ahead_ms += 60_000
        await pause(0.3)  # longer than the look at the deadlines
        for request in (send_request(b"x", 2), send_request(b"x", 3, properties="TAGS\x01A\x02")):
            answer = await wire.ask(request)
            assert answer.opaque != 1
            assert answer.code == 14
            assert "Input/output error" in (answer.remark or "")
        assert (await wire.ask(pull_request(0))).code == 0

    play(tmp_path, act, SYNC, disk=disk, clock=clock)
    assert (tmp_path / "abort").exists()  # the next start must look at everything


def test_under_async_flush_answers_and_readers_do_not_wait_for_the_disk(tmp_path: Path) -> None:
    """FL-02, first half."""

    async def act(broker: Broker, wire: Wire, gate: Gate, disk: WatchedDisk) -> None:
        gate.shut()
        await fill(wire, 100)
        assert (await wire.ask(pull_request(0))).code == 0
        assert commit_log_syncs(disk) == 0

    on_gated_disk(tmp_path, act, {"flushDiskType": "ASYNC_FLUSH"})


@pytest.mark.parametrize(("count", "due"), [(200, True), (5, False)])
def test_under_async_flush_four_dirty_pages_are_synced_at_the_next_interval(
    tmp_path: Path, count: int, due: bool
) -> None:
    """FL-02, second half; fewer pages wait for the thorough interval."""
    disk = WatchedDisk()
    clock = JumpingClock()

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, count, body=bytes(100))
        if not due:
            await pause(0.1)  # several intervals
            assert commit_log_syncs(disk) == 0
            clock.ahead_ms += 10_000
        await eventually(
            lambda: commit_log_syncs(disk) >= 1
        )  # what came behind it may be too little for another

    play(tmp_path, act, {"flushIntervalCommitLog": "20"}, disk=disk, clock=clock)


def test_a_stop_makes_everything_durable(tmp_path: Path) -> None:
    disk = WatchedDisk()

    async def main() -> None:
        async with serving(tmp_path, disk=disk) as (_, wire):
            await fill(wire, 3)
            assert commit_log_syncs(disk) == 0

    asyncio.run(main())
    assert commit_log_syncs(disk) == 1
    assert any("consumequeue" in path for path in disk.synced)
    assert not (tmp_path / "abort").exists()
