"""The round: requests share some milliseconds of each turn, and who has used least of them comes first."""

import asyncio

import pytest

from bolide.model.limits import TURN_MS_MAX
from bolide.net.round import (
    CREDIT_MS,
    LITTLE_PER_LOOK,
    READS_PER_TURN,
    TURNS_PER_ELDER,
    WAITED_PER_TURN_MS_MAX,
    Round,
)
from tests.unit.net.stage import next_turn
from tests.unit.store.stage import HeldClock


class Stage:
    def __init__(self) -> None:
        self.clock = HeldClock()
        self.round = Round(self.clock)
        self.served: list[str] = []

    async def turn(self) -> list[str]:
        """Whoever was served in the next turn of the loop."""
        before = len(self.served)
        await next_turn()
        return self.served[before:]


class Waiter:
    """Has always more to do, if it is greedy; each go takes so long."""

    def __init__(
        self, stage: Stage, name: str, takes_ms: int = 0, *, greedy: bool = False, brought_many: bool = False
    ) -> None:
        self._stage = stage
        self._name = name
        self._takes_ms = takes_ms
        self._greedy = greedy
        self.used_ms = self.waited_ms = 0
        self.brought_many = brought_many

    def rested(self) -> None:
        self._stage.served.append(self._name)
        self._stage.clock.ms += self._takes_ms
        if self._greedy:
            self.wait(self._takes_ms)

    def wait(self, used_ms: int = 0) -> None:
        self._stage.round.wait(self, used_ms)


def test_who_waits_gets_some_milliseconds_of_each_turn_together() -> None:
    async def main() -> None:
        stage = Stage()
        for name in "abcde":
            Waiter(stage, name, TURN_MS_MAX - 1, greedy=True).wait()
        assert stage.served == []
        turns = [await stage.turn() for _ in range(5)]
        assert turns == [["a", "b"], ["c", "d"], ["e", "a"], ["b", "c"], ["d", "e"]]

    asyncio.run(main())


def test_who_has_used_least_comes_first() -> None:
    async def main() -> None:
        stage = Stage()
        for name in "abcde":
            Waiter(stage, name, 100, greedy=True).wait()
        for _ in range(2 * TURNS_PER_ELDER):
            await stage.turn()
        modest = Waiter(stage, "modest")
        modest.wait()
        assert (await stage.turn())[0] == "modest"
        modest.wait(CREDIT_MS + 1)
        assert (await stage.turn())[0] != "modest"  # to have been idle is not much of a credit

    asyncio.run(main())


def test_nobody_waits_longer_than_some_turns_for_each_who_came_before_however_many_come_anew() -> None:
    """Somebody connects anew for every request: it has used nothing, and comes before all who have."""

    async def main() -> None:
        stage = Stage()
        elders = [Waiter(stage, name) for name in "abc"]
        for elder in elders:
            elder.wait(1000)
        for _ in range(len(elders) * TURNS_PER_ELDER):
            Waiter(stage, "fresh", TURN_MS_MAX).wait(TURN_MS_MAX)
            assert await stage.turn()
        assert [name for name in stage.served if name != "fresh"] == ["a", "b", "c"]

    asyncio.run(main())


def test_what_idle_ones_count_as_having_used_never_goes_back() -> None:
    """Else who comes anew would come before who has come back."""

    async def main() -> None:
        stage = Stage()
        Waiter(stage, "much").wait(1000)
        await stage.turn()
        little = [Waiter(stage, "little"), Waiter(stage, "little")]
        little[0].wait()
        await stage.turn()
        little[1].wait()
        assert [waiter.used_ms for waiter in little] == [1000 - CREDIT_MS] * 2

    asyncio.run(main())


def test_who_was_served_for_its_age_leaves_nothing_behind() -> None:
    async def main() -> None:
        stage = Stage()
        elder = Waiter(stage, "elder", TURN_MS_MAX)
        for _ in range(100 * TURNS_PER_ELDER):
            waiting = stage.round._waiting
            if elder not in waiting.values():
                elder.wait(1_000_000)
            if len(waiting) < 2:
                Waiter(stage, "fresh", TURN_MS_MAX).wait()
            await stage.turn()
        assert stage.served.count("elder") == 100
        assert len(stage.round._least) < 70

    asyncio.run(main())


def test_where_no_time_passes_each_has_one_go_per_turn() -> None:
    """As in a simulated world: who always has more must not keep the others from their turn."""

    async def main() -> None:
        stage = Stage()
        Waiter(stage, "greedy", greedy=True).wait()
        Waiter(stage, "modest").wait()
        assert await stage.turn() == ["greedy", "modest"]
        assert await stage.turn() == ["greedy"]

    asyncio.run(main())


