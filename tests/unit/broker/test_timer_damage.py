"""Timed messages whose records or queue entries have come to harm: nothing wrong is delivered, and the others come."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from bolide.broker.app import Broker
from bolide.broker.handlers.timer import Timers
from bolide.broker.timer import Timer
from bolide.model.names import TIMER_TOPIC
from bolide.model.numbers import INT32_MIN
from bolide.store.queue_entry import GAP_SIZE
from bolide.store.queue_index import ConsumeQueue
from bolide.store.timer.layout import (
    POINT,
    PREVIOUS,
    SLOT_BYTES,
    SLOT_COUNTS_AT,
    SLOTS,
    UNIT_BYTES,
    UNIT_PREVIOUS_AT,
)
from bolide.store.timer.wheel import PAGE_BYTES
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


def timer_queue(broker: Broker) -> ConsumeQueue:
    queue = broker.state.store.queues.find(TIMER_TOPIC, 0)
    assert queue is not None
    return queue


def damage(broker: Broker, number: int) -> None:
    """One byte of its body, behind everybody's back."""
    entry, log = timer_queue(broker).entry(number), broker.state.store.log
    assert entry is not None
    record, segment = log.read(entry[0], entry[1]), log.segment_of(entry[0])
    assert record is not None
    assert segment is not None
    at = record.index(b"body of ")
    segment.file.write(entry[0] - segment.base + at, b"B")


@pytest.mark.parametrize("when", ["before it is filed", "while it waits", "before it is written again"])
def test_a_damaged_message_is_not_delivered_under_a_new_checksum_but_passed_over_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, when: str
) -> None:
    """TM-03"""
    settings = {"timerRollWindowSlot": "10"} if when == "before it is written again" else {}

    async def act() -> None:
        clock, whole = HeldClock(), Timer._take_in
        with pytest.MonkeyPatch.context() as patch:
            async with serving(tmp_path, settings, clock=clock) as (broker, wire):
                if when == "before it is filed":
                    patch.setattr(Timer, "_take_in", lambda timer: False)
                bodies = [b"body of %d" % number for number in range(3)]
                requests = [timed(number, TIMER_DELAY_SEC=25) for number in range(3)]
                for request, body in zip(requests, bodies, strict=True):
                    request.body = body
                await send(wire, *requests)
                if when != "before it is filed":
                    await settled(broker)
                damage(broker, 1)
                patch.setattr(Timer, "_take_in", whole)
                for _ in range(30):
                    clock.ms += 1_000
                    await settled(broker)
                assert [message.body for message in await stored(wire)] == [bodies[0], bodies[2]]
                assert broker.state.store.figures().damaged_passed_over == 1

    asyncio.run(act())
    assert "passed over" in caplog.text


@on_loop
async def test_entries_that_stand_for_lost_ones_hold_up_nobody_and_deliver_nothing_twice(
    tmp_path: Path,
) -> None:
    """A recovery fills places of lost entries with gaps, or with the next record's entry."""
    clock = HeldClock()
    async with serving(tmp_path, clock=clock) as (broker, wire):
        await send(wire, timed(1, TIMER_DELAY_SEC=5))
        queue = timer_queue(broker)
        first = queue.entry(0)
        assert first is not None
        queue.skip_to(queue.end + 2, (0, GAP_SIZE, 0))
        queue.skip_to(queue.end + 1, first)
        await send(wire, timed(2, TIMER_DELAY_SEC=5))
        await settled(broker)
        clock.ms += 10_000
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"1", b"2"]


def units_file(root: Path) -> Path:
    (path,) = (root / "timerlog").iterdir()
    return path


def zero_wheel(root: Path) -> None:
    path = root / "timerwheel"
    size = path.stat().st_size
    os.truncate(path, 0)
    os.truncate(path, size)


def zero_slot(root: Path) -> None:
    """That of the last message."""
    step = (START_MS + 8_000 - 1) // 1000
    overwrite(root / "timerwheel", step % SLOTS * SLOT_BYTES, bytes(SLOT_BYTES))


