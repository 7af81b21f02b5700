"""The counter of work by turns: a slice too many is seen, and nothing is left behind."""

import asyncio

import pytest

from bolide.net.ticks import ticks
from tests.unit.net.turns import counted_by_turn


class Shelf:
    """Something with much in it, looked at in one go or in slices."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def look(self, number: int) -> int:
        self.seen.append(number)
        return number

    def look_at(self, numbers: range) -> None:
        for number in numbers:
            self.look(number)

    async def look_in_slices(self, count: int, size: int) -> None:
        numbers = iter(range(0, count, size))
        async for _ in ticks(0):
            start = next(numbers, None)
            if start is None:
                return
            self.look_at(range(start, min(count, start + size)))


def test_work_in_one_go_is_work_of_one_turn() -> None:
    async def main() -> None:
        shelf = Shelf()
        with counted_by_turn(Shelf, "look") as turns:
            await shelf.look_in_slices(100, 100)
        assert (turns.most, turns.total) == (100, 100)
        assert shelf.seen == list(range(100))  # what is counted is done

    asyncio.run(main())


@pytest.mark.parametrize("size", [1, 7, 50])
def test_work_in_slices_is_counted_slice_by_slice(size: int) -> None:
    async def main() -> None:
        with counted_by_turn(Shelf, "look") as turns:
            await Shelf().look_in_slices(100, size)
        assert (turns.most, turns.total) == (size, 100)
        assert sum(count > 0 for count in turns.counts) == -(-100 // size)

    asyncio.run(main())


def test_slices_of_several_jobs_add_up_in_a_turn() -> None:
    async def main() -> None:
        with counted_by_turn(Shelf, "look") as turns:
            await asyncio.gather(*(Shelf().look_in_slices(40, 10) for _ in range(3)))
        assert (turns.most, turns.total) == (30, 120)

    asyncio.run(main())


def test_calls_from_callbacks_of_one_turn_are_counted_together() -> None:
    """What many connections do between two looks at the sockets keeps the others waiting as well."""

    async def main() -> None:
        shelf, done = Shelf(), asyncio.Event()
        loop = asyncio.get_running_loop()
        with counted_by_turn(shelf, "look") as turns:
            for number in range(5):
                loop.call_soon(lambda number=number: shelf.look(number))  # type: ignore[misc]
            loop.call_soon(done.set)
            await done.wait()
        assert (turns.most, turns.total) == (5, 5)

    asyncio.run(main())


def test_a_call_counts_for_as_much_as_it_weighs() -> None:
    async def main() -> None:
        with counted_by_turn(Shelf, "look_at", lambda _, numbers: len(numbers)) as turns:
            await Shelf().look_in_slices(100, 30)
        assert (turns.most, turns.total) == (30, 100)

    asyncio.run(main())


def test_only_calls_on_the_object_are_counted_when_one_object_is_watched() -> None:
    async def main() -> None:
        watched, other = Shelf(), Shelf()
        with counted_by_turn(watched, "look") as turns:
            await asyncio.gather(watched.look_in_slices(10, 5), other.look_in_slices(10, 5))
        assert (turns.most, turns.total) == (5, 10)

    asyncio.run(main())


def test_function_and_loop_are_as_before_afterwards() -> None:
    async def main() -> None:
        before = Shelf.look
        with counted_by_turn(Shelf, "look") as turns:
            pass
        assert Shelf.look is before
        assert "_run_once" not in vars(asyncio.get_running_loop())
        await Shelf().look_in_slices(10, 1)
        assert turns.total == 0

    asyncio.run(main())
