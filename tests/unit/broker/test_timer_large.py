"""Timed messages with large bodies: how much of the log is read for them in one turn of the loop."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bolide.broker import timed_record
from bolide.broker.app import Broker
from bolide.broker.handlers.timer import Timers
from bolide.broker.timer import Timer
from bolide.broker.timer_recalls import Recalls
from bolide.store.log import CommitLog
from bolide.store.queue_entry import ENTRY
from bolide.store.timer.index import TimerIndex
from tests.unit.broker.stage import properties_of, send_request, serving
from tests.unit.broker.test_timer import RECALL, START_MS, HeldClock, on_loop, recall, send, settled
from tests.unit.net.stage import Wire

BODY_BYTES = 50_000
COUNT = 12
SETTINGS = {**RECALL, "mappedFileSizeCommitLog": str(8 * 1024 * 1024)}

WHOLE_SECOND_MS = START_MS - START_MS % 1000 + 5_001
"""The unit of a message with this time names the second alone, so that its record is asked."""


@dataclass
class Reading:
    """Bytes of records that are read, or given to compiled code to read, between two marks."""

    read: list[int] = field(default_factory=lambda: [0])
    is_held: bool = False
    """The timer does nothing meanwhile."""

    def mark(self) -> None:
        self.read.append(0)

    def check(self, at_least: int) -> None:
        """Each piece was as large as it may be, by a record at most, and all of them together read so many records."""
        assert max(self.read) <= 2 * BODY_BYTES + BODY_BYTES + 1000
        assert sum(self.read) >= at_least * BODY_BYTES
        self.read[:] = [0]


@contextmanager
def reading_by_turn() -> Iterator[Reading]:
    reading = Reading()
    turn, read_one, add_plain = Timer.turn, CommitLog.read, TimerIndex.add_plain

    def counted_turn(timer: Timer) -> int | None:
        if reading.is_held:
            return None
        reading.mark()
        again_ms = turn(timer)
        reading.mark()
        return again_ms

    def counted_read(log: CommitLog, log_offset: int, size: int) -> bytes | None:
        reading.read[-1] += size
        return read_one(log, log_offset, size)

    def counted_plain(index: TimerIndex, entries: bytes, first: int, *where: object) -> int:
        count: int = add_plain(index, entries, first, *where)  # type: ignore[arg-type]
        reading.read[-1] += sum(
            size for _, size, _ in list(ENTRY.iter_unpack(entries))[first : first + count]
        )
        return count

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timed_record, "READ_BYTES_PER_TURN", 2 * BODY_BYTES)
        patch.setattr("bolide.broker.timer.DELIVERED_BYTES_PER_TURN", 2 * BODY_BYTES)
        patch.setattr(Timer, "turn", counted_turn)
        patch.setattr(CommitLog, "read", counted_read)
        patch.setattr(TimerIndex, "add_plain", counted_plain)
        yield reading


async def send_large(reading: Reading, wire: Wire, **pairs: str) -> list[str]:
    """All of them before the timer looks at one; their handles."""
    reading.is_held = True
    handles: list[str] = []
    for number in range(1, COUNT + 1):
        properties = properties_of(number, TIMER_DELIVER_MS=str(WHOLE_SECOND_MS), **pairs)
        (answer,) = await send(wire, send_request(bytes(BODY_BYTES), number, properties=properties))
        assert answer.code == 0
        handles.append(answer.fields.get("recallHandle", ""))
    reading.is_held = False
    reading.read[:] = [0]
    return handles


def delivered(broker: Broker) -> int:
    return int(broker.state.store.reader.queue_range("T", 0)[1])


@on_loop
async def test_large_messages_are_filed_loaded_and_delivered_a_few_per_turn(tmp_path: Path) -> None:
    clock = HeldClock()
    with reading_by_turn() as reading:
        async with serving(tmp_path, SETTINGS, clock=clock) as (broker, wire):
            await send_large(reading, wire)
            await settled(broker)
            reading.check(COUNT)
            clock.ms = WHOLE_SECOND_MS - 1
            await settled(broker)
            reading.check(COUNT)
            clock.ms += 1000
            await settled(broker)
            reading.check(COUNT)
            assert delivered(broker) == COUNT


@on_loop
async def test_large_recalls_are_noted_a_few_per_turn(tmp_path: Path) -> None:
    clock = HeldClock()
    with reading_by_turn() as reading:
        async with serving(tmp_path, SETTINGS, clock=clock) as (broker, wire):
            await send_large(reading, wire, TIMER_DELETE_KEY="T+NOBODY")
            await settled(broker)
            reading.check(COUNT)
            clock.ms = WHOLE_SECOND_MS - 1
            await settled(broker)
            reading.check(COUNT)


@on_loop
async def test_large_messages_that_were_recalled_are_passed_over_a_few_per_turn(tmp_path: Path) -> None:
    clock = HeldClock()
    with reading_by_turn() as reading:
        async with serving(tmp_path, SETTINGS, clock=clock) as (broker, wire):
            for handle in await send_large(reading, wire):
                assert (await recall(wire, handle)).code == 0
            await settled(broker)
            reading.read[:] = [0]
            clock.ms += 60_000
            await settled(broker)
            reading.check(COUNT)
            assert delivered(broker) == 0


@on_loop
async def test_a_look_ahead_for_recalls_reads_a_few_large_messages_per_turn(tmp_path: Path) -> None:
    with reading_by_turn() as reading:
        async with serving(tmp_path, SETTINGS, clock=HeldClock()) as (broker, wire):
            await send_large(reading, wire)
            recalls = Recalls(broker.state.store)
            for _ in recalls.look_ahead(0, COUNT):
                reading.mark()
            assert recalls.knows(COUNT)
            reading.check(COUNT)
            assert broker.part(Timers).timer.is_open
