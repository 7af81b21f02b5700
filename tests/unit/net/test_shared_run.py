"""Work that is done once for all who wait for it."""

import asyncio
from collections.abc import Awaitable, Callable

from bolide.net.shared_run import SharedRun
from bolide.net.turns import next_turn
from tests.unit.net.stage import eventually


class Job:
    """Work that ends when it is let."""

    def __init__(self) -> None:
        self.begun = self.done = 0
        self.goes_on = asyncio.Semaphore(0)
        self.error: Exception | None = None

    async def work(self) -> None:
        self.begun += 1
        await self.goes_on.acquire()
        if self.error is not None:
            raise self.error
        self.done += 1


def play(scene: Callable[[Job, SharedRun], Awaitable[None]]) -> Job:
    async def main() -> Job:
        job = Job()
        shared = SharedRun(job.work)
        running = asyncio.create_task(shared.run())
        try:
            await scene(job, shared)
        finally:
            running.cancel()
            await asyncio.wait([running])
        return job

    return asyncio.run(main())


def test_who_asks_at_the_same_time_shares_a_run() -> None:
    async def scene(job: Job, shared: SharedRun) -> None:
        job.goes_on.release()
        await asyncio.gather(*(shared.done() for _ in range(50)))

    job = play(scene)
    assert (job.begun, job.done) == (1, 1)


def test_who_asks_while_a_run_is_under_way_waits_for_one_that_begins_later_and_for_no_other() -> None:
    async def scene(job: Job, shared: SharedRun) -> None:
        first = shared.done()
        await eventually(lambda: job.begun == 1)
        later = [shared.done() for _ in range(50)]
        job.goes_on.release()
        await first
        await eventually(lambda: job.begun == 2)
        assert not any(done.done() for done in later)
        job.goes_on.release()
        await asyncio.gather(*later)

    job = play(scene)
    assert (job.begun, job.done) == (2, 2)


def test_who_no_longer_waits_ends_the_run_of_nobody_else() -> None:
    async def scene(job: Job, shared: SharedRun) -> None:
        first, other = shared.done(), shared.done()
        await eventually(lambda: job.begun == 1)
        first.cancel()
        job.goes_on.release()
        await other

    assert play(scene).done == 1


def test_nothing_is_done_for_those_who_have_gone_before_it_began() -> None:
    async def scene(job: Job, shared: SharedRun) -> None:
        first = shared.done()
        await eventually(lambda: job.begun == 1)
        gone = shared.done()
        gone.cancel()
        job.goes_on.release()
        await first
        for _ in range(3):
            await next_turn()

    assert play(scene).begun == 1


def test_an_error_is_told_to_all_who_wait_and_the_next_run_is_another_one() -> None:
    async def scene(job: Job, shared: SharedRun) -> None:
        job.error = OSError("no")
        job.goes_on.release()
        told = await asyncio.gather(*(shared.done() for _ in range(3)), return_exceptions=True)
        assert told == [job.error] * 3
        job.error = None
        job.goes_on.release()
        await shared.done()

    assert play(scene).done == 1
