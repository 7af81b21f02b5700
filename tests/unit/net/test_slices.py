"""Long work in slices: others have their turn in between."""

import asyncio

from bolide.model.steps import Steps
from bolide.net.turns import Slices, in_turns, join_pieces
from tests.unit.net.stage import next_turn


def test_the_first_slice_is_done_at_once_and_one_more_in_each_turn() -> None:
    async def main() -> None:
        left, done = 4, 0

        def slice_() -> bool:
            nonlocal left, done
            left, done = left - 1, done + 1
            return left > 0

        slices = Slices(slice_)
        slices.go()
        assert done == 1
        slices.go()  # goes on already
        assert done == 1
        await next_turn()
        assert done == 2
        while left:
            await next_turn()
        await next_turn()
        assert done == 4
        left = 2
        slices.go()
        slices.close()
        await next_turn()
        assert done == 5

    asyncio.run(main())


def test_steps_and_pieces_leave_turns_to_others() -> None:
    async def main() -> None:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await next_turn()

        task = asyncio.create_task(others())

        def steps() -> Steps[str]:
            for _ in range(10):
                yield
            return "done"

        assert await in_turns(steps()) == "done"
        assert turns >= 9
        turns = 0
        assert await join_pieces(b"%d" % number for number in range(5)) == b"01234"
        assert turns >= 4
        task.cancel()

    asyncio.run(main())
