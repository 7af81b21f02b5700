"""Timed messages on a disk that loses power at any moment: each is in exactly one place, and comes once."""

import asyncio
import errno
import random
from collections import Counter
from pathlib import Path

import pytest

from bolide.broker.app import Broker
from bolide.broker.handlers.timer import Timers
from tests.crash.disk import SimDisk
from tests.unit.broker.stage import serving
from tests.unit.broker.test_timer import HeldClock, recall, send, settled, stored, timed
from tests.unit.net.stage import eventually

ROOT = Path("/data/store")
SETTINGS = {
    "flushDiskType": "SYNC_FLUSH",
    "mappedFileSizeTimerLog": "520",
    "timerFlushIntervalMs": "20",
    "recallMessageEnable": "true",
}
ASYNC = {
    **SETTINGS,
    "flushDiskType": "ASYNC_FLUSH",
    "flushIntervalCommitLog": "600000",
    "timerFlushIntervalMs": "600000",
    "mappedFileSizeTimerLog": "52000",
}
"""Nothing is synced or written by itself."""
MESSAGES = 24
RECALLED = 24
STATES = 2
"""Drawn at each moment."""


async def seen_through(broker: Broker) -> None:
    """Until the timer has nothing to do, and all that it has stored may be seen."""
    store, end = broker.state.store, -1
    while end != store.log.end:
        await settled(broker)
        end = int(store.log.end)
        await eventually(lambda: store.reader.readable_end >= store.log.end)
        await settled(broker)


async def written(broker: Broker) -> None:
    """Until a point is written behind everything that has happened."""
    part = broker.part(Timers)
    await eventually(lambda: part._written is not None and part._written[1] == part.timer.changes)


async def found_later(
    disk: SimDisk, now_ms: int, settings: dict[str, str] = SETTINGS, *, step_ms: int = 150
) -> Counter[bytes]:
    """What a broker that starts there has delivered when all times are over."""
    clock = HeldClock()
    clock.ms = now_ms
    async with serving(ROOT, settings, clock=clock, disk=disk) as (broker, wire):
        await seen_through(broker)
        early = {int(message.body) for message in await stored(wire)}
        assert all(clock.ms >= HeldClock().ms + step_ms * number for number in early)
        clock.ms += 60_000
        await seen_through(broker)
        return Counter(message.body for message in await stored(wire))


def test_power_loss_at_any_moment_loses_no_timed_message_and_delivers_none_twice() -> None:
    """TM-03"""
    disk, clock = SimDisk(), HeldClock()
    wanted = Counter(b"%d" % number for number in range(1, MESSAGES + 1) if number != RECALLED)

    async def main() -> None:
        async with serving(ROOT, SETTINGS, clock=clock, disk=disk) as (broker, wire):
            messages = (timed(number, TIMER_DELAY_MS=150 * number) for number in range(1, MESSAGES + 1))
            answers = await send(wire, *messages)
            assert (await recall(wire, answers[RECALLED - 1].fields["recallHandle"])).code == 0
            for moment in range(12):
                for seed in range(STATES):
                    after = disk.after_power_loss(random.Random(moment * STATES + seed))
                    assert await found_later(after, clock.ms) == wanted, (moment, seed)
                clock.ms += 310
                await settled(broker)

    asyncio.run(main())


def test_a_kill_at_any_step_of_a_stop_loses_no_timed_message_and_delivers_none_twice() -> None:
    """TM-03: some of a second have been delivered, the oldest of it waits, one of it is recalled."""
    disk, clock = SimDisk(), HeldClock()
    left: list[tuple[str, SimDisk]] = []

    async def main() -> None:
        async with serving(ROOT, SETTINGS, clock=clock, disk=disk) as (broker, wire):
            answers = await send(
                wire, *(timed(number, TIMER_DELAY_MS=150 * number) for number in (9, 7, 11, 6, 8))
            )
            assert (await recall(wire, answers[0].fields["recallHandle"])).code == 0
            await seen_through(broker)
            await written(broker)
            clock.ms += 1080
            await seen_through(broker)
            assert len(await stored(wire)) == 2
            disk.on_step = lambda kind, path: left.append((f"{kind} {path}", disk.as_a_kill_leaves_it()))
        disk.on_step = lambda kind, path: None
        names = ("timerlog", "timerwheel", "timercheck")
        steps = [one for one in left if any(name in one[0] for name in names)]
        assert len(steps) > 5
        for step, after in [*steps, ("the end", disk)]:
            found = await found_later(after, clock.ms)
            assert found == Counter([b"6", b"7", b"8", b"11"]), step

    asyncio.run(main())


async def keep(broker: Broker) -> None:
    """Have a point of now written."""
    part, store = broker.part(Timers), broker.state.store
    await part._keep_once()
    await eventually(lambda: store.durability.durable == store.log.end)
    await part._keep_once()


def test_power_loss_takes_nothing_durable_along_with_what_is_not() -> None:
    """TM-03: the wheel on the disk knows of a message that the log has lost, in the slot of one that it has not.  The
    broker that starts there is killed too."""
    disk, clock = SimDisk(), HeldClock()

    async def main() -> None:
        async with serving(ROOT, ASYNC, clock=clock, disk=disk) as (broker, wire):
            part, store = broker.part(Timers), broker.state.store
            await send(wire, timed(1, TIMER_DELAY_MS=9_000))
            await settled(broker)
            await part._keep_once()  # takes a point, and has the log synced
            await eventually(lambda: store.durability.durable == store.log.end)
            await send(wire, timed(2, TIMER_DELAY_MS=9_000))
            await settled(broker)
            assert store.durability.durable < store.log.end
            await part._keep_once()  # writes the point, and the wheel as it is now
            for seed in range(6):
                after = disk.after_power_loss(random.Random(seed))
                async with serving(ROOT, ASYNC, clock=clock, disk=after) as (second, _):
                    await settled(second)
                    again = after.as_a_kill_leaves_it()
                    lost = after.after_power_loss(random.Random(seed))
                for left in (again, lost):
                    found = await found_later(left, clock.ms, ASYNC, step_ms=0)
                    assert found[b"1"] == 1, seed
                    assert found[b"2"] <= 1, seed

    asyncio.run(main())


def test_a_full_disk_while_a_message_is_filed_loses_none_after_a_kill() -> None:
    """TM-03: acknowledged, and without a unit when the next points are due."""
    disk, clock = SimDisk(), HeldClock()

    def full(kind: str, path: str) -> None:
        if "timerlog" in path and kind == "write":
            raise OSError(errno.ENOSPC, "No space left on device", path)

    async def main() -> None:
        async with serving(ROOT, ASYNC, clock=clock, disk=disk) as (broker, wire):
            part = broker.part(Timers)
            await send(wire, timed(1, TIMER_DELAY_MS=9_000))
            await settled(broker)
            await keep(broker)
            disk.on_step = full
            (answer,) = await send(wire, timed(2, TIMER_DELAY_MS=9_000))
            assert answer.code == 0
            with pytest.raises(OSError, match="No space"):
                part.timer.turn()
            await keep(broker)
            after = disk.as_a_kill_leaves_it()
            disk.on_step = lambda kind, path: None
            assert await found_later(after, clock.ms, ASYNC, step_ms=0) == Counter([b"1", b"2"])
            await settled(broker)
            await keep(broker)
            after = disk.as_a_kill_leaves_it()
            assert await found_later(after, clock.ms, ASYNC, step_ms=0) == Counter([b"1", b"2"])

    asyncio.run(main())
