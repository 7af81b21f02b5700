"""SegmentMaker: the next segment is there before a message needs it, and no trouble of the disk is lost."""

import asyncio
import errno
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bolide.broker.segment_maker import SegmentMaker
from bolide.net.surroundings import Surroundings
from bolide.store.store import MessageStore
from tests.unit.broker.stage import send_request, serving
from tests.unit.net.stage import eventually
from tests.unit.store.stage import HeldClock, WatchedDisk, message, opened, put


class CountingClock(HeldClock):
    """Counts how often the maker has looked whether there is something to do."""

    looks = 0

    def monotonic_ms(self) -> int:
        self.looks += 1
        return super().monotonic_ms()


class Scene:
    def __init__(self, root: Path) -> None:
        self.clock, self.disk = CountingClock(), WatchedDisk()
        self.store: MessageStore = opened(root, clock=self.clock, disk=self.disk)
        self.failures = 0
        self.maker = SegmentMaker(self.store, Surroundings(self.clock), self._failed)

    def _failed(self) -> None:
        self.failures += 1

    def use_most_of_the_segment(self) -> None:
        put(self.store, message(body=b"x" * 3200))

    def is_ready(self) -> bool:
        return self.store.log.next_segment() is None


def play(root: Path, act: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        scene = Scene(root)
        task = asyncio.create_task(scene.maker.run())
        try:
            await act(scene)
        finally:
            task.cancel()
            scene.maker.close()

    asyncio.run(main())


def test_a_segment_that_is_due_is_made_and_the_roll_does_not_wait_for_the_disk(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        for rolls in range(5):
            scene.use_most_of_the_segment()
            assert (scene.store.log.rolls, scene.store.log.rolls_in_place) == (rolls, 0)
            await eventually(scene.is_ready)

    play(tmp_path, act)


def test_no_room_is_said_once_and_the_segment_is_made_when_there_is_some(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(scene: Scene) -> None:
        scene.use_most_of_the_segment()
        scene.disk.full = True
        for _ in range(3):
            scene.clock.ms += 1_000
            await eventually(lambda: "No space left" in caplog.text)
        scene.disk.full = False
        scene.clock.ms += 1_000
        await eventually(scene.is_ready)
        assert scene.failures == 0

    with caplog.at_level(logging.WARNING):
        play(tmp_path, act)
    assert sum("No space left" in line for line in caplog.messages) == 1
    assert sum("the trouble has passed, it works again" in line for line in caplog.messages) == 1


def test_while_the_disk_is_too_full_for_messages_no_segment_takes_more_of_it(tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        scene.use_most_of_the_segment()
        scene.store.disk_refusal = "too full"
        looks = scene.clock.looks
        await eventually(lambda: scene.clock.looks >= looks + 3)
        assert not scene.is_ready()
        scene.store.disk_refusal = None
        await eventually(scene.is_ready)

    play(tmp_path, act)


def test_a_failed_sync_ends_the_making_and_is_told(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def act(scene: Scene) -> None:
        scene.use_most_of_the_segment()
        scene.disk.before_sync = fail
        await eventually(lambda: scene.failures == 1)
        assert scene.store.durability.failure is not None

    play(tmp_path, act)


def test_a_broker_makes_its_segments_ahead(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, {"mappedFileSizeCommitLog": "65536"}) as (broker, wire):
            for number in range(4):
                answer = await wire.ask(send_request(b"x" * 55_000, number))
                assert answer.code == 0
                await eventually(lambda: broker.state.store.log.next_segment() is None)
            assert (broker.state.store.log.rolls, broker.state.store.log.rolls_in_place) == (3, 0)

    asyncio.run(main())
