"""Timed messages while somebody sets the broker's clock: none early, none late, no recall in vain."""

import asyncio
import shutil
from pathlib import Path

import pytest

from bolide.broker.door import Door
from bolide.broker.handlers.timer import Timers
from bolide.broker.timer import Timer
from bolide.model.errors import TooBusy
from bolide.model.names import TIMER_TOPIC
from bolide.store.new_message import Appended, NewMessage
from bolide.store.timer.layout import SLOT_BYTES
from bolide.store.timer.wheel import Slot
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
from tests.unit.net.stage import eventually

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
async def test_what_a_clock_set_back_has_written_again_comes_once_when_the_clock_is_right_again(
    tmp_path: Path,
) -> None:
    """TM-03: beyond the wheel it was written again; by the right clock the old record would only then be due."""
    clock = HeldClock()
    with pytest.MonkeyPatch.context() as patch:
        for module in ("broker.timer", "store.timer.index", "store.timer.wheel"):
            patch.setattr(f"bolide.{module}.SLOTS", 1200)
        patch.setattr("bolide.store.timer.wheel.WHEEL_BYTES", 1200 * SLOT_BYTES)
        async with serving(tmp_path / "first", LAZY, clock=clock) as (broker, wire):
            await send(wire, timed(1, TIMER_DELAY_SEC=60))
            await settled(broker)
            root = killed(tmp_path / "first", tmp_path / "second")
        clock.ms -= HOUR_MS
        async with serving(root, LAZY, clock=clock) as (broker, wire):
            await settled(broker)
            clock.ms += 1_000
            await settled(broker)
            assert broker.state.store.reader.queue_range(TIMER_TOPIC, 0) == (0, 2)
            root = killed(root, tmp_path / "third")
        clock.ms += HOUR_MS
        async with serving(root, LAZY, clock=clock) as (broker, wire):
            await settled(broker)
            for _ in range(2):
                clock.ms += 59_000
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


@on_loop
async def test_a_recall_holds_where_the_timer_is_too_far_behind_to_file_it(tmp_path: Path) -> None:
    """TM-02: it came after the last point, and the broker was away for more than half a turn of the wheel."""
    clock = HeldClock()
    with pytest.MonkeyPatch.context() as patch:
        for module in ("broker.timer", "store.timer.index", "store.timer.wheel"):
            patch.setattr(f"bolide.{module}.SLOTS", 1200)
        patch.setattr("bolide.store.timer.wheel.WHEEL_BYTES", 1200 * SLOT_BYTES)
        async with serving(tmp_path / "first", EAGER, clock=clock) as (broker, wire):
            taken_back, other = await send(wire, timed(1, TIMER_DELAY_SEC=60), timed(2, TIMER_DELAY_SEC=60))
            assert "recallHandle" in other.fields
            await settled(broker)
        async with serving(tmp_path / "first", LAZY, clock=clock) as (broker, wire):
            await settled(broker)
            assert (await recall(wire, taken_back.fields["recallHandle"])).code == 0
            root = killed(tmp_path / "first", tmp_path / "second")
        clock.ms += HOUR_MS
        async with serving(root, LAZY, clock=clock) as (broker, wire):
            await settled(broker)
            clock.ms += 2_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"2"]


@on_loop
async def test_a_long_delay_that_began_while_the_clock_was_behind_the_timer_ends_in_time(
    tmp_path: Path,
) -> None:
    """TM-03: it is written once more on its way, and the slot of that is over for the timer, too."""
    clock = HeldClock()
    settings = {**EAGER, "timerRollWindowSlot": "100"}
    clock.ms += HOUR_MS
    async with serving(tmp_path, settings, clock=clock) as (broker, wire):
        await settled(broker)
        clock.ms -= HOUR_MS
        await send(wire, timed(1, TIMER_DELIVER_MS=START_MS + 150_000))
        await settled(broker)
    async with serving(tmp_path, settings, clock=clock) as (broker, wire):
        for left_ms, bodies in ((1, []), (0, [b"1"])):
            clock.ms = START_MS + 150_000 - left_ms
            await settled(broker)
            assert [message.body for message in await stored(wire)] == bodies


