"""LoopShell: how messages of `send_soon` are given and waited for where all of it is on one event loop."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import nullcontext
from typing import Any

from bolide.client.gather import Batch, Lane
from bolide.model.errors import ClientNotRunning


class LoopShell:
    """`check_place` says so where a future is waited for on another event loop than the producer's."""

    guard = nullcontext()

    def __init__(self, check_place: Callable[[], None]) -> None:
        self._check_place = check_place

    def wait(self, batch: Batch, timeout_ms: int | None) -> None:
        raise ClientNotRunning("a future of bolide.aio is awaited: `await future`, not future.result()")

    def wait_for(self, batch: Batch) -> Generator[Any, None, None]:
        self._check_place()
        future = asyncio.get_running_loop().create_future()
        batch.when_done(lambda: None if future.done() else future.set_result(None))
        yield from future.__await__()

    def on_loop(self, work: Callable[[Lane], None], lane: Lane) -> None:
        work(lane)
