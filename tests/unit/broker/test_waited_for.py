"""Which topics' deletions are kept in mind: those for which messages wait, and no others."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from bolide.broker import waited_for
from bolide.broker.app import Broker
from bolide.broker.handlers.delay import Delays
from bolide.broker.handlers.timer import Timers
from bolide.broker.waited_for import WaitedFor
from bolide.model.steps import at_once
from bolide.wire.command import Command
from tests.unit.broker.stage import bodies_of, properties_of, pull_request, send_request, serving
from tests.unit.broker.test_delete_topic import CREATE
from tests.unit.broker.test_timer import HeldClock, on_loop, settled
from tests.unit.net.stage import Wire

DELAY_MS = 5_000
TIMED, DELAYED = {"TIMER_DELAY_MS": str(DELAY_MS)}, {"DELAY": "2"}  # five seconds


async def make(wire: Wire, topic: str) -> None:
    assert (await wire.ask(Command(17, {**CREATE, "topic": topic}))).code == 0


async def delete(wire: Wire, topic: str) -> None:
    assert (await wire.ask(Command(215, {"topic": topic}))).code == 0


async def send(wire: Wire, topic: str, asks: Mapping[str, str], number: int = 1) -> None:
    request = send_request(b"%d" % number, number, topic=topic, properties=properties_of(number, **asks))
    assert (await wire.ask(request)).code == 0


async def bodies(wire: Wire, topic: str) -> list[bytes]:
    return bodies_of(await wire.ask(pull_request(topic=topic)))


def noted(broker: Broker) -> list[str]:
    return [topic.decode() for topic in broker.state.store.queues.deletions.by_name()]


@pytest.mark.parametrize("asks", [TIMED, DELAYED], ids=["timed", "delayed"])
def test_a_topic_that_was_never_written_to_leaves_nothing_while_messages_wait_for_another(
    tmp_path: Path, asks: dict[str, str]
) -> None:
    @on_loop
    async def act(root: Path) -> None:
        async with serving(root, clock=HeldClock()) as (broker, wire):
            await send(wire, "H", asks)
            for name in ("A", "B", "C"):
                await make(wire, name)
                await delete(wire, name)
            assert noted(broker) == []
            assert broker.state.may_wait_for("H")

    act(tmp_path)


@pytest.mark.parametrize("way", ["a run", "one by one"])
@pytest.mark.parametrize("asks", [TIMED, DELAYED], ids=["timed", "delayed"])
def test_one_that_has_only_messages_that_wait_is_noted_in_every_life(
    tmp_path: Path, asks: dict[str, str], way: str
) -> None:
    """Runs decide once for all messages of a topic that ask in the same words."""

    @on_loop
    async def act(root: Path) -> None:
        clock = HeldClock()
        async with serving(root, clock=clock) as (broker, wire):
            for number in range(3):
                await make(wire, "T")
                queue = 0 if way == "a run" else -1
                properties = properties_of(number, **asks)
                request = send_request(b"%d" % number, queue_id=queue, properties=properties)
                assert (await wire.ask(request)).code == 0
                place = int(broker.state.store.log.end)
                await delete(wire, "T")
                assert broker.state.store.queues.deletions.place_of("T") == place
            await make(wire, "T")
            clock.ms += DELAY_MS + 1_000
            await settled(broker)
            assert broker.state.store.queues.find("T", 0) is None

    act(tmp_path)


@pytest.mark.parametrize("asks", [TIMED, DELAYED], ids=["timed", "delayed"])
def test_after_a_start_any_topic_may_be_waited_for_until_what_was_there_before_has_come(
    tmp_path: Path, asks: dict[str, str]
) -> None:
    @on_loop
    async def act(root: Path) -> None:
        clock = HeldClock()
        async with serving(root, clock=clock) as (_, wire):
            await send(wire, "T", asks)
        async with serving(root, clock=clock) as (broker, wire):
            await settled(broker)
            await delete(wire, "T")
            await send(wire, "T", asks, 2)
            assert noted(broker) == ["T"]
            clock.ms += DELAY_MS + 1_000
            await settled(broker)
            broker.part(Delays).deliveries.deliver_some()
            at_once(broker.part(Timers).timer.index.looking(clock.ms))  # as it does from time to time
            assert await bodies(wire, "T") == [b"2"]
            await send(wire, "H", asks)
            await make(wire, "Never")
            await delete(wire, "Never")
            assert noted(broker) == ["T"]

    act(tmp_path)


def test_a_message_of_an_earlier_process_that_is_written_again_is_known_by_its_topic(tmp_path: Path) -> None:
    """Then nothing waits any more that was stored before the start."""
    settings = {"timerRollWindowSlot": "10"}

    @on_loop
    async def act(root: Path) -> None:
        clock = HeldClock()
        async with serving(root, settings, clock=clock) as (_, wire):
            await send(wire, "T", {"TIMER_DELAY_SEC": "30"})
        async with serving(root, settings, clock=clock) as (broker, wire):
            await settled(broker)
            end = broker.state.store.log.end
            while broker.state.store.log.end == end:
                clock.ms += 1_000
                await settled(broker)
            at_once(broker.part(Timers).timer.index.looking(clock.ms))
            await delete(wire, "T")
            await make(wire, "T")
            for _ in range(40):
                clock.ms += 1_000
                await settled(broker)
            assert broker.state.store.queues.find("T", 0) is None

    act(tmp_path)


def test_with_too_many_names_every_topic_counts_as_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waited_for, "NAMES_MAX", 2)
    topics = WaitedFor(100)
    for name in ("A", "B", "B"):
        topics.note(name)
    assert [topics.has(name, oldest=200) for name in "ABC"] == [True, True, False]
    topics.forget("A")
    topics.note("C")
    assert [topics.has(name, oldest=200) for name in "ABC"] == [False, True, True]
    topics.note("D")
    assert all(topics.has(name, oldest=200) for name in "ABCD")
    assert not topics.has("A", oldest=None)