def test_of_those_who_bring_many_bytes_a_few_come_back_in_each_turn_and_who_brings_little_before_them() -> (
    None
):
    async def main() -> None:
        stage = Stage()
        for _ in range(10 * READS_PER_TURN):
            Waiter(stage, "much", greedy=True, brought_many=True).wait()
        for _ in range(2 * CREDIT_MS):
            assert await stage.turn() == ["much"] * READS_PER_TURN
        little = Waiter(stage, "little")
        for _ in range(TURNS_PER_ELDER):
            little.wait()
            assert sorted(await stage.turn()) == ["little"] + ["much"] * READS_PER_TURN

    asyncio.run(main())


def test_the_time_of_a_turn_is_used_up_once_and_begins_anew_with_the_next() -> None:
    async def main() -> None:
        stage = Stage()
        round_, clock = stage.round, stage.clock
        round_.begin()
        clock.ms += TURN_MS_MAX - 1
        assert round_.goes_on()
        round_.begin()  # of another request
        clock.ms += 1
        assert (round_.goes_on(), round_.is_over) == (False, True)
        await next_turn()
        assert not round_.is_over
        round_.begin()
        assert round_.goes_on()

    asyncio.run(main())


def test_pulls_look_at_the_clock_now_and_then() -> None:
    async def main() -> None:
        stage = Stage()
        stage.round.look()
        for _ in range(LITTLE_PER_LOOK):
            assert stage.round.goes_on_after_little()
        stage.clock.ms += TURN_MS_MAX
        assert [stage.round.goes_on_after_little() for _ in range(LITTLE_PER_LOOK)] == [
            *(True for _ in range(LITTLE_PER_LOOK - 1)),
            False,
        ]
        assert not stage.round.goes_on_after_little()

    asyncio.run(main())


def test_a_pull_that_was_much_looks_at_the_clock_at_once_and_has_used_the_turn() -> None:
    async def main() -> None:
        stage = Stage()
        stage.round.look()
        stage.clock.ms += TURN_MS_MAX
        assert stage.round.goes_on_after_little()
        stage.round.was_much()
        assert not stage.round.goes_on_after_little()

    asyncio.run(main())


def test_an_error_of_one_does_not_end_the_round() -> None:
    class Broken(Waiter):
        def rested(self) -> None:
            raise KeyError("oops")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        stage = Stage()
        Broken(stage, "broken").wait()
        Waiter(stage, "next").wait()
        await stage.turn()
        await stage.turn()
        assert stage.served == ["next"]

    asyncio.run(main())


def test_what_is_awaited_gives_its_result_its_error_and_its_end() -> None:
    """To be charged changes nothing for it: a coroutine, a future, an error, and who is cancelled cleans up."""

    async def main() -> None:
        stage = Stage()
        waiter = Waiter(stage, "x")
        loop = asyncio.get_running_loop()

        async def doubled(number: int) -> int:
            await next_turn()
            return 2 * number

        assert await stage.round.charged(waiter, doubled(4)) == 8
        future: asyncio.Future[int] = loop.create_future()
        loop.call_soon(future.set_result, 7)
        assert await stage.round.charged(waiter, future) == 7
        broken: asyncio.Future[int] = loop.create_future()
        loop.call_soon(broken.set_exception, KeyError("oops"))
        with pytest.raises(KeyError, match="oops"):
            await stage.round.charged(waiter, broken)

        ended: list[str] = []

        async def long() -> None:
            try:
                for _ in range(100):
                    await next_turn()
            finally:
                await next_turn()
                ended.append("cleaned up")

        async def wait() -> None:
            await stage.round.charged(waiter, long())

        task = loop.create_task(wait())
        await next_turn()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ended == ["cleaned up"]

    asyncio.run(main())


def test_who_waits_learns_how_long_it_was_and_a_machine_that_stood_still_counts_little() -> None:
    async def main() -> None:
        stage = Stage()
        for name in "abcde":
            Waiter(stage, name, 10, greedy=True).wait()
        greedy = Waiter(stage, "late", 10, greedy=True)
        greedy.wait(1000)  # it has used much, so it comes when it has waited longest
        while "late" not in await stage.turn():
            pass
        turns = len(stage.served) - 1
        assert greedy.waited_ms == 10 * turns
        stage.clock.ms += 5000
        modest = Waiter(stage, "modest")
        modest.wait()
        stage.clock.ms += 5000
        await stage.turn()
        assert modest.waited_ms == WAITED_PER_TURN_MS_MAX

    asyncio.run(main())
