"""Background rounds: nothing that goes wrong in one of them is the end of all."""

import asyncio
import logging

import pytest

from bolide.client.rounds import Periodic
from bolide.client.rounds import __name__ as rounds_log
from bolide.model.errors import BolideError, ConnectionLost
from tests.unit.net.stage import eventually


@pytest.mark.parametrize("error", [ConnectionLost("away"), RuntimeError("a bug")])
def test_a_round_that_fails_is_not_the_last(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        rounds = 0

        async def work() -> None:
            nonlocal rounds
            rounds += 1
            if rounds == 1:
                raise error

        round_ = Periodic("the work", 1, work)
        task = asyncio.create_task(round_.run())
        await eventually(lambda: rounds > 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    said = caplog.records[0]
    assert str(error) in said.getMessage()
    assert bool(said.exc_info) is not isinstance(error, BolideError)


def test_a_trouble_that_lasts_is_said_once_with_when_it_is_tried_again_and_once_when_it_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Somebody asks for the work again and again, as failing sends do for new routes."""
    caplog.set_level(logging.INFO)

    async def main() -> None:
        rounds = 0

        async def work() -> None:
            nonlocal rounds
            rounds += 1
            if rounds < 5:
                raise ConnectionLost("away")

        round_ = Periodic("the work", 30_000, work)
        task = asyncio.create_task(round_.run())
        for _ in range(6):
            await round_.renewed()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    failed, works = [record for record in caplog.records if record.name == rounds_log]
    assert "away" in failed.getMessage()
    assert "again within 30 s" in failed.getMessage()
    assert (works.levelno, "works again" in works.getMessage()) == (logging.INFO, True)
