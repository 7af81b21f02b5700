"""The guard stands on both ways in: the general one, and the fast one for plain sends and planned pulls."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from bolide.broker.app import Broker
from bolide.broker.handlers.pull import Pulling
from bolide.model.errors import PermissionDenied
from bolide.net.link import Link
from bolide.wire.codes import Need
from bolide.wire.command import Command
from tests.unit.broker.stage import MAY_WAIT, bodies_of, connect, fill, pull_request, send_request, serving
from tests.unit.net.stage import Wire, eventually

NO_PERMISSION = 16


class House:
    """Refuses what it was told to, and counts how often it is asked."""

    def __init__(self) -> None:
        self.revision = 1
        self.closed: set[Need] = set()
        self.checks = 0
        self.asked: list[tuple[Need, str, str | None]] = []

    def check(self, link: Link, need: Need, request: Command) -> None:
        self.checks += 1
        if need in self.closed:
            raise PermissionDenied(f"no right to {need.value}")

    def passes(self, link: Link, need: Need, topic: str, group: str | None) -> bool:
        self.asked.append((need, topic, group))
        return need not in self.closed

    def close(self, *needs: Need) -> None:
        self.closed = set(needs)
        self.revision += 1


def play(root: Path, act: Callable[[Broker, Wire, House], Awaitable[None]]) -> None:
    async def main() -> None:
        house = House()
        async with serving(root, guard=house) as (broker, wire):
            await fill(wire, 3)  # the topic is there, and has its lane
            house.asked.clear()
            house.checks = 0
            await act(broker, wire, house)

    asyncio.run(main())


def test_plain_sends_ask_once_per_connection_and_topic(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire, house: House) -> None:
        other = await connect(broker)
        await fill(other, 700)
        assert house.asked == [(Need.PUBLISH, "T", None)]
        assert house.checks == 0

    play(tmp_path, act)


def test_nobody_asks_about_a_pull_of_a_topic_that_does_not_exist(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire, house: House) -> None:
        for number in range(20):
            assert (await wire.ask(pull_request(topic=f"none-{number}"))).code == 17
        assert house.asked == []
        assert house.checks == 20

    play(tmp_path, act)


def test_topics_that_do_not_exist_are_neither_asked_about_nor_remembered(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire, house: House) -> None:
        other = await connect(broker)
        other.send(*(send_request(topic=f"no topic {number}", opaque=number) for number in range(50)))
        for _ in range(50):
            assert (await other.next()).code != 0
        assert house.asked == []
        assert not any(link.passes.keys() - {b"T"} for link in broker._server.links)

    play(tmp_path, act)


def test_where_everybody_may_do_everything_no_pass_is_kept(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as (broker, wire):
            await fill(wire, 3)
            for _ in range(3):
                assert bodies_of(await wire.ask(pull_request(0)))
            assert len(broker.part(Pulling).plans) == 1
            assert not any(link.passes for link in broker._server.links)

    asyncio.run(main())


def test_planned_pulls_ask_once_per_connection_topic_and_group(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire, house: House) -> None:
        for offset in (0, 1, 0, 1):
            assert bodies_of(await wire.ask(pull_request(offset)))
        other = await connect(broker)
        for offset in (0, 1, 2):
            assert bodies_of(await other.ask(pull_request(offset)))
        assert len(broker.part(Pulling).plans) == 1
        assert house.asked == [(Need.SUBSCRIBE, "T", "TOOLS_CONSUMER")] * 2
        assert house.checks == 1  # the first of all, which had no plan yet

    play(tmp_path, act)


def test_whoever_has_no_right_gets_no_further_by_the_fast_way(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire, house: House) -> None:
        for _ in range(2):
            assert bodies_of(await wire.ask(pull_request(0)))
        end = broker.state.store.log.end
        house.close(Need.PUBLISH, Need.SUBSCRIBE)  # passes that were given before count no more
        wire.send(*(send_request(opaque=number) for number in range(5)), pull_request(0, 5))
        answers = [await wire.next() for _ in range(6)]
        assert {answer.code for answer in answers} == {NO_PERMISSION}
        assert answers[0].remark == "no right to publish to the topic"
        assert broker.state.store.log.end == end
        house.close()
        assert (await wire.ask(send_request())).code == 0
        assert bodies_of(await wire.ask(pull_request(0)))

    play(tmp_path, act)


def test_every_other_request_is_checked_before_its_handler_runs(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire, house: House) -> None:
        house.close(*Need)
        for code in broker.registry:
            answer = await wire.ask(Command(code, opaque=code))
            assert answer.code == NO_PERMISSION, code

    play(tmp_path, act)


def test_a_held_pull_is_asked_about_again_before_it_is_answered(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire, house: House) -> None:
        reader = await connect(broker)
        reader.send(pull_request(3, 7, flags=MAY_WAIT))
        await eventually(lambda: len(broker.part(Pulling).hold) == 1)
        house.close(Need.SUBSCRIBE)
        assert (await wire.ask(send_request(b"secret"))).code == 0
        answer = await reader.next()
        assert (answer.code, answer.body) == (NO_PERMISSION, b"")

    play(tmp_path, act)


def test_a_pull_that_was_refused_makes_no_group(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire, house: House) -> None:
        house.close(Need.SUBSCRIBE)
        assert (await wire.ask(pull_request(0, group="intruders"))).code == NO_PERMISSION
        assert "intruders" not in broker.state.groups

    play(tmp_path, act)
