"""Long polling over sockets (LP-01 to LP-06): who waits, who is woken, who is answered when."""

import asyncio
from pathlib import Path

import pytest

from bolide.broker import hold as hold_module
from bolide.broker.app import Broker
from bolide.broker.handlers.pull import Pulling
from bolide.model.topic import Subscription
from bolide.net import link as link_module
from bolide.wire.bodies.group import ConsumerData, HeartbeatData
from bolide.wire.command import Command
from bolide.wire.headers.pull import PullFlag
from tests.unit.broker.stage import (
    GROUP,
    MAY_WAIT,
    bodies_of,
    connect,
    fill,
    offsets_of,
    pull_request,
    send_request,
)
from tests.unit.broker.test_send import play
from tests.unit.net.stage import Wire, eventually, pause
from tests.unit.store.stage import HeldClock


async def held(broker: Broker, count: int) -> None:
    await eventually(lambda: len(broker.part(Pulling).hold) == count)


async def is_silent(wire: Wire, seconds: float = 0.05) -> bool:
    try:
        await asyncio.wait_for(wire.reader.read(1), seconds)
    except TimeoutError:
        return True
    return False


@pytest.mark.parametrize(("wait_ms", "answered_ms"), [(15_000, 15_000), (20_000, 20_000), (90_000, 25_000)])
def test_a_pull_at_the_end_is_answered_when_its_time_is_over_and_not_before(
    tmp_path: Path, wait_ms: int, answered_ms: int
) -> None:
    """LP-01, LP-05; never longer than clients wait."""
    clock = HeldClock()

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 3)
        wire.send(pull_request(3, 8, flags=MAY_WAIT, wait_ms=wait_ms))
        await held(broker, 1)
        clock.ms += answered_ms - 1
        broker.part(Pulling).hold.sweep(clock.monotonic_ms())
        assert len(broker.part(Pulling).hold) == 1
        clock.ms += 1
        broker.part(Pulling).hold.sweep(clock.monotonic_ms())
        answer = await wire.next()
        assert (answer.code, answer.opaque, offsets_of(answer)) == (19, 8, (3, 0, 3))

    play(tmp_path, act, clock=clock)


def test_an_arriving_message_wakes_every_pull_that_waits_for_it(tmp_path: Path) -> None:
    """LP-02, of whatever group and connection, plain send or not."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        wires = [await connect(broker) for _ in range(5)]
        for properties in ("UNIQ_KEY\x01K\x02", ""):
            offset = int(broker.state.store.reader.queue_range("T", 0)[1])
            for number, one in enumerate(wires):
                one.send(pull_request(offset, number, flags=MAY_WAIT, group=f"g{number}"))
            await held(broker, 5)
            assert (await wire.ask(send_request(b"news", properties=properties))).code == 0
            for number, one in enumerate(wires):
                answer = await one.next()
                assert (answer.opaque, bodies_of(answer)) == (number, [b"news"])
            assert len(broker.part(Pulling).hold) == 0

    play(tmp_path, act)


def test_messages_of_other_queues_and_tags_wake_nobody(tmp_path: Path) -> None:
    """LP-03; also when the entries between have gone to their file meanwhile."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1, tag="A")
        reader = await connect(broker)
        reader.send(pull_request(1, 5, flags=MAY_WAIT, tags="B"))
        await held(broker, 1)
        await fill(wire, 3, queue_id=1, tag="B")
        await fill(wire, 250, tag="A")
        broker._behind._begin()
        assert await is_silent(reader)
        await fill(wire, 1, tag="A")
        assert len(broker.part(Pulling).hold) == 1
        await wire.ask(send_request(b"wanted", tag="B"))
        answer = await reader.next()
        assert (answer.opaque, bodies_of(answer)) == (5, [b"wanted"])
        assert offsets_of(answer)[0] > 251

    play(tmp_path, act)


