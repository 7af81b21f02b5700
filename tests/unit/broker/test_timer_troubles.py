"""Timed messages when something is in their way: none is lost, none comes twice, and the others come."""

import asyncio
from pathlib import Path

import pytest

from bolide.broker.app import Broker
from bolide.broker.door import Door
from bolide.broker.handlers.timer import Timers
from bolide.model.errors import TooBusy
from bolide.model.recall import RecallHandle
from bolide.model.steps import at_once
from bolide.rules.timed import step_of
from bolide.store.disk_os import OsDisk
from bolide.store.new_message import Appended, NewMessage
from bolide.store.timer.index import TimerIndex
from bolide.wire.command import Command
from bolide.wire.headers.send import RecallRequest
from tests.unit.broker.stage import properties_of, send_request, serving
from tests.unit.broker.test_send_flush import Gate, JumpingClock, on_gated_disk
from tests.unit.broker.test_timer import (
    EAGER,
    RECALL,
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
from tests.unit.net.stage import Wire, eventually
from tests.unit.store.stage import WatchedDisk


def delivered(broker: Broker, topic: str = "T") -> int:
    """How many messages its first queue has."""
    return int(broker.state.store.reader.queue_range(topic, 0)[1])


@on_loop
async def test_messages_that_are_too_many_for_one_segment_are_all_delivered(tmp_path: Path) -> None:
    clock = HeldClock()
    async with serving(tmp_path, {"mappedFileSizeCommitLog": str(64 * 1024)}, clock=clock) as (broker, wire):
        for number in range(1, 25):
            request = send_request(bytes(4000), number, properties=properties_of(number, TIMER_DELAY_SEC="5"))
            assert [answer.code for answer in await send(wire, request)] == [0]
        await settled(broker)
        clock.ms += 5_001
        await settled(broker)
        assert delivered(broker) == 24


@pytest.mark.parametrize(
    "error", [ValueError, TooBusy, KeyError], ids=["never goes", "not now", "unforeseen"]
)
def test_a_message_that_cannot_be_stored_takes_no_other_along(tmp_path: Path, error: type[Exception]) -> None:
    def append(self: Door, messages: list[NewMessage]) -> list[Appended]:
        if any((message.topic, message.body) == ("T", b"3") for message in messages):
            raise error("this one does not go")
        return real(self, messages)

    async def act() -> None:
        clock = HeldClock()
        async with serving(tmp_path, clock=clock) as (broker, wire):
            await send(wire, *(timed(number, TIMER_DELAY_SEC=5) for number in range(1, 7)))
            await settled(broker)
            clock.ms += 20_000
            timer = broker.part(Timers).timer
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Door, "append", append)
                try:
                    await settled(broker)
                except KeyError:
                    pass
                assert timer.delivered == (5 if error is ValueError else 0)
            clock.ms += 20_000
            await settled(broker)
            missing = {b"3"} if error is ValueError else set()
            bodies = [message.body for message in await stored(wire)]
            assert bodies == [b"%d" % n for n in range(1, 7) if b"%d" % n not in missing]

    real = Door.append
    asyncio.run(act())


@on_loop
async def test_a_portion_that_only_recalls_does_not_stop_the_timer(tmp_path: Path) -> None:
    clock = HeldClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bolide.broker.timer_slot.PORTION_UNITS", 4)
        async with serving(tmp_path, RECALL, clock=clock) as (broker, wire):
            due = START_MS + 5_000
            await send(wire, timed(1, TIMER_DELAY_SEC=1))
            nobody = RecallHandle("T", "broker-a", step_of(due, 1000) + 1, "NOBODY").encode()
            assert (await recall(wire, nobody)).code == 0
            await send(wire, *(timed(number, TIMER_DELIVER_MS=due) for number in range(2, 6)))
            await send(wire, timed(6, TIMER_DELAY_SEC=20))
            await settled(broker)
            clock.ms += 60_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"%d" % n for n in range(1, 7)]


@on_loop
async def test_what_was_delivered_before_a_kill_does_not_come_again_after_a_refusal(tmp_path: Path) -> None:
    """TM-03"""
    clock = HeldClock()
    async with serving(tmp_path / "first", EAGER, clock=clock) as (broker, wire):
        await send(wire, timed(1, TIMER_DELAY_MS=100), timed(2, TIMER_DELAY_MS=600))
        await settled(broker)
        await wait_written(broker)
        clock.ms += 300
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"1"]
        root = killed(tmp_path / "first", tmp_path / "second")
    clock.ms += 5_000

    def refuse(self: Door, messages: list[NewMessage]) -> list[Appended]:
        raise TooBusy("not now")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Door, "append", refuse)
        async with serving(root, EAGER, clock=clock) as (broker, wire):
            await settled(broker)
            patch.undo()
            clock.ms += 2_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"1", b"2"]


