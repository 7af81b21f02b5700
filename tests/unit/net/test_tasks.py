"""Background tasks: all of them end with their owner, and none ends unheard."""

import asyncio

import pytest

from bolide.net.tasks import Tasks
from tests.unit.net.stage import eventually


def test_a_task_that_ends_with_an_error_is_heard_of(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise RuntimeError("a bug")

    async def main() -> None:
        tasks = Tasks()
        task = tasks.start(fail(), "the work")
        await eventually(task.done)
        await tasks.close()

    asyncio.run(main())
    (said,) = caplog.records
    assert "the work" in said.getMessage()
    assert said.exc_info is not None
    assert "a bug" in str(said.exc_info[1])


def test_tasks_end_with_their_owner_and_say_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        tasks = Tasks()
        running = [tasks.start(wait_for_ever(), str(number)) for number in range(3)]
        await tasks.close()
        assert all(task.cancelled() for task in running)

    asyncio.run(main())
    assert caplog.records == []
