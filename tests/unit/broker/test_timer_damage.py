"""Timed messages whose records or queue entries have come to harm: nothing wrong is delivered, and the others come."""

import asyncio
from pathlib import Path

import pytest

from bolide.broker.app import Broker
from bolide.broker.timer import Timer
from bolide.model.names import TIMER_TOPIC
from bolide.store.queue_entry import GAP_SIZE
from bolide.store.queue_index import ConsumeQueue
from tests.unit.broker.stage import serving
from tests.unit.broker.test_timer import HeldClock, on_loop, send, settled, stored, timed


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
