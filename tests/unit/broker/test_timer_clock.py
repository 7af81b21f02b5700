"""Timed messages while somebody sets the broker's clock: none early, none late, no recall in vain."""

import asyncio
from pathlib import Path

import pytest

from bolide.broker.handlers.timer import Timers
from bolide.store.timer.layout import SLOT_BYTES
from tests.unit.broker.stage import serving
from tests.unit.broker.test_timer import (
    EAGER,
    LAZY,
    START_MS,
    HeldClock,
    killed,
    on_loop,
    recall,
    send,
    settled,
    stored,
    timed,
    wait_written,
)

HOUR_MS = 3_600_000


@pytest.mark.parametrize("way", ["stop", "kill", "kill before a point"])
def test_what_comes_while_the_clock_is_behind_the_timer_comes_in_time_from_the_next_broker_too(
    tmp_path: Path, way: str
) -> None:
    """TM-01: the clock was an hour ahead for a moment; the slots of that hour are over for the timer."""

    async def act() -> None:
        clock = HeldClock()
        settings = LAZY if way == "kill before a point" else EAGER
        root = tmp_path / "first"
        async with serving(root, settings, clock=clock) as (broker, wire):
            await send(wire, timed(1, TIMER_DELAY_SEC=1))
            await settled(broker)
            clock.ms += HOUR_MS
            await settled(broker)
            clock.ms -= HOUR_MS
            await send(wire, timed(2, TIMER_DELIVER_MS=START_MS + 5_000))
            await settled(broker)
            if way == "kill":
                await wait_written(broker)
            if way != "stop":
                root = killed(root, tmp_path / "second")
        async with serving(root, settings, clock=clock) as (broker, wire):
            clock.ms = START_MS + 4_999
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"1"]
            clock.ms += 1
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"1", b"2"]

    asyncio.run(act())


@on_loop
async def test_what_came_before_a_kill_does_not_come_again_however_far_the_clock_has_gone(
    tmp_path: Path,
) -> None:
    """TM-03: half a turn of the wheel and more, so that the timer goes on along it before it takes messages in."""
    clock = HeldClock()
    with pytest.MonkeyPatch.context() as patch:
        for module in ("broker.timer", "store.timer.index", "store.timer.wheel"):
            patch.setattr(f"bolide.{module}.SLOTS", 1200)
        patch.setattr("bolide.store.timer.wheel.WHEEL_BYTES", 1200 * SLOT_BYTES)
        async with serving(tmp_path / "first", LAZY, clock=clock) as (broker, wire):
            await send(wire, timed(1, TIMER_DELAY_SEC=5))
            await settled(broker)
            clock.ms += 6_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"1"]
            root = killed(tmp_path / "first", tmp_path / "second")
        clock.ms += HOUR_MS
        async with serving(root, LAZY, clock=clock) as (broker, wire):
            await settled(broker)
            clock.ms += 2_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"1"]


@on_loop
async def test_a_message_that_a_clock_ahead_has_made_come_is_not_said_to_be_recalled(tmp_path: Path) -> None:
    """TM-02"""
    clock = HeldClock()
    async with serving(tmp_path / "first", LAZY, clock=clock) as (broker, wire):
        (sent,) = await send(wire, timed(1, TIMER_DELAY_SEC=60))
        await settled(broker)
        clock.ms += HOUR_MS
        await settled(broker)
        assert broker.part(Timers).timer.delivered == 1
        clock.ms -= HOUR_MS
        answer = await recall(wire, sent.fields["recallHandle"])
        assert (answer.code, "too late" in (answer.remark or "")) == (604, True)
        root = killed(tmp_path / "first", tmp_path / "second")
    async with serving(root, LAZY, clock=clock) as (broker, wire):  # its point is from before the delivery
        answer = await recall(wire, sent.fields["recallHandle"])
        assert (answer.code, "too late" in (answer.remark or "")) == (604, True)
