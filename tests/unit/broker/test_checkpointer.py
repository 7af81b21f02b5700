"""Checkpointer: when a checkpoint is due, and what a disk that fails means for it."""

import asyncio
import errno
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bolide.broker import checkpointer as module
from bolide.broker.checkpointer import Checkpointer
from bolide.broker.config import BrokerConfig
from bolide.net.surroundings import Surroundings
from bolide.store.disk import File
from bolide.store.queue_index import ConsumeQueue
from bolide.store.store import STEP_QUEUES, MessageStore
from tests.unit.broker.stage import fill, serving
from tests.unit.net.stage import eventually, pause
from tests.unit.net.turns import counted_by_turn
from tests.unit.store.stage import (
    HeldClock,
    WatchedDisk,
    killed,
    make_durable,
    message,
    opened,
    put_many,
)

MINUTE_MS = 60_000


class Scene:
    def __init__(self, root: Path, store: MessageStore, clock: HeldClock, disk: WatchedDisk) -> None:
        self.root, self.store, self.clock, self.disk = root, store, clock, disk
        self.failures = 0
        self.checkpointer = Checkpointer(store, BrokerConfig, Surroundings(clock), self._failed)

    def _failed(self) -> None:
        self.failures += 1

    def sync_log(self) -> None:
        point = self.store.durability.next_point()
        if point is not None:
            point.run()
            self.store.durability.reached(point)

    def is_checkpointed(self) -> bool:
        return self.store.checkpoints.end == self.store.log.end


def play(root: Path, act: Callable[[Scene], Awaitable[None]], disk: WatchedDisk | None = None) -> None:
    async def main() -> None:
        clock, used = HeldClock(), disk or WatchedDisk()
        scene = Scene(root, opened(root, clock=clock, disk=used), clock, used)
        task = asyncio.create_task(scene.checkpointer.run())
        try:
            await act(scene)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            scene.checkpointer.close()

    asyncio.run(main())


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_S", 0.005)


def test_a_checkpoint_comes_every_minute(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        for _ in range(2):
            put_many(scene.store, 5)
            scene.sync_log()
            await pause()
            assert not scene.is_checkpointed()
            scene.clock.ms += MINUTE_MS
            await eventually(scene.is_checkpointed)

    play(tmp_path, act)


def test_much_to_walk_does_not_wait_for_the_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEHIND_BYTES_MAX", 1000)

    async def act(scene: Scene) -> None:
        put_many(scene.store, 50)
        scene.sync_log()
        await pause()
        assert not scene.is_checkpointed()
        scene.clock.ms += module.PAUSE_MS
        await eventually(scene.is_checkpointed)

    play(tmp_path, act)


def test_no_turn_writes_more_than_a_slice_of_the_queues_for_a_checkpoint(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        count = 3 * STEP_QUEUES
        for number in range(count):
            scene.store.append([message(queue_id=number)])
        scene.sync_log()
        with counted_by_turn(ConsumeQueue, "write_behind") as written:
            await scene.checkpointer.checkpoint()
        assert scene.is_checkpointed()
        assert (written.most, written.total) == (STEP_QUEUES, count)

    play(tmp_path, act)


def test_what_a_recovery_has_walked_is_covered_at_once(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 20)
    killed(store)

    async def act(scene: Scene) -> None:
        scene.sync_log()
        scene.clock.ms += 1
        await eventually(lambda: scene.store.checkpoints.written.mark is not None)
        scene.clock.ms += MINUTE_MS
        await eventually(scene.is_checkpointed)

    play(tmp_path, act)


def test_a_failed_sync_of_a_queue_is_final(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def act(scene: Scene) -> None:
        def fail() -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        put_many(scene.store, 5)
        make_durable(scene.store)
        before = (tmp_path / "checkpoint").read_bytes()
        put_many(scene.store, 5)
        scene.sync_log()
        scene.disk.before_sync = fail
        scene.clock.ms += MINUTE_MS
        await eventually(lambda: scene.failures == 1)
        scene.disk.before_sync = lambda: None
        scene.clock.ms += MINUTE_MS
        await pause()
        assert scene.store.durability.failure is not None
        assert (tmp_path / "checkpoint").read_bytes() == before
        assert "syncing the consume queues failed" in caplog.text

    play(tmp_path, act)


def test_queue_files_that_cannot_be_opened_are_synced_later(tmp_path: Path) -> None:
    """No descriptors are left: nothing was synced, and nothing is lost by it."""

    class NoDescriptors(WatchedDisk):
        refuses = False

        def open(self, path: str) -> File:
            if self.refuses:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
            return super().open(path)

    disk = NoDescriptors()

    async def act(scene: Scene) -> None:
        put_many(scene.store, 5)
        scene.sync_log()
        disk.refuses = True
        await scene.checkpointer.checkpoint()
        assert not scene.is_checkpointed()
        assert scene.failures == 0
        disk.refuses = False
        disk.synced.clear()
        await scene.checkpointer.checkpoint()
        assert scene.is_checkpointed()
        assert len(disk.synced) == 1

    play(tmp_path, act, disk)


def test_a_checkpoint_that_cannot_be_written_is_said_once_and_written_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class NoCheckpoint(WatchedDisk):
        refuses = True

        def create(self, path: str, size: int, *, reserve: bool) -> File:
            if self.refuses and os.path.basename(path).startswith("checkpoint"):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return super().create(path, size, reserve=reserve)

    disk = NoCheckpoint()

    async def act(scene: Scene) -> None:
        put_many(scene.store, 5)
        scene.sync_log()
        for _ in range(3):
            scene.clock.ms += MINUTE_MS
            await pause()
        await eventually(lambda: "cannot write the checkpoint" in caplog.text)
        assert caplog.text.count("cannot write the checkpoint") == 1
        assert scene.failures == 0
        disk.refuses = False
        scene.clock.ms += MINUTE_MS
        await eventually(scene.is_checkpointed)
        assert caplog.text.count("the trouble has passed, it works again") == 1

    with caplog.at_level(logging.WARNING):
        play(tmp_path, act, disk)


def test_a_broker_whose_queues_cannot_be_synced_ends(tmp_path: Path) -> None:
    async def main() -> None:
        disk = WatchedDisk()
        async with serving(tmp_path, disk=disk) as (broker, wire):
            await fill(wire, 3)

            def fail() -> None:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

            broker._flusher.wake()
            await eventually(lambda: broker.state.store.durability.durable == broker.state.store.log.end)
            disk.before_sync = fail
            await broker.state.checkpointer.checkpoint()
            error = await asyncio.wait_for(broker.failed(), 10)
            assert isinstance(error, OSError)
            assert error.errno == errno.EIO
            disk.before_sync = lambda: None

    asyncio.run(main())


def test_a_sync_of_a_queue_that_fails_while_the_broker_stops_is_as_final(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def fail() -> None:
        begun.set()
        go_on.wait(10)
        raise OSError(errno.EIO, "Input/output error")

    async def main() -> None:
        clock, disk = HeldClock(), WatchedDisk()
        scene = Scene(tmp_path, opened(tmp_path, clock=clock, disk=disk), clock, disk)
        put_many(scene.store, 5)
        scene.sync_log()
        disk.before_sync = fail
        task = asyncio.create_task(scene.checkpointer.checkpoint())
        await eventually(begun.is_set)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        go_on.set()
        scene.checkpointer.close()
        assert scene.store.durability.failure is not None

    asyncio.run(main())
