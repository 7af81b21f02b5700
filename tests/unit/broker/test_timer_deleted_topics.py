"""Timed messages whose topic was deleted while they waited: the same rule as for delayed ones."""

from pathlib import Path

import pytest

from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from tests.unit.broker.stage import properties_of, send_request, serving
from tests.unit.broker.test_timer import HeldClock, on_loop, send, settled, stored, timed
from tests.unit.net.stage import Wire


async def delete_topic(wire: Wire, topic: str = "T") -> None:
    (answer,) = await send(wire, Command(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic}))
    assert answer.code == 0, answer


async def bodies(wire: Wire, topic: str = "T") -> list[bytes]:
    return [message.body for message in await stored(wire, topic)]


@on_loop
async def test_a_topic_that_is_deleted_takes_its_waiting_messages_along_and_the_others_come(
    tmp_path: Path,
) -> None:
    clock = HeldClock()
    async with serving(tmp_path, clock=clock) as (broker, wire):
        await send(wire, timed(1, TIMER_DELAY_SEC=5))
        await send(wire, send_request(b"2", 2, topic="U", properties=properties_of(2, TIMER_DELAY_SEC="5")))
        await delete_topic(wire)
        clock.ms += 6_000
        await settled(broker)
        assert await bodies(wire, "U") == [b"2"]
        assert broker.state.store.queues.find("T", 0) is None


def test_one_of_the_same_name_that_is_made_meanwhile_has_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def act(tmp_path: Path) -> None:
        clock = HeldClock()
        async with serving(tmp_path, clock=clock) as (broker, wire):
            await send(wire, timed(1, TIMER_DELAY_SEC=5))
            await settled(broker)
            await delete_topic(wire)
            await send(wire, timed(2, TIMER_DELAY_SEC=5))
            clock.ms += 6_000
            await settled(broker)
            assert await bodies(wire) == [b"2"]

    on_loop(act)(tmp_path)
    assert "messages of T that waited are dropped" in caplog.text


@on_loop
async def test_writing_a_message_again_does_not_bring_it_to_a_topic_that_was_made_meanwhile(
    tmp_path: Path,
) -> None:
    """Its record is younger than the deletion then."""
    clock, settings = HeldClock(), {"timerRollWindowSlot": "10"}
    async with serving(tmp_path, settings, clock=clock) as (broker, wire):
        await send(wire, timed(1, TIMER_DELAY_SEC=30))
        await settled(broker)
        await delete_topic(wire)
        await send(wire, timed(2, TIMER_DELAY_SEC=30))
        for _ in range(40):
            clock.ms += 1_000
            await settled(broker)
        assert await bodies(wire) == [b"2"]


@on_loop
async def test_a_message_comes_though_the_table_has_forgotten_its_topic(tmp_path: Path) -> None:
    """A topic that nobody has deleted is no reason to lose what waits for it: a table may be lost, too."""
    clock = HeldClock()
    async with serving(tmp_path, clock=clock) as (broker, wire):
        await send(wire, timed(1, TIMER_DELAY_SEC=5))
        broker.state.topics.delete("T")
        clock.ms += 6_000
        await settled(broker)
        await send(wire, send_request(b"again", 2))
        assert await bodies(wire) == [b"1", b"again"]