def garble_slots(root: Path) -> None:
    """Times among them that are far ahead, as of slots that wait."""
    step = (START_MS + 8_000 - 1) // 1000
    page = step % SLOTS * SLOT_BYTES // PAGE_BYTES * PAGE_BYTES
    overwrite(root / "timerwheel", page, Random(7).randbytes(PAGE_BYTES))


def mislead_slot(root: Path) -> None:
    step = (START_MS + 8_000 - 1) // 1000
    overwrite(root / "timerwheel", step % SLOTS * SLOT_BYTES + 16, PREVIOUS.pack(7 * UNIT_BYTES))


def overfill_slot(root: Path) -> None:
    """With a count that the next recall takes out of its 32 bits."""
    step = (START_MS + 8_000 - 1) // 1000
    overwrite(
        root / "timerwheel", step % SLOTS * SLOT_BYTES + SLOT_COUNTS_AT, INT32_MIN.to_bytes(4, signed=True)
    )


def spoil_unit(number: int, data: bytes, at: int = 0) -> Callable[[Path], None]:
    return lambda root: overwrite(units_file(root), number * UNIT_BYTES + at, data)


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize("way", ["stop", "kill"])
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(zero_wheel, id="the wheel is zeros"),
        pytest.param(zero_slot, id="a slot is zeros"),
        pytest.param(garble_slots, id="a page of slots is noise"),
        pytest.param(mislead_slot, id="a slot ends in another one"),
        pytest.param(overfill_slot, id="a slot counts what cannot be"),
        pytest.param(spoil_unit(2, bytes(UNIT_BYTES)), id="a first unit is zeros"),
        pytest.param(spoil_unit(7, bytes(UNIT_BYTES)), id="a unit in the middle is zeros"),
        pytest.param(spoil_unit(11, bytes(UNIT_BYTES)), id="a last unit is zeros"),
        pytest.param(spoil_unit(7, bytes(30), 22), id="half of a unit is zeros"),
        pytest.param(
            spoil_unit(7, PREVIOUS.pack(9 * UNIT_BYTES), UNIT_PREVIOUS_AT), id="a chain is a circle"
        ),
        pytest.param(spoil_unit(7, PREVIOUS.pack(-5), UNIT_PREVIOUS_AT), id="a chain leads nowhere"),
    ],
)
def test_an_index_that_has_come_to_harm_is_made_again_and_each_message_comes_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil: Callable[[Path], None], way: str
) -> None:
    """TM-03: two were delivered, nine wait in one slot, one in another; one of them is recalled."""

    async def act() -> None:
        clock, root = HeldClock(), tmp_path / "first"
        async with serving(root, EAGER, clock=clock) as (broker, wire):
            delays = [1_000, 1_500, *range(5_000, 5_500, 60), 8_000]
            answers = await send(
                wire, *(timed(number, TIMER_DELAY_MS=ms) for number, ms in enumerate(delays))
            )
            assert (await recall(wire, answers[5].fields["recallHandle"])).code == 0
            clock.ms += 2_000
            await settled(broker)
            assert len(await stored(wire)) == 2
            await wait_written(broker)
            if way == "kill":
                root = killed(root, tmp_path / "second")
        spoil(root)
        expected = [b"%d" % number for number in range(len(delays)) if number != 5]
        for _ in range(2):
            async with serving(root, EAGER, clock=clock) as (broker, wire):
                for _ in range(9):
                    clock.ms += 1_000
                    await settled(broker)
                assert [message.body for message in await stored(wire)] == expected

    asyncio.run(act())
    assert "made again from the log" in caplog.text


