"""The round: who has had its share waits, and all who wait share some milliseconds of each turn."""

import asyncio
from collections.abc import Callable

from bolide.model.limits import TURN_MS_MAX
from bolide.net.round import Round
from tests.unit.net.stage import next_turn
from tests.unit.store.stage import HeldClock


def test_who_waits_gets_some_milliseconds_of_each_turn_together_in_turn() -> None:
    async def main() -> None:
        clock = HeldClock()
        round_ = Round(clock)
        served: list[int] = []

        def connection(number: int) -> Callable[[], None]:
            def go_on() -> None:
                served.append(number)
                clock.ms += TURN_MS_MAX - 1
                round_.wait(go_on)

            return go_on

        for number in range(5):
            round_.wait(connection(number))
        assert served == []
        by_turn = []
        for _ in range(5):
            before = len(served)
            await next_turn()
            by_turn.append(len(served) - before)
        assert by_turn == [2] * 5
        assert served == [0, 1, 2, 3, 4] * 2

    asyncio.run(main())


def test_where_no_time_passes_each_has_one_go_per_turn() -> None:
    """As in a simulated world: who always has more must not keep the others from their turn."""

    async def main() -> None:
        round_ = Round(HeldClock())
        served: list[str] = []

        def greedy() -> None:
            served.append("greedy")
            round_.wait(greedy)

        round_.wait(greedy)
        round_.wait(lambda: served.append("modest"))
        await next_turn()
        assert served == ["greedy", "modest"]
        await next_turn()
        assert served == ["greedy", "modest", "greedy"]

    asyncio.run(main())


def test_an_error_of_one_does_not_end_the_round() -> None:
    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        round_ = Round(HeldClock())
        served: list[str] = []

        def broken() -> None:
            raise KeyError("oops")

        round_.wait(broken)
        round_.wait(lambda: served.append("next"))
        await next_turn()
        await next_turn()
        assert served == ["next"]

    asyncio.run(main())
