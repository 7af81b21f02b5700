"""Messages with a time of their own: when they are delivered, what they look like, and recalling them."""

import asyncio
import functools
import shutil
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from bolide.broker.app import Broker
from bolide.broker.handlers.timer import Timers
from bolide.model.names import TIMER_TOPIC
from bolide.model.topic import TopicConfig
from bolide.net.turns import next_turn
from bolide.record.decode import decode_messages
from bolide.wire.command import Command
from bolide.wire.headers.send import RecallRequest
from tests.unit.broker.stage import properties_of, pull_request, send_request, serving
from tests.unit.net.stage import Wire, eventually

START_MS = 1_700_000_000_250
RECALL = {"recallMessageEnable": "true"}


def on_loop(test: Callable[[Path], Coroutine[None, None, None]]) -> Callable[[Path], None]:
    @functools.wraps(test)
    def run(tmp_path: Path) -> None:
        asyncio.run(test(tmp_path))

    return run


class HeldClock:
    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms - 1_600_000_000_000


def timed(number: int = 1, **pairs: Any) -> Command:
    texts = {name: str(value) for name, value in pairs.items()}
    return send_request(b"%d" % number, number, properties=properties_of(number, **texts))


async def send(wire: Wire, *requests: Command) -> list[Command]:
    wire.send(*requests)
    return [await wire.next() for _ in requests]


async def stored(wire: Wire, topic: str = "T", queue_id: int = 0) -> list[Any]:
    wire.send(pull_request(topic=topic, queue_id=queue_id))
    return list(decode_messages((await wire.next()).body, "broker-a"))


async def settled(broker: Broker) -> None:
    """Until the timer has done everything that it can do now."""
    timer = broker.part(Timers).timer
    await eventually(lambda: timer.is_open)
    while True:
        again_ms = timer.turn()
        waits = again_ms is None or again_ms > broker.state.clock.now_ms()
        if waits and not timer.index.is_broken:  # or it waits for the thread that writes its files
            return
        await next_turn()


@on_loop
async def test_a_message_is_delivered_at_its_very_millisecond_and_not_before(tmp_path: Path) -> None:
    """TM-01"""
    clock = HeldClock()
    async with serving(tmp_path, clock=clock) as (broker, wire):
        (answer,) = await send(wire, timed(TIMER_DELIVER_MS=START_MS + 7_000))
        assert answer.code == 0
        assert answer.fields["recallHandle"]
        for left in (7_000, 1, 0):
            clock.ms = START_MS + 7_000 - left
            await settled(broker)
            assert len(await stored(wire)) == (left == 0)
        (message,) = await stored(wire)
        assert message.body == b"1"
        assert message.properties["TIMER_OUT_MS"] == "1700000007000"
        assert message.properties["REAL_TOPIC"] == "T"


@on_loop
async def test_what_was_meant_for_a_queue_that_is_gone_comes_in_one_that_can_be_read(tmp_path: Path) -> None:
    clock = HeldClock()
    async with serving(tmp_path, clock=clock) as (broker, wire):
        broker.state.topics.put(TopicConfig("T", 4, 4))
        properties = properties_of(1, TIMER_DELAY_MS="500")
        (answer,) = await send(wire, send_request(b"1", queue_id=3, properties=properties))
        assert answer.code == 0, answer.remark
        broker.state.topics.put(TopicConfig("T", 2, 2))
        clock.ms += 1_000
        await settled(broker)
        assert [message.body for message in await stored(wire, queue_id=1)] == [b"1"]


@on_loop
async def test_the_time_can_be_a_delay_and_a_time_in_the_past_is_now(tmp_path: Path) -> None:
    """TM-01"""
    clock = HeldClock()
    async with serving(tmp_path, clock=clock) as (broker, wire):
        await send(
            wire, timed(1, TIMER_DELAY_SEC=5), timed(2, TIMER_DELAY_MS=2_001), timed(3, TIMER_DELIVER_MS=7)
        )
        assert [message.body for message in await stored(wire)] == [b"3"]
        clock.ms += 2_001  # it may have been sent at the end of its millisecond
        await settled(broker)
        assert len(await stored(wire)) == 1
        clock.ms += 1
        await settled(broker)
        assert len(await stored(wire)) == 2
        clock.ms += 2_999
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"3", b"2", b"1"]