def test_a_woken_pull_is_not_held_again_and_commits_once(tmp_path: Path) -> None:
    """RD-09, second half."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        flags = MAY_WAIT | int(PullFlag.COMMIT_OFFSET)
        reader = await connect(broker)
        reader.send(pull_request(1, flags=flags, commit_offset=1, group="g"))
        await held(broker, 1)
        assert broker.state.offsets.query("g", "T", 0) == 1
        broker.state.offsets.commit("g", "T", 0, 0, end=10_000)
        await wire.ask(send_request())
        await reader.next()
        assert broker.state.offsets.query("g", "T", 0) == 0
        assert len(broker.part(Pulling).hold) == 0

    play(tmp_path, act)


def test_without_long_polling_the_answer_comes_after_a_second(tmp_path: Path) -> None:
    """LP-04."""
    clock = HeldClock()

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        wire.send(pull_request(1, flags=MAY_WAIT))
        await held(broker, 1)
        clock.ms += 999
        broker.part(Pulling).hold.sweep(clock.monotonic_ms())
        assert len(broker.part(Pulling).hold) == 1
        clock.ms += 1
        broker.part(Pulling).hold.sweep(clock.monotonic_ms())
        assert (await wire.next()).code == 19

    play(tmp_path, act, {"longPollingEnable": "false"}, clock=clock)


def test_a_pull_without_permission_to_wait_is_answered_at_once(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        assert (await wire.ask(pull_request(1))).code == 19
        assert (await wire.ask(pull_request(1, flags=MAY_WAIT, wait_ms=0))).code == 19
        assert (await wire.ask(pull_request(9, flags=MAY_WAIT))).code == 21

    play(tmp_path, act)


def test_a_reader_of_an_empty_queue_waits_too(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1, queue_id=1)
        reader = await connect(broker)
        reader.send(pull_request(0, flags=MAY_WAIT))
        await held(broker, 1)
        await wire.ask(send_request(b"first"))
        assert bodies_of(await reader.next()) == [b"first"]

    play(tmp_path, act)


def test_a_connection_that_is_gone_leaves_nothing_behind(tmp_path: Path) -> None:
    """LP-06."""
    clock = HeldClock()

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        readers = [await connect(broker) for _ in range(3)]
        for reader in readers:
            reader.send(pull_request(1, flags=MAY_WAIT), pull_request(1, flags=MAY_WAIT, tags="B"))
        await held(broker, 6)
        for reader in readers[:2]:
            reader.close()
        await eventually(lambda: len(broker._server.links) == 2)
        broker.part(Pulling).hold.sweep(clock.monotonic_ms())
        assert len(broker.part(Pulling).hold) == 2
        assert (await wire.ask(send_request(b"news"))).code == 0
        assert bodies_of(await readers[2].next()) == [b"news"]

    play(tmp_path, act, clock=clock)


def test_a_held_pull_of_a_deleted_topic_is_told_so_in_the_end(tmp_path: Path) -> None:
    clock = HeldClock()

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        wire.send(pull_request(1, flags=MAY_WAIT))
        await held(broker, 1)
        broker.state.topics.delete("T")
        broker.state.store.delete_topic("T")
        clock.ms += 15_000
        broker.part(Pulling).hold.sweep(clock.monotonic_ms())
        assert (await wire.next()).code == 17

    play(tmp_path, act, clock=clock)


def test_a_pull_for_which_there_is_no_room_is_answered_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hold_module, "HELD_CONNECTION_BYTES_MAX", 5_000)  # of some 1400 each

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        wire.send(*(pull_request(1, number, flags=MAY_WAIT) for number in range(4)))
        answer = await wire.next()
        assert (answer.opaque, answer.code) == (3, 19)
        assert len(broker.part(Pulling).hold) == 3

    play(tmp_path, act)


def test_a_one_way_pull_is_neither_held_nor_answered(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        reader = await connect(broker)
        request = pull_request(1, 3, flags=MAY_WAIT)
        request.flag = 2
        reader.send(request)
        assert (await reader.ask(pull_request(1, 4))).opaque == 4
        assert len(broker.part(Pulling).hold) == 0

    play(tmp_path, act)


def test_many_held_pulls_of_one_who_does_not_read_cost_little(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One large message wakes them all; only as many get it as the connection takes."""
    monkeypatch.setattr(link_module, "WRITE_BUFFER_BYTES_MAX", 256 * 1024)

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        slow = await connect(broker)
        slow.reader._transport.pause_reading()  # type: ignore[attr-defined]
        count = 500
        slow.send(*(pull_request(1, number, flags=MAY_WAIT) for number in range(count)))
        await held(broker, count)
        assert (await wire.ask(send_request(bytes(200_000)))).code == 0
        await held(broker, 0)
        link = next(link for link in broker._server.links if link.is_congested)
        assert link._transport is not None
        assert link._transport.get_write_buffer_size() < 5 * 1024 * 1024
        slow.reader._transport.resume_reading()  # type: ignore[attr-defined]
        codes = {(await slow.next()).code for _ in range(count)}
        assert codes == {0, 20}  # those who got nothing come back at once
        await pause()

    play(tmp_path, act)


def test_a_pull_that_fails_when_it_is_woken_does_not_hurt_the_sender(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        reader = await connect(broker)
        reader.send(pull_request(1, 3, flags=MAY_WAIT))
        await held(broker, 1)

        def broken(*parts: object, **named: object) -> None:
            raise ValueError("a chosen record lies outside its segment")

        monkeypatch.setattr(broker.state.store.reader, "pull", broken)
        assert (await wire.ask(send_request(b"news"))).code == 0
        answer = await reader.next()
        assert (answer.code, answer.opaque) == (1, 3)

    play(tmp_path, act)


def test_who_waits_for_messages_of_a_topic_that_is_deleted_hears_it(tmp_path: Path) -> None:
    """It would miss the first messages of a topic that is made again under the name."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 1)
        reader = await connect(broker)
        reader.send(pull_request(1, 3, flags=MAY_WAIT))
        await held(broker, 1)
        assert (await wire.ask(Command(215, {"topic": "T"}, opaque=4))).code == 0
        answer = await reader.next()
        assert (answer.opaque, answer.code) == (3, 17)

    play(tmp_path, act)


def test_a_held_pull_hears_at_once_that_its_group_goes_on_elsewhere(tmp_path: Path) -> None:
    """AD-03, also where the pull has a plan."""

    async def act(broker: Broker, wire: Wire) -> None:
        await fill(wire, 3)
        beat = HeartbeatData("one", consumers=(ConsumerData(GROUP, subscriptions=(Subscription("T", "*"),)),))
        wire.send(Command(34, {}, beat.encode()))
        assert [(await wire.next()).code for _ in range(2)] == [40, 0]
        for opaque in (7, 8):  # the second one by its plan
            wire.send(pull_request(3, opaque, flags=MAY_WAIT))
            await held(broker, 1)
            admin = await connect(broker)
            fields = {"topic": "T", "group": GROUP, "timestamp": "0", "isForce": "true"}
            assert (await admin.ask(Command(222, fields))).code == 0
            answer = await wire.next()
            assert (answer.code, answer.opaque, offsets_of(answer)) == (21, opaque, (0, 0, 3))
        assert bodies_of(await wire.ask(pull_request(0, 9))) == [b"x"] * 3

    play(tmp_path, act)