@pytest.mark.parametrize("away_ms", [0, 10_000], ids=["started at once", "started later"])
@pytest.mark.parametrize("lost", ["timerwheel", "timerwheel timerlog config/timercheck", "step"])
def test_an_index_made_again_has_what_came_while_the_clock_was_behind_the_timer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str, away_ms: int
) -> None:
    """TM-03: of slots that are over for the timer, one came early because the clock was ahead, one has come since it is
    right, and two wait."""

    monkeypatch.setattr("bolide.store.timer.delivered.SOURCES_PER_LOOK", 1)

    async def act() -> None:
        clock = HeldClock()
        async with serving(tmp_path, clock=clock) as (broker, wire):
            await send(wire, timed(1, TIMER_DELIVER_MS=START_MS + HOUR_MS // 2))
            await settled(broker)
            clock.ms += HOUR_MS
            await settled(broker)
            clock.ms -= HOUR_MS
            delays = ((2, 2_000), (3, 5_000), (4, HOUR_MS * 3 // 4))
            await send(wire, *(timed(number, TIMER_DELAY_MS=ms) for number, ms in delays))
            clock.ms += 3_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"1", b"2"]
        for name in lost.replace("step", "").split():
            path = tmp_path / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        clock.ms += away_ms
        settings = {"timerPrecisionMs": "500"} if lost == "step" else {}
        async with serving(tmp_path, settings, clock=clock) as (broker, wire):
            await settled(broker)
            assert len(await stored(wire)) == (3 if away_ms else 2)
            clock.ms += 10_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"1", b"2", b"3"]
            clock.ms += HOUR_MS
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"1", b"2", b"3", b"4"]

    asyncio.run(act())


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_what_was_delivered_does_not_come_again_when_its_broker_ends_while_the_index_is_made_again(
    tmp_path: Path, way: str
) -> None:
    """TM-03: a point that was written meanwhile would say that the index is whole."""

    async def act() -> None:
        clock, root, whole = HeldClock(), tmp_path / "first", Timer._take_in
        async with serving(root, LAZY, clock=clock) as (broker, wire):
            await send(wire, *(timed(number, TIMER_DELAY_SEC=1) for number in range(1, 5)))
            await send(wire, timed(5, TIMER_DELAY_SEC=60))
            await settled(broker)
            clock.ms += 10_000
            await settled(broker)
            assert len(await stored(wire)) == 4
        (root / "timerwheel").unlink()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("bolide.broker.timer.TAKEN_PER_TURN", 1)
            patch.setattr(Timer, "_take_in", lambda timer: timer.queue_offset < 2 and whole(timer))
            async with serving(root, LAZY, clock=clock) as (broker, wire):
                part = broker.part(Timers)
                await eventually(lambda: part.timer.queue_offset == 2)
                for _ in range(2):
                    await part._keep_once()
                    broker.state.store.sync_now()
                if way == "kill":
                    root = killed(root, tmp_path / "second")
        async with serving(root, LAZY, clock=clock) as (broker, wire):
            await settled(broker)
            clock.ms += 60_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"1", b"2", b"3", b"4", b"5"]

    asyncio.run(act())


@on_loop
async def test_what_was_filed_late_and_refused_is_in_an_index_made_again(tmp_path: Path) -> None:
    """TM-03: its broker was killed before it was filed, and the next one began long after it was due."""

    def refuse(door: Door, messages: list[NewMessage]) -> list[Appended]:
        raise TooBusy("not now")

    clock = HeldClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Timer, "_take_in", lambda timer: False)
        async with serving(tmp_path / "first", LAZY, clock=clock) as (_, wire):
            await send(wire, timed(1, TIMER_DELAY_SEC=5))
            root = killed(tmp_path / "first", tmp_path / "second")
    clock.ms += 60 * 24 * HOUR_MS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Door, "append", refuse)
        async with serving(root, LAZY, clock=clock) as (broker, wire):
            await settled(broker)
            for _ in range(2):
                await broker.part(Timers)._keep_once()
                broker.state.store.sync_now()
            root = killed(root, tmp_path / "third")
    (root / "timerwheel").unlink()
    async with serving(root, LAZY, clock=clock) as (broker, wire):
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"1"]


@on_loop
async def test_a_clock_that_was_months_ahead_for_a_moment_stops_no_timed_message(tmp_path: Path) -> None:
    """The log's times do not go back: what is stored later counts from where the clock once was."""
    clock = HeldClock()
    async with serving(tmp_path, EAGER, clock=clock) as (broker, wire):
        clock.ms += 60 * 24 * HOUR_MS
        await send(wire, timed(1, KEYS="plain"))
        clock.ms -= 60 * 24 * HOUR_MS
        await settled(broker)
        for number in (2, 3):
            await send(wire, timed(number, TIMER_DELIVER_MS=clock.ms + 5_000))
            clock.ms += 6_000
            await settled(broker)
            assert [message.body for message in await stored(wire)][-1] == b"%d" % number


@pytest.mark.parametrize("waiting", [0, 1], ids=["nothing waits", "one waits on the way"])
def test_a_timer_whose_place_is_years_back_is_at_this_moment_in_a_few_turns(
    tmp_path: Path, waiting: int
) -> None:
    """A store that was away, or whose clock once was; a stop must not have to walk through those years either."""

    async def act() -> None:
        clock = HeldClock()
        async with serving(tmp_path, clock=clock) as (broker, wire):
            await send(wire, *[timed(1, TIMER_DELAY_SEC=90_000)] * waiting, timed(2, TIMER_DELAY_SEC=1))
            await settled(broker)
        clock.ms += 20 * 365 * 24 * HOUR_MS
        async with serving(tmp_path, clock=clock) as (broker, wire):
            timer = broker.part(Timers).timer
            await eventually(lambda: timer.is_open)
            slots = counted_slots(timer)
            await settled(broker)
            assert timer.read_ms == timer.index.slot_of(clock.ms)
            assert len(slots) < 100
            assert [message.body for message in await stored(wire)] == [b"2", b"1"][: 1 + waiting]
            await send(wire, timed(3, TIMER_DELAY_SEC=1))
            clock.ms += 2_000
            await settled(broker)
            assert [message.body for message in await stored(wire)][-1] == b"3"
            clock.ms += 20 * 365 * 24 * HOUR_MS
            timer.catch_up()
            assert timer.read_ms == timer.index.slot_of(clock.ms)
            assert len(slots) < 200

    asyncio.run(act())


def counted_slots(timer: Timer) -> list[int]:
    """The slots that are asked for, one by one, from now on."""
    asked: list[int] = []
    ask = timer.index.wheel.slot

    def slot(time_ms: int) -> Slot:
        asked.append(time_ms)
        if len(asked) > 10_000:
            raise AssertionError("slot by slot")
        return ask(time_ms)

    timer.index.wheel.slot = slot  # type: ignore[method-assign]
    return asked