@on_loop
async def test_what_cannot_be_promised_is_refused(tmp_path: Path) -> None:
    """TM-01"""
    async with serving(tmp_path, clock=HeldClock()) as (_, wire):
        far = await send(
            wire,
            timed(TIMER_DELAY_SEC=259_201),
            timed(TIMER_DELAY_MS="soon"),
            timed(TIMER_DELAY_SEC=9 * 10**17),
        )
        assert [answer.code for answer in far] == [13, 13, 13]
        assert "timerMaxDelaySec" in (far[0].remark or "")


async def recall(wire: Wire, handle: str, topic: str = "T") -> Command:
    wire.send(Command(370, RecallRequest(topic, handle).encode(), opaque=99))
    return await wire.next()


@on_loop
async def test_a_recalled_message_is_never_delivered(tmp_path: Path) -> None:
    """TM-02"""
    clock = HeldClock()
    async with serving(tmp_path, RECALL, clock=clock) as (broker, wire):
        first, _ = await send(wire, timed(1, TIMER_DELAY_SEC=5), timed(2, TIMER_DELAY_SEC=5))
        answer = await recall(wire, first.fields["recallHandle"])
        assert (answer.code, answer.fields["msgId"]) == (
            0,
            properties_of(1).split("\x01")[1].split("\x02")[0],
        )
        clock.ms += 10_000
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"2"]
        assert (await recall(wire, first.fields["recallHandle"])).code == 604


@on_loop
async def test_waiting_messages_outlive_a_restart(tmp_path: Path) -> None:
    """TM-03"""
    clock = HeldClock()
    async with serving(tmp_path, clock=clock) as (broker, wire):
        await send(wire, *(timed(number, TIMER_DELAY_MS=1_000 * number) for number in range(1, 6)))
        clock.ms += 2_001
        await settled(broker)
        assert len(await stored(wire)) == 2
    clock.ms += 1_000
    async with serving(tmp_path, clock=clock) as (broker, wire):
        await settled(broker)
        assert len(await stored(wire)) == 3
        clock.ms += 9_000
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"1", b"2", b"3", b"4", b"5"]


def killed(root: Path, copy: Path) -> Path:
    """The store as a broker leaves it that is killed now: what was written is there, whoever has it in memory."""
    shutil.copytree(root, copy, copy_function=_copy_sparse)
    return copy


def _copy_sparse(source: str, target: str) -> str:
    copied = subprocess.run(
        ["cp", "--sparse=always", source, target], check=False, capture_output=True, text=True
    )
    # A table is written beside its file, and takes its place: what is gone by now is no part of the store.
    assert copied.returncode == 0 or not Path(source).exists(), copied.stderr
    return target


async def wait_written(broker: Broker) -> None:
    """Until a point is written behind everything that has happened."""
    part = broker.part(Timers)
    await eventually(lambda: part._written is not None and part._written[1] == part.timer.changes)


EAGER = {"timerFlushIntervalMs": "10", "flushIntervalCommitLog": "10", **RECALL}
LAZY = {"timerFlushIntervalMs": "3600000", **RECALL}


@pytest.mark.parametrize("settings", [EAGER, LAZY], ids=["just written", "never written"])
def test_after_a_kill_each_message_comes_once(tmp_path: Path, settings: dict[str, str]) -> None:
    """TM-03: two have been delivered when the broker is killed in the middle of a second, one is recalled."""

    async def act() -> None:
        clock = HeldClock()
        async with serving(tmp_path / "first", settings, clock=clock) as (broker, wire):
            answers = await send(
                wire, *(timed(number, TIMER_DELAY_MS=200 * number) for number in range(1, 12))
            )
            await recall(wire, answers[10].fields["recallHandle"])
            await settled(broker)
            if settings is EAGER:
                await wait_written(broker)
            clock.ms += 401
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"1", b"2"]
            root = killed(tmp_path / "first", tmp_path / "second")
        clock.ms += 200
        async with serving(root, settings, clock=clock) as (broker, wire):
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"1", b"2", b"3"]
            clock.ms += 60_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"%d" % n for n in range(1, 11)]

    asyncio.run(act())


