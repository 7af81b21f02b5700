"""The line of slices: long requests share a turn of the loop as short ones do, however many there are."""

import asyncio

import pytest

from bolide.model.limits import TURN_MS_MAX
from bolide.net.link import Link
from bolide.net.round import Round
from bolide.net.slice_line import SliceLine
from bolide.net.turns import next_turn
from bolide.wire.command import Command
from tests.unit.net.stage import Wire, eventually, serving
from tests.unit.net.turns import counted_by_turn
from tests.unit.store.stage import HeldClock

SLICES = 6


class Works:
    """Each request says how many slices it has, and how long one takes."""

    def __init__(self) -> None:
        self.clock = HeldClock()
        self.order: list[str] = []

    async def serve(self, link: Link, request: Command) -> Command:
        for _ in range(int(request.fields.get("slices", SLICES))):
            self.note(request.fields["who"])
            self.clock.ms += int(request.fields.get("ms", 1))
            await next_turn()
        for _ in range(int(request.fields.get("heavy", 0))):
            self.heavy()
            self.clock.ms += TURN_MS_MAX
            await next_turn()
        return request.answer()

    def note(self, who: str) -> None:
        self.order.append(who)

    def heavy(self) -> None:
        """A slice that takes all of a turn."""


def test_however_many_long_requests_are_under_way_a_turn_does_few_of_their_slices() -> None:
    """Also of those that have not begun: that many of them come with one read changes nothing."""
    requests = 60

    async def main() -> None:
        works = Works()
        async with serving({1: works.serve}, clock=works.clock) as (_, _, address):
            wire = await Wire.connect(address)
            with counted_by_turn(works, "note") as slices:
                wire.send(*(Command(1, {"who": "x"}, opaque=number) for number in range(requests)))
                answers = [(await wire.next()).opaque for _ in range(requests)]
            assert sorted(answers) == list(range(requests))
            assert slices.total == requests * SLICES
            assert slices.most <= 2 * TURN_MS_MAX  # of those who were let on, and of those who come

    asyncio.run(main())


def test_a_long_request_waits_for_one_slice_of_each_other_connection_and_not_for_all_they_have_asked_for() -> (
    None
):
    async def main() -> None:
        works = Works()
        async with serving({1: works.serve}, clock=works.clock) as (_, _, address):
            floods = [await Wire.connect(address) for _ in range(3)]
            honest = await Wire.connect(address)
            endless = {"who": "flood", "slices": "1000000", "ms": str(TURN_MS_MAX)}
            for wire in floods:
                wire.send(*(Command(1, endless, opaque=number) for number in range(100)))
            await eventually(lambda: works.order)
            before = len(works.order)
            assert (await honest.ask(Command(1, {"who": "honest"}))).code == 0
            assert works.order.count("honest") == SLICES
            assert works.order[before:].count("flood") < 10 * SLICES * len(floods)

    asyncio.run(main())


def test_slices_that_take_no_time_go_on_in_every_turn() -> None:
    """As in a simulated world, and as long as there is time for all."""

    async def main() -> None:
        works = Works()
        async with serving({1: works.serve}, clock=works.clock) as (_, _, address):
            wire = await Wire.connect(address)
            with counted_by_turn(works, "note") as slices:
                wire.send(*(Command(1, {"who": "x", "ms": "0"}, opaque=number) for number in range(50)))
                assert sorted([(await wire.next()).opaque for _ in range(50)]) == list(range(50))
            assert slices.most >= 50

    asyncio.run(main())


@pytest.mark.parametrize("light", [0, 3])
def test_many_who_find_all_at_once_that_their_slices_take_long_have_their_turns_one_after_the_other(
    light: int,
) -> None:
    """How long a slice takes nobody knows before: they were let on together, or went on in every turn."""
    connections, requests, heavy = 10, 20, 3

    async def main() -> None:
        works = Works()
        async with serving({1: works.serve}, clock=works.clock) as (_, _, address):
            wires = [await Wire.connect(address) for _ in range(connections)]
            fields = {"who": "x", "ms": "0", "slices": str(light), "heavy": str(heavy)}
            with counted_by_turn(works, "heavy") as slices:
                for wire in wires:
                    wire.send(*(Command(1, fields, opaque=number) for number in range(requests)))
                for wire in wires:
                    assert sorted([(await wire.next()).opaque for _ in range(requests)]) == list(
                        range(requests)
                    )
            assert slices.total == connections * requests * heavy
            assert slices.most <= 2  # of who was let on, and of who comes

    asyncio.run(main())


def test_who_was_let_on_and_found_no_time_comes_first_in_the_next_turn() -> None:
    async def main() -> None:
        line, order = SliceLine(), list[str]()

        async def wait(who: str) -> None:
            await _Going(line, who)
            order.append(who)
            line.took(TURN_MS_MAX if who == "d" else 0)

        waiting = [asyncio.create_task(wait(who)) for who in "abcdefgh"]
        line.took(TURN_MS_MAX)
        await asyncio.gather(*waiting)
        assert order == sorted(order)
        assert not line._put_back

    asyncio.run(main())


def test_who_is_cancelled_in_the_line_ends_and_holds_nobody_up() -> None:
    """One that has begun cleans up, one that has not never begins, and those behind them have their turn."""

    async def main() -> None:
        clock = HeldClock()
        round_ = Round(clock)
        happened: list[str] = []

        async def work(name: str) -> None:
            happened.append(name)
            clock.ms += TURN_MS_MAX
            try:
                await next_turn()
            finally:
                happened.append(f"{name} ended")

        async def charged(name: str) -> None:
            await round_.charged(one, work(name))

        one = Whoever()
        tasks = {name: asyncio.create_task(charged(name)) for name in ("first", "second", "third")}
        await next_turn()
        assert happened == ["first"]
        tasks["first"].cancel()
        tasks["second"].cancel()
        for name in ("first", "second"):
            with pytest.raises(asyncio.CancelledError):
                await tasks[name]
        await tasks["third"]
        assert happened == ["first", "first ended", "third", "third ended"]

    asyncio.run(main())


def test_nothing_is_kept_of_those_who_were_let_on() -> None:
    async def main() -> None:
        line = SliceLine()

        async def wait(who: str) -> None:
            line.took(TURN_MS_MAX)
            await _Going(line, who)

        await asyncio.gather(*(wait(who) for who in "aabbc"))
        assert not line._lines

    asyncio.run(main())


class Whoever:
    used_ms = waited_ms = 0
    brought_many = False

    def rested(self) -> None:
        raise AssertionError("it never waits for the round")


class _Going:
    def __init__(self, line: SliceLine, who: str) -> None:
        self._line, self._who = line, who

    def __await__(self):  # type: ignore[no-untyped-def]
        return self._line.go_on(self._who)
