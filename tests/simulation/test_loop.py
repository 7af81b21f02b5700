"""The simulated loop keeps asyncio's promises, in simulated time; a dead process does nothing."""

import asyncio
import random

import pytest

from tests.simulation.loop import NothingToDo, SimLoop
from tests.simulation.process import Process
from tests.simulation.threads import SimThreads
from tests.simulation.world import World


def new_loop() -> SimLoop:
    return SimLoop()  # type: ignore[abstract]  # has what we use


def test_a_day_passes_at_once_and_timers_run_in_their_order() -> None:
    loop, ran = new_loop(), []

    async def main() -> None:
        for hours in (5, 1, 24, 3):
            loop.call_later(hours * 3600, lambda hours=hours: ran.append((hours, loop.time() / 3600)))
        await asyncio.sleep(24 * 3600 + 1)  # noqa: TID251

    loop.run_until_complete(main())
    loop.close()
    assert ran == [(1, 1), (3, 3), (5, 5), (24, 24)]


def test_timeouts_and_events_work_as_ever() -> None:
    loop = new_loop()

    async def main() -> float:
        event = asyncio.Event()
        loop.call_later(2, event.set)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await event.wait()
        await event.wait()
        return loop.time()

    assert loop.run_until_complete(main()) == 2
    loop.close()


def test_a_world_in_which_everybody_waits_for_ever_ends() -> None:
    loop = new_loop()
    with pytest.raises(NothingToDo):
        loop.run_until_complete(loop.create_future())
    loop.close()


def test_a_dead_process_does_nothing_not_even_its_cleaning_up() -> None:
    loop, said = new_loop(), []

    async def live(name: str) -> None:
        try:
            while True:
                await asyncio.sleep(1)  # noqa: TID251
                said.append(name)
        finally:
            said.append(f"{name} ends")

    async def main() -> None:
        doomed = Process("doomed", "10.0.0.1", 1)
        loop.create_task(live("doomed"), context=doomed.context)
        loop.call_later(2.5, setattr, doomed, "is_alive", False)
        await asyncio.sleep(10)  # noqa: TID251
        assert said == ["doomed", "doomed"]

    loop.run_until_complete(main())
    loop.close()


def test_work_of_a_thread_takes_time_and_is_done_at_once_when_its_process_waits_for_it() -> None:
    loop = new_loop()
    done: list[str] = []

    async def main() -> None:
        thread = SimThreads(random.Random(1))("writer")
        first = loop.run_in_executor(thread, done.append, "first")
        assert not done
        await first
        assert loop.time() > 0
        thread.submit(done.append, "second")
        thread.shutdown(wait=True)
        assert done == ["first", "second"]

    loop.run_until_complete(main())
    loop.close()


def test_an_error_that_nobody_handles_breaks_the_world() -> None:
    world = World(1)

    async def scenario() -> None:
        world.loop.call_soon(lambda: 1 // 0)
        await world.sleep(1)

    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        world.run(scenario())