@pytest.mark.parametrize(
    "damage",
    ["timerwheel", "timerlog", "config/timercheck", "timerwheel timerlog config/timercheck", "step"],
)
def test_what_is_lost_of_the_index_is_made_again_from_the_log(tmp_path: Path, damage: str) -> None:
    """TM-03: nothing is lost, nothing comes twice, whatever of the timer's files is missing."""

    async def act() -> None:
        clock = HeldClock()
        async with serving(tmp_path, RECALL, clock=clock) as (broker, wire):
            answers = await send(
                wire, *(timed(number, TIMER_DELAY_MS=700 * number) for number in range(1, 10))
            )
            assert (await recall(wire, answers[8].fields["recallHandle"])).code == 0
            clock.ms += 2_200
            await settled(broker)
            assert len(await stored(wire)) == 3
        settings = {**RECALL, "timerPrecisionMs": "500"} if damage == "step" else RECALL
        for name in damage.split():
            path = tmp_path / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        async with serving(tmp_path, settings, clock=clock) as (broker, wire):
            await settled(broker)
            assert len(await stored(wire)) == 3
            clock.ms += 60_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"%d" % n for n in range(1, 9)]

    asyncio.run(act())


@on_loop
async def test_a_long_delay_is_written_to_the_log_again_and_comes_once_in_time(tmp_path: Path) -> None:
    clock = HeldClock()
    settings = {"timerRollWindowSlot": "10", **RECALL}
    async with serving(tmp_path, settings, clock=clock) as (broker, wire):
        due = START_MS + 35_000
        kept, gone = await send(wire, timed(1, TIMER_DELIVER_MS=due), timed(2, TIMER_DELIVER_MS=due))
        assert kept.code == 0
        clock.ms += 12_000
        await settled(broker)
        assert (await recall(wire, gone.fields["recallHandle"])).code == 0
        for _ in range(22):
            clock.ms += 1_000
            await settled(broker)
        assert await stored(wire) == []
        assert int(broker.state.store.reader.queue_range(TIMER_TOPIC, 0)[1]) > 5
        clock.ms = due - 1
        await settled(broker)
        assert await stored(wire) == []
        clock.ms = due
        await settled(broker)
        (message,) = await stored(wire)
        assert message.body == b"1"
        assert int(message.properties["TIMER_ROLL_TIMES"]) >= 2


@on_loop
async def test_a_clock_that_steps_back_delivers_nothing_early_or_twice(tmp_path: Path) -> None:
    clock = HeldClock()
    async with serving(tmp_path, clock=clock) as (broker, wire):
        await send(wire, timed(1, TIMER_DELAY_SEC=5))
        clock.ms += 5_001
        await settled(broker)
        clock.ms -= 3_600_000
        await send(wire, timed(2, TIMER_DELIVER_MS=clock.ms + 5_000))
        clock.ms += 4_999
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"1"]
        clock.ms += 1
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"1", b"2"]
        clock.ms += 3_700_000
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"1", b"2"]


@on_loop
async def test_a_slot_of_many_portions_is_delivered_in_the_order_of_sending(tmp_path: Path) -> None:
    clock = HeldClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bolide.broker.timer_slot.PORTION_UNITS", 7)
        patch.setattr("bolide.broker.timer_slot.LOADED_PER_TURN", 3)
        async with serving(tmp_path, clock=clock) as (broker, wire):
            await send(wire, *(timed(number, TIMER_DELIVER_MS=START_MS + 5_000) for number in range(1, 31)))
            clock.ms += 5_000
            await settled(broker)
            assert [message.body for message in await stored(wire)] == [b"%d" % n for n in range(1, 31)]


@on_loop
async def test_units_that_name_only_their_second_as_those_of_the_original_are_not_early(
    tmp_path: Path,
) -> None:
    clock = HeldClock()
    async with serving(tmp_path, clock=clock) as (broker, wire):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("bolide.broker.timer.promised_ms", lambda properties, out_ms, *_: out_ms + 1)
            await send(wire, timed(1, TIMER_DELIVER_MS=START_MS + 5_400))
            await settled(broker)
        clock.ms += 5_399
        await settled(broker)
        assert await stored(wire) == []
        clock.ms += 1
        await settled(broker)
        assert len(await stored(wire)) == 1


@on_loop
async def test_a_stop_within_a_second_keeps_the_recalls_of_what_still_waits_in_it(tmp_path: Path) -> None:
    """TM-04: one of the second has been delivered, another one recalled and not due yet."""
    clock = HeldClock()
    async with serving(tmp_path, RECALL, clock=clock) as (broker, wire):
        _, recalled = await send(
            wire, timed(1, TIMER_DELIVER_MS=START_MS + 5_000), timed(2, TIMER_DELIVER_MS=START_MS + 5_500)
        )
        await settled(broker)
        assert (await recall(wire, recalled.fields["recallHandle"])).code == 0
        clock.ms += 5_001
        await settled(broker)
    async with serving(tmp_path, RECALL, clock=clock) as (broker, wire):
        clock.ms += 10_000
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"1"]


