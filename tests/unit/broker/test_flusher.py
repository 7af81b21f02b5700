"""Flusher and Safety: who waits, who is told what, and when a sync is due."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from bolide.broker.config import BrokerConfig
from bolide.broker.flusher import Flusher
from bolide.broker.safety import Safety
from bolide.machines.waiters import Tell
from bolide.net.surroundings import Surroundings
from bolide.store.marks import Promise
from bolide.store.store import MessageStore
from tests.unit.net.stage import eventually, pause
from tests.unit.store.stage import HeldClock, WatchedDisk, message, opened

CONFIG = BrokerConfig.from_settings({"flushIntervalCommitLog": "10"})


def void(_: object) -> None:
    pass


class Waiting(Flusher):
    """A flusher and those who wait for it."""

    def __init__(self, store: MessageStore, clock: HeldClock) -> None:
        self.safety = Safety(store.marks, clock, lambda: CONFIG.sync_flush_timeout_ms)
        super().__init__(store, lambda: CONFIG, Surroundings(clock), self.safety)

    def wait(self, end: int, tell: Tell) -> None:
        self.safety.when_kept(end, tell)
        self.wake()


def play(root: Path, act: Callable[[Waiting, MessageStore, HeldClock, WatchedDisk], Awaitable[None]]) -> None:
    async def main() -> None:
        clock, disk = HeldClock(), WatchedDisk()
        store = opened(root, clock=clock, disk=disk, promise=Promise.DURABLE)
        flusher = Waiting(store, clock)
        tasks = [asyncio.create_task(flusher.run()), asyncio.create_task(flusher.safety.watch_deadlines())]
        try:
            await act(flusher, store, clock, disk)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            flusher.close()

    asyncio.run(main())


def test_those_who_wait_are_told_in_order_once_their_record_is_durable(tmp_path: Path) -> None:
    async def act(flusher: Waiting, store: MessageStore, clock: HeldClock, disk: WatchedDisk) -> None:
        told: list[tuple[int, bool]] = []

        def tell(number: int, durable: bool) -> None:
            told.append((number, durable))

        for number in range(5):
            (appended,) = store.append([message()])
            flusher.wait(appended.end, partial(tell, number))
        await eventually(lambda: len(told) == 5)
        assert told == [(number, True) for number in range(5)]
        assert len(disk.synced) <= 2

    play(tmp_path, act)


def test_who_waits_for_what_is_durable_already_is_told_at_once(tmp_path: Path) -> None:
    async def act(flusher: Waiting, store: MessageStore, clock: HeldClock, disk: WatchedDisk) -> None:
        told: list[bool] = []
        flusher.wait(int(store.log.end), told.append)
        assert told == [True]

    play(tmp_path, act)


def test_for_whom_the_disk_is_too_slow_is_told_so_and_never_again(tmp_path: Path) -> None:
    async def act(flusher: Waiting, store: MessageStore, clock: HeldClock, disk: WatchedDisk) -> None:
        slow = threading.Event()
        disk.before_sync = lambda: void(slow.wait(10))
        told: list[bool] = []
        (appended,) = store.append([message()])
        flusher.wait(appended.end, told.append)
        clock.ms += CONFIG.sync_flush_timeout_ms
        await eventually(lambda: told == [False])
        slow.set()
        await eventually(lambda: store.durability.durable == store.log.end)
        assert told == [False]

    play(tmp_path, act)


def test_what_nobody_waits_for_is_synced_when_woken(tmp_path: Path) -> None:
    async def act(flusher: Waiting, store: MessageStore, clock: HeldClock, disk: WatchedDisk) -> None:
        store.append([message()])
        flusher.wake()
        await eventually(lambda: store.durability.durable == store.log.end)

    play(tmp_path, act)


def test_a_failed_sync_is_final_and_tells_nobody(tmp_path: Path) -> None:
    async def act(flusher: Waiting, store: MessageStore, clock: HeldClock, disk: WatchedDisk) -> None:
        def fail() -> None:
            raise OSError(5, "Input/output error")

        told: list[bool] = []
        disk.before_sync = fail
        (appended,) = store.append([message()])
        flusher.wait(appended.end, told.append)
        failure = await asyncio.wait_for(asyncio.shield(flusher.failure), 10)
        assert isinstance(failure, OSError)
        assert failure.errno == 5
        disk.before_sync = lambda: None
        flusher.wake()
        clock.ms += 60_000
        await pause(0.25)
        assert told == []
        assert store.durability.durable < store.log.end

    play(tmp_path, act)


def test_any_error_that_ends_the_syncing_is_the_failure_of_the_broker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(flusher: Waiting, store: MessageStore, clock: HeldClock, disk: WatchedDisk) -> None:
        def fail() -> None:
            raise RuntimeError("a bug")

        told: list[bool] = []
        disk.before_sync = fail
        (appended,) = store.append([message()])
        flusher.wait(appended.end, told.append)
        failure = await asyncio.wait_for(asyncio.shield(flusher.failure), 10)
        assert str(failure) == "a bug"
        assert told == []

    play(tmp_path, act)
    assert "a bug" in caplog.text


def test_a_segment_that_was_rolled_is_synced_with_the_one_behind_it(tmp_path: Path) -> None:
    async def act(flusher: Waiting, store: MessageStore, clock: HeldClock, disk: WatchedDisk) -> None:
        told: list[bool] = []
        store.append([message(body=bytes(3000))])
        (appended,) = store.append([message(body=bytes(3000))])
        flusher.wait(appended.end, told.append)
        await eventually(lambda: told == [True])
        assert len({path for path in disk.synced if "commitlog" in path}) == 2

    play(tmp_path, act)


def test_a_sync_that_fails_while_the_broker_stops_is_as_final(tmp_path: Path) -> None:
    """Goal: a stop does not sync a second time what a failed sync may have lost, and does not call itself clean."""
    begun, go_on = threading.Event(), threading.Event()

    def fail() -> None:
        begun.set()
        go_on.wait(10)
        raise OSError(5, "Input/output error")

    async def main() -> None:
        disk = WatchedDisk()
        store = opened(tmp_path, disk=disk)
        flusher = Waiting(store, HeldClock())
        task = asyncio.create_task(flusher.run())
        disk.before_sync = fail
        store.append([message()])
        flusher.wake()
        await eventually(begun.is_set)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        go_on.set()
        flusher.close()
        assert store.durability.failure is not None
        assert store.durability.failure.errno == 5

    asyncio.run(main())
