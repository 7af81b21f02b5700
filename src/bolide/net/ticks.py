"""Ticks: the one place that sleeps.  Periodic work is written as `async for _ in ticks(seconds)`."""

import asyncio
from collections.abc import AsyncIterator


async def ticks(seconds: float) -> AsyncIterator[None]:
    """Yields for ever, `seconds` after the work of the last tick has ended."""
    while True:
        await pause(seconds)
        yield


async def pause(seconds: float) -> None:
    """Let time pass where nothing that could happen meanwhile would be a reason to go on."""
    await asyncio.sleep(seconds)  # noqa: TID251