def test_a_message_comes_once_though_two_starts_find_it_delivered_in_the_last_second(tmp_path: Path) -> None:
    """TM-02: the second point is written when nothing new has been delivered since the first kill."""
    clock, images = HeldClock(), [tmp_path / name for name in ("first", "second", "third")]
    settings = {"timerFlushIntervalMs": "1"}

    async def life(root: Path, image: Path | None, act: Callable[[Broker, Wire], Any]) -> None:
        async with serving(root, settings, clock=clock) as (broker, wire):
            await settled(broker)
            await act(broker, wire)
            if image is not None:
                part = broker.part(Timers)
                broker.state.store.sync_now()
                await eventually(lambda: part._next is None and not part._is_due())
                killed(root, image)

    async def deliver(broker: Broker, wire: Wire) -> None:
        await send(wire, timed(1, TIMER_DELIVER_MS=START_MS + 5_000))
        clock.ms += 5_001
        await settled(broker)
        assert len(await stored(wire)) == 1

    async def write_a_point(broker: Broker, wire: Wire) -> None:
        broker.part(Timers).timer.changes += 1

    async def count(broker: Broker, wire: Wire) -> None:
        clock.ms += 10_000
        await settled(broker)
        assert len(await stored(wire)) == 1

    asyncio.run(life(images[0], images[1], deliver))
    asyncio.run(life(images[1], images[2], write_a_point))
    asyncio.run(life(images[2], None, count))


@on_loop
async def test_an_index_made_again_delays_nobody_because_of_what_was_written_again(tmp_path: Path) -> None:
    """TM-01: the record of a long delay that was written again is due long after that was done."""
    clock, settings = HeldClock(), {"timerRollWindowSlot": "20"}
    image = tmp_path / "killed"
    async with serving(tmp_path / "store", settings, clock=clock) as (broker, wire):
        await send(wire, timed(1, TIMER_DELIVER_MS=START_MS + 90_000))
        await settled(broker)
        clock.ms += 21_000
        await settled(broker)
        killed(tmp_path / "store", image)
    (image / "config" / "timercheck").unlink(missing_ok=True)
    async with serving(image, settings, clock=clock) as (broker, wire):
        await send(wire, timed(2, TIMER_DELIVER_MS=clock.ms + 3_000))
        clock.ms += 3_001
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"2"]


@on_loop
async def test_a_send_that_recalls_is_refused_where_recalls_are(tmp_path: Path) -> None:
    """TM-02: a recall is stored as a message that names another; a client could send that one itself."""
    clock, settings = HeldClock(), {**EAGER, "recallMessageEnable": "false"}
    async with serving(tmp_path, settings, clock=clock) as (broker, wire):
        await send(wire, timed(1, TIMER_DELIVER_MS=clock.ms + 60_000))
        request = timed(2, TIMER_DELIVER_MS=clock.ms + 60_000, TIMER_DEL_UNIQKEY="x")
        assert (await wire.ask(request)).code == 16
        clock.ms += 60_000
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"1"]


@on_loop
async def test_a_message_that_waited_before_waits_again_when_it_is_sent_so(tmp_path: Path) -> None:
    """TM-01: it comes back with what was written when it was delivered, and must not be early."""
    clock = HeldClock()
    async with serving(tmp_path, EAGER, clock=clock) as (broker, wire):
        await send(wire, timed(1, TIMER_DELAY_SEC=1))
        clock.ms += 2_000
        await settled(broker)
        (first,) = await stored(wire)
        again = {
            name: text
            for name, text in first.properties.items()
            if name not in ("UNIQ_KEY", "TIMER_DELAY_SEC")
        }
        assert "TIMER_OUT_MS" in again
        await send(wire, timed(2, **again, TIMER_DELIVER_MS=clock.ms + 60_000))
        await settled(broker)
        assert len(await stored(wire)) == 1
        clock.ms += 60_000
        await settled(broker)
        assert [message.body for message in await stored(wire)] == [b"1", b"2"]
