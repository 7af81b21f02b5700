"""Sends in turns: a connection whose messages need the general path leaves others theirs, and nothing else changes."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bolide.broker.app import Broker
from bolide.model.limits import REQUESTS_PER_TURN
from bolide.net import link as link_module
from bolide.net.dispatch import Dispatcher
from bolide.wire.command import Command
from tests.unit.broker.stage import bodies_of, fill, pull_request, send_request, serving
from tests.unit.net.stage import Wire
from tests.unit.net.turns import counted_by_turn

Act = Callable[[Broker, Wire], Awaitable[None]]


def play(root: Path, act: Act) -> None:
    async def main() -> None:
        async with serving(root) as (broker, wire):
            await fill(wire, 1)  # makes the topic
            await act(broker, wire)

    asyncio.run(main())


def odd(number: int, flag: int = 0) -> Command:
    """A send that needs the general path: it has no key of its own."""
    return send_request(b"%d" % number, number, properties="", flag=flag)


def plain(number: int) -> Command:
    return send_request(b"%d" % number, number)


async def bodies(wire: Wire, count: int) -> list[bytes]:
    """What is stored, without the message that made the topic."""
    found: list[bytes] = []
    while len(found) < count + 1:
        answer = await wire.ask(pull_request(len(found), count=32))
        assert answer.code == 0, answer
        found += bodies_of(answer)
    return found[1:]


@pytest.mark.parametrize("count", [200, 400, 800])
def test_a_turn_serves_a_bounded_number_of_sends_that_are_not_plain(tmp_path: Path, count: int) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        with counted_by_turn(Dispatcher, "on_request") as served:
            wire.send(*(odd(number) for number in range(count)))
            answers = [await wire.next() for _ in range(count)]
        assert [answer.opaque for answer in answers] == list(range(count))
        assert served.total == count
        assert served.most <= REQUESTS_PER_TURN

    play(tmp_path, act)


@pytest.mark.parametrize("per_turn", [1, 2, 7, 64])
def test_plain_and_other_sends_are_answered_and_stored_in_order_wherever_a_turn_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, per_turn: int
) -> None:
    monkeypatch.setattr(link_module, "REQUESTS_PER_TURN", per_turn)

    async def act(broker: Broker, wire: Wire) -> None:
        count = 300
        requests = [odd(number) if number % 3 else plain(number) for number in range(count)]
        requests[100] = odd(100, flag=2)  # one-way
        wire.send(*requests)
        opaques = [(await wire.next()).opaque for _ in range(count - 1)]
        assert opaques == [number for number in range(count) if number != 100]
        assert await bodies(wire, count) == [b"%d" % number for number in range(count)]

    play(tmp_path, act)


def test_pulls_in_one_read_are_served_a_bounded_number_per_turn(tmp_path: Path) -> None:
    async def act(broker: Broker, wire: Wire) -> None:
        count = 5 * REQUESTS_PER_TURN
        with counted_by_turn(broker.state.store.reader, "pull_at") as served:
            wire.send(*(pull_request(0, number) for number in range(count)))
            assert [(await wire.next()).opaque for _ in range(count)] == list(range(count))
        assert served.total == count
        assert served.most <= REQUESTS_PER_TURN

    play(tmp_path, act)
