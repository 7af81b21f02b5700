"""A broker that starts after messages were lost."""

import asyncio
import shutil
from pathlib import Path

from tests.unit.broker.stage import copy_if_there, fill, serving


def test_a_group_that_consumed_what_was_lost_goes_on_at_the_end_of_its_queue(tmp_path: Path) -> None:
    """What is stored next must not be skipped.  Newer offsets beside an older log are what power loss leaves."""
    root, older = tmp_path / "store", tmp_path / "older"

    async def first_life() -> None:
        async with serving(root) as (broker, wire):
            await fill(wire, 3)
            shutil.copytree(root, older, copy_function=copy_if_there)
            await fill(wire, 4)
            broker.state.offsets.commit("G", "T", 0, 7, end=10_000)
            broker.state.offsets.commit("G", "never", 0, 7, end=10_000)
        shutil.copy(root / "config" / "consumerOffset.json", older / "config")

    async def second_life() -> list[int | None]:
        async with serving(older) as (broker, _):
            assert broker.state.store.queues.end_of("T", 0) == 3
            return [broker.state.offsets.query("G", topic, 0) for topic in ("T", "never")]

    asyncio.run(first_life())
    assert asyncio.run(second_life()) == [3, 0]