def test_a_recall_whose_sync_takes_too_long_says_so(tmp_path: Path) -> None:
    """TM-02: the answer is that of a send then, not that of a recall that is safe."""
    clock = JumpingClock()

    async def act(broker: Broker, wire: Wire, gate: Gate, disk: WatchedDisk) -> None:
        (answer,) = await send(wire, timed(1, TIMER_DELAY_SEC=60))
        gate.shut()
        wire.send(Command(370, RecallRequest("T", answer.fields["recallHandle"]).encode(), opaque=99))
        await eventually(gate.entered.is_set)
        clock.ahead_ms += 5_000
        late = await wire.next()
        assert (late.opaque, late.code) == (99, 10)
        gate.open()

    on_gated_disk(tmp_path, act, {"flushDiskType": "SYNC_FLUSH", **RECALL}, clock=clock)


@on_loop
async def test_recalls_of_one_second_have_a_bound_and_messages_of_it_none_by_them(tmp_path: Path) -> None:
    clock = HeldClock()
    due = START_MS + 5_000

    def handle(key: str, at_ms: int = due) -> str:
        return RecallHandle("T", "broker-a", step_of(at_ms, 1000) + 1, key).encode()

    with pytest.MonkeyPatch.context() as patch:
        for module in ("bolide.broker.timer_recalls", "bolide.broker.handlers.timer"):
            patch.setattr(f"{module}.TIMER_RECALLS_MAX", 3)
        async with serving(tmp_path, RECALL, clock=clock) as (broker, wire):
            (first,) = await send(wire, timed(1, TIMER_DELIVER_MS=due))
            assert (await recall(wire, first.fields["recallHandle"])).code == 0
            for number in range(2):
                assert (await recall(wire, handle(f"NOBODY{number}"))).code == 0
            await settled(broker)
            refused = await recall(wire, handle("NOBODY2"))
            assert refused.code == 1
            assert "recalled" in (refused.remark or "")
            assert (await recall(wire, handle("NOBODY", due + 1000))).code == 0
            await send(wire, timed(2, TIMER_DELIVER_MS=due))
        async with serving(tmp_path, RECALL, clock=clock) as (broker, wire):
            await settled(broker)
            assert (await recall(wire, handle("NOBODY2"))).code == 1  # a restart has not forgotten them
            clock.ms += 10_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"2"]


@on_loop
async def test_a_recall_that_names_no_message_is_refused_and_brings_consumers_nothing(tmp_path: Path) -> None:
    """TM-02: a property without a value is none, so the recall itself would be delivered."""
    clock = HeldClock()
    async with serving(tmp_path, RECALL, clock=clock) as (broker, wire):
        await send(wire, timed(1, TIMER_DELAY_SEC=5))
        refused = await recall(wire, RecallHandle("T", "broker-a", START_MS + 5_000, "").encode())
        assert (refused.code, "names no message" in (refused.remark or "")) == (604, True)
        clock.ms += 10_000
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"1"]


@on_loop
async def test_a_recall_with_zeros_in_it_is_refused_as_a_send_is(tmp_path: Path) -> None:
    """A recovery would take them for a part of the log that was lost."""
    async with serving(tmp_path, RECALL, clock=HeldClock()) as (broker, wire):
        await send(wire, timed(1))
        before = broker.state.store.log.end
        refused = await recall(wire, RecallHandle("T", "broker-a", START_MS + 5_000, "A\0B").encode())
        assert (refused.code, "U+0000" in (refused.remark or "")) == (13, True)
        assert broker.state.store.log.end == before


@on_loop
async def test_a_send_with_an_empty_name_to_recall_is_a_plain_timed_message(tmp_path: Path) -> None:
    """As for the original, which knows no property without a value."""
    clock = HeldClock()
    async with serving(tmp_path, RECALL, clock=clock) as (broker, wire):
        (sent,) = await send(wire, timed(1, TIMER_DELAY_SEC=5, TIMER_DEL_UNIQKEY=""))
        assert sent.code == 0
        clock.ms += 10_000
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"1"]