@on_loop
async def test_a_stop_that_finds_the_index_harmed_loses_nothing(tmp_path: Path) -> None:
    """TM-03: some of the second have come, those behind the broken unit not."""
    clock = HeldClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bolide.broker.timer_slot.PORTION_UNITS", 2)
        async with serving(tmp_path, EAGER, clock=clock) as (broker, wire):
            await send(wire, *(timed(number, TIMER_DELIVER_MS=START_MS + 5_500) for number in range(7)))
            await settled(broker)
            await wait_written(broker)
            clock.ms += 5_000
            await settled(broker)
            spoil_unit(3, bytes(UNIT_BYTES))(tmp_path)
            broker.part(Timers).timer._done_here = True
        for _ in range(2):
            async with serving(tmp_path, EAGER, clock=clock) as (broker, wire):
                clock.ms += 2_000
                await settled(broker)
                assert [message.body for message in await stored(wire)] == [b"%d" % n for n in range(7)]


@on_loop
async def test_a_point_of_the_index_that_was_harmed_is_not_written_beside_the_new_one(tmp_path: Path) -> None:
    """TM-03: it would say that what is made again is whole."""
    clock = HeldClock()
    async with serving(tmp_path / "first", LAZY, clock=clock) as (broker, wire):
        part = broker.part(Timers)
        await send(wire, *(timed(number, TIMER_DELAY_SEC=5 + number) for number in range(5)))
        await settled(broker)
        part._next = part.timer.point(), int(broker.state.store.log.end), part.timer.changes
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Timer, "_take_in", lambda timer: False)
            part.timer.index.is_broken = True
            await eventually(lambda: part.timer.turn() is not None and part.timer.queue_offset == 0)
            broker.state.store.sync_now()
            await part._keep_once()
            assert not (tmp_path / "first" / "config" / "timercheck").exists()
            root = killed(tmp_path / "first", tmp_path / "second")
    async with serving(root, LAZY, clock=clock) as (broker, wire):
        clock.ms += 20_000
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"%d" % number for number in range(5)]


@on_loop
async def test_a_point_that_lost_all_it_said_brings_nothing_twice(tmp_path: Path) -> None:
    """TM-03"""
    clock = HeldClock()
    async with serving(tmp_path, EAGER, clock=clock) as (broker, wire):
        delays = (1_000, 1_500, 5_000)
        await send(wire, *(timed(number, TIMER_DELAY_MS=ms) for number, ms in enumerate(delays)))
        clock.ms += 2_000
        await settled(broker)
    overwrite(tmp_path / "config" / "timercheck", 0, bytes(4096))
    async with serving(tmp_path, EAGER, clock=clock) as (broker, wire):
        clock.ms += 10_000
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("ahead_ms", [0, 86_400_000])
def test_a_point_of_the_original_that_is_ahead_of_the_clock_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, ahead_ms: int
) -> None:
    async def act() -> None:
        clock = HeldClock()
        async with serving(tmp_path, EAGER, clock=clock) as (broker, wire):
            await send(wire, timed(1, TIMER_DELAY_SEC=3_600))
            await settled(broker)
        page = POINT.pack(START_MS // 1000 * 1000 + ahead_ms, UNIT_BYTES, 1, 1, 0, 1, 2)
        overwrite(tmp_path / "config" / "timercheck", 0, page.ljust(4096, b"\0"))
        async with serving(tmp_path, EAGER, clock=clock) as (broker, wire):
            await settled(broker)

    asyncio.run(act())
    assert ("86399 s ahead of the clock" in caplog.text) == bool(ahead_ms)


def test_a_recall_in_a_slot_that_counts_what_cannot_be_is_filed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """TM-03"""

    async def act() -> None:
        clock = HeldClock()
        async with serving(tmp_path, EAGER, clock=clock) as (broker, wire):
            first, *_ = await send(wire, *(timed(number, TIMER_DELAY_SEC=8) for number in range(3)))
            await settled(broker)
            await wait_written(broker)
        overfill_slot(tmp_path)
        async with serving(tmp_path, EAGER, clock=clock) as (broker, wire):
            assert (await recall(wire, first.fields["recallHandle"])).code == 0
            await settled(broker)
            clock.ms += 10_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"1", b"2"]

    asyncio.run(act())
    assert "met an error" not in caplog.text
