"""Background rounds: nothing that goes wrong in one of them is the end of all."""

import asyncio

import pytest

from bolide.client.rounds import Periodic
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
    (said,) = caplog.records
    assert str(error) in said.getMessage()
    assert bool(said.exc_info) is not isinstance(error, BolideError)