@on_loop
async def test_nothing_of_a_topic_that_clients_may_not_send_to_is_recalled(tmp_path: Path) -> None:
    """A recall is a record of the topic, too."""
    clock = HeldClock()
    async with serving(tmp_path, RECALL, clock=clock) as (broker, wire):
        for topic in ("rmq_sys_wheel_timer", "SCHEDULE_TOPIC_XXXX"):
            handle = RecallHandle(topic, "broker-a", START_MS + 5_000, "KEY").encode()
            before = broker.state.store.log.end
            assert (await recall(wire, handle, topic)).code == 16
            assert broker.state.store.log.end == before


@on_loop
async def test_what_waits_in_memory_for_a_clock_that_was_set_back_has_a_bound(tmp_path: Path) -> None:
    """All of it is due before the slot that the timer is at, so it is in memory, ordered.  None is lost or early."""
    clock = HeldClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bolide.broker.timer.TIMER_READY_MAX", 4)
        async with serving(tmp_path, clock=clock) as (broker, wire):
            timer = broker.part(Timers).timer
            clock.ms += 3_600_000
            await settled(broker)
            await send(wire, timed(1, TIMER_DELAY_MS=1))
            clock.ms += 1_000
            await settled(broker)
            assert timer.delivered == 1
            clock.ms -= 3_600_000
            answers = await send(wire, *(timed(number, TIMER_DELAY_SEC=number) for number in range(2, 9)))
            await settled(broker)
            await settled(broker)
            (late,) = await send(wire, timed(9, TIMER_DELAY_SEC=9))
            assert late.code == 2
            assert len(timer._slot.heap) <= 64
            taken = [number for number, answer in enumerate(answers, 2) if answer.code == 0]
            clock.ms += 20_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"%d" % n for n in [1, *taken]]
            assert (await send(wire, timed(9, TIMER_DELAY_SEC=9)))[0].code == 0


@pytest.mark.parametrize("waits", [False, True], ids=["all are delivered", "one waits"])
def test_a_stop_leaves_nothing_delivered_in_the_files(tmp_path: Path, waits: bool) -> None:
    """The original goes on by the chains of the wheel, and by the times in the units."""

    async def act() -> None:
        clock = HeldClock()
        async with serving(tmp_path, clock=clock) as (broker, wire):
            delays = (100, 200, 700) if waits else (100, 200)
            await send(wire, *(timed(number, TIMER_DELAY_MS=ms) for number, ms in enumerate(delays)))
            await settled(broker)
            clock.ms += 300
            await settled(broker)
            assert len(await stored(wire)) == 2
            index = broker.part(Timers).timer.index
            slot_ms = index.slot_of(START_MS)
        left = TimerIndex(OsDisk(), str(tmp_path), index.step_ms, index.units.file_bytes)
        opened = at_once(left.opening(lambda log_offset, size: None))
        assert opened.point is not None
        assert (opened.point.read_ms, opened.point.units_end) == (slot_ms, 52 * len(delays))
        chain = list(left.chain(left.wheel.slot(slot_ms).last))
        assert [at for at, _ in chain] == ([104] if waits else [])
        times = [unit.time_ms for at in range(0, 52 * len(delays), 52) if (unit := left.units.read(at))]
        assert [time_ms >= slot_ms for time_ms in times] == [False, False, True][: len(delays)]
        left.close()

    asyncio.run(act())


@pytest.mark.parametrize("topic", ["rmq_sys_wheel_timer", "RMQ_SYS_TRANS_HALF_TOPIC", "no/topic"])
def test_a_message_that_says_it_belongs_to_the_broker_is_passed_over_and_the_others_come(
    tmp_path: Path, topic: str
) -> None:
    """In a store that somebody else has written: one that belongs to the timer's topic would come for ever."""
    pairs = {"TIMER_OUT_MS": str(START_MS + 4_999), "REAL_TOPIC": topic, "REAL_QID": "0"}
    odd = NewMessage("rmq_sys_wheel_timer", 0, b"x", properties_of(1, **pairs).encode(), 0, 0, 1, bytes(8))

    @on_loop
    async def play(root: Path) -> None:
        clock = HeldClock()
        async with serving(root, clock=clock) as (broker, wire):
            broker.state.door.append([odd])
            await send(wire, timed(2, TIMER_DELIVER_MS=START_MS + 5_000))
            for _ in range(3):
                clock.ms += 5_000
                await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"2"]
            assert delivered(broker, "rmq_sys_wheel_timer") == 2
            assert delivered(broker, "RMQ_SYS_TRANS_HALF_TOPIC") == 0

    play(tmp_path)
