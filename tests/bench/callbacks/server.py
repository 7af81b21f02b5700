"""The measured process: name server and broker of `bolide up` on a loop whose every callback is timed.

`python -m tests.bench.callbacks.server DATA` takes one command per line and answers each with a line of JSON:

| command | answer |
| --- | --- |
| `kind NAME` | from now on callbacks count for this kind of work |
| `quiet` | when nothing long has run for a while |
| `later MS` | the broker's clocks have gone so much ahead |
| `report` | the longest callback of each kind |

It ends with its standard input.
"""

import asyncio
import dataclasses
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bolide.cli.serve import GARBAGE_THRESHOLD
from bolide.cli.standalone import Standalone
from bolide.net.clock import SystemClock
from bolide.net.surroundings import Surroundings
from bolide.net.ticks import ticks
from tests.bench.callbacks.kinds import START, kind_of
from tests.bench.callbacks.scene import SETTINGS
from tests.bench.callbacks.stopwatch import Stopwatch
from tests.bench.descriptors import allow_descriptors

QUIET_S = 0.5
"""Longer than the time after which changed tables are written."""


class MovableClock(SystemClock):
    """The real clock, and a way to be later than it is."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.ahead_ms


class Measured:
    def __init__(self, data: Path) -> None:
        self._side_of_port: dict[int, str] = {}
        self._stopwatch = Stopwatch(START, kind_of, self._side_of_port)
        self._clock = MovableClock()
        self._server = Standalone(
            data=data,
            nameserver_port=0,
            broker_port=0,
            settings=SETTINGS,
            surroundings=Surroundings(self._clock),
        )

    async def run(self) -> None:
        allow_descriptors()  # this and the collector's settings as `bolide up` has them
        self._stopwatch.install()
        await self._server.start()
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE_THRESHOLD)
        for side, address in (("name server", self._server.nameserver), ("broker", self._server.broker)):
            self._side_of_port[int(address.rpartition(":")[2])] = side
        _answer({"nameserver": self._server.nameserver, "broker": self._server.broker})
        verbs: dict[str, Callable[[str], Awaitable[object]]] = {
            **{"kind": self._kind, "quiet": self._quiet},
            **{"later": self._later, "report": self._report},
        }
        async for line in await _lines():
            verb, _, rest = line.decode().strip().partition(" ")
            _answer(await verbs[verb](rest))
        await self._server.stop()

    async def _kind(self, name: str) -> None:
        self._stopwatch.kind = name

    async def _quiet(self, _: str) -> None:
        async for _tick in ticks(QUIET_S):
            if time.perf_counter() - self._stopwatch.long_at >= QUIET_S:
                return

    async def _later(self, text: str) -> None:
        self._clock.ahead_ms += int(text)

    async def _report(self, _: str) -> object:
        return {kind: dataclasses.asdict(longest) for kind, longest in self._stopwatch.longest.items()}


async def _lines() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    return reader


def _answer(value: object) -> None:
    print(json.dumps(value), flush=True)


if __name__ == "__main__":
    asyncio.run(Measured(Path(sys.argv[1])).run())
