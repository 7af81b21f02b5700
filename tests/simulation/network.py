"""Network: who can reach whom, how long it takes, and who listens where.

Hosts are known by their addresses.  A way between two hosts can be slow, or cut in one or both directions: then nothing
arrives and nobody is told.  A host that is down answers nothing; one that is up refuses what it does not know.
"""

import asyncio
import contextvars
import errno
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.simulation.connection import Pipe, Place, SimSocket, SimTransport
from tests.simulation.loop import SimLoop
from tests.simulation.process import Process, current
from tests.simulation.trace import Trace

ANY = ("", "0.0.0.0", "::", None)
LATENCY_S = (0.000_05, 0.001)
HICCUP_S = (0.01, 0.3)
"""One segment in a hundred takes so much longer."""

BYTES_PER_S = 100e6
CONNECT_AGAIN_S = (1, 2, 4, 8, 16, 32, 64)
"""When a request to connect is repeated; then the kernel gives up (tcp_syn_retries)."""


@dataclass(eq=False)
class Listener:
    """What `create_server` gives."""

    network: "Network"
    process: Process
    factory: Callable[[], Any]
    place: Place

    @property
    def sockets(self) -> list[SimSocket]:
        return [SimSocket(self.place)]

    def close(self) -> None:
        if self.network.listeners.get(self.place) is self:
            del self.network.listeners[self.place]


class Network:
    def __init__(self, loop: SimLoop, rng: random.Random, trace: Trace) -> None:
        self.loop = loop
        self.trace = trace
        self.listeners: dict[Place, Listener] = {}
        self.slowness: dict[frozenset[str], float] = {}
        """Seconds that a segment between two hosts takes in addition."""
        self._rng = rng
        self._context = contextvars.Context()
        self._ports = 40_000
        self._up: set[str] = set()
        self._cut: set[tuple[str, str]] = set()
        self._ends: list[SimTransport] = []
        loop.network = self

    # ---- what happens to networks --------------------------------------------------------------------------

    def start_host(self, host: str) -> None:
        self._up.add(host)

    def cut(self, source: str, target: str) -> None:
        """Nothing from source arrives at target."""
        self._cut.add((source, target))

    def heal(self) -> None:
        self._cut.clear()
        self.slowness.clear()

    def end_process(self, process: Process) -> None:
        """The kernel closes what a dead process has left: in order, or at once because something was not read."""
        for end in self._of(lambda end: end.process is process):
            end.orphan(reset=bool(end.incoming) or self._rng.random() < 0.3)
        self._forget_listeners(process)

    def stop_host(self, host: str) -> None:
        """It loses power: not a word."""
        self._up.discard(host)
        for end in self._of(lambda end: end.local[0] == host):
            end.vanish()
        for place in [place for place in self.listeners if place[0] == host]:
            del self.listeners[place]

    def forget_connections(self, source: str, target: str) -> None:
        """A box on the way forgets the connections between two hosts: both ends stay open and hear nothing."""
        for end in self._of(lambda end: {end.local[0], end.remote[0]} == {source, target}):
            end.out.is_forgotten = True

    def _of(self, which: Callable[[SimTransport], bool]) -> list[SimTransport]:
        self._ends = [end for end in self._ends if not end.is_gone]
        return [end for end in self._ends if which(end)]

    def _forget_listeners(self, process: Process) -> None:
        for place, listener in list(self.listeners.items()):
            if listener.process is process:
                del self.listeners[place]

    # ---- what connections ask ------------------------------------------------------------------------------

    def passes(self, source: str, target: str) -> bool:
        return target in self._up and (source, target) not in self._cut

    def delay(self, source: str, target: str, count: int) -> float:
        seconds = self._rng.uniform(*LATENCY_S) + count / BYTES_PER_S
        if self._rng.random() < 0.01:
            seconds += self._rng.uniform(*HICCUP_S)
        return seconds + self.slowness.get(frozenset((source, target)), 0.0)

    def segment_bytes(self, count: int) -> int:
        """How much goes out at once: mostly all there is, now and then a part that ends anywhere."""
        if count > 1 and self._rng.random() < 0.1:
            return self._rng.randint(1, min(count - 1, 64 * 1024))
        return min(count, 64 * 1024)

    def refuse(self, source: SimTransport, target: SimTransport) -> None:
        """A kernel tells the other end that there is no such connection; told once, lost where the way is cut."""
        error = ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))

        def arrive() -> None:
            if self.passes(source.local[0], target.local[0]):
                target.fail(error)

        self.after(self.delay(source.local[0], target.local[0], 0), arrive)

    def after(self, seconds: float, work: Callable[[], None]) -> None:
        """Kernels and cables belong to no process."""
        self.loop.call_later(seconds, work, context=self._context)

    # ---- listening and connecting --------------------------------------------------------------------------

    def listen(self, factory: Callable[[], Any], host: str | None, port: int) -> Listener:
        process = current()
        assert process is not None, "only processes listen"
        if host not in ANY and host != process.host:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        place = (process.host, port or self._next_port())
        if place in self.listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        listener = self.listeners[place] = Listener(self, process, factory, place)
        return listener

    async def connect(self, host: str, port: int) -> SimTransport:
        process = current()
        assert process is not None, "only processes connect"
        attempt = Attempt(self, process, (process.host, self._next_port()), (host, port))
        attempt.ask()
        try:
            return await attempt.outcome
        except asyncio.CancelledError:
            if not attempt.outcome.cancelled() and attempt.outcome.exception() is None:
                attempt.outcome.result().abort()
            raise

    def _next_port(self) -> int:
        self._ports += 1
        return self._ports

    def pair(
        self, client: Process, server: Process, source: Place, target: Place
    ) -> tuple[SimTransport, SimTransport]:
        near = SimTransport(self, client, source, target)
        far = SimTransport(self, server, target, source)
        near.out = far.back = Pipe(self, near, far)
        far.out = near.back = Pipe(self, far, near)
        self._ends += (near, far)
        return near, far


class Attempt:
    """One attempt to connect, from the kernel's point of view."""

    def __init__(self, network: Network, process: Process, source: Place, target: Place) -> None:
        self._network = network
        self._process = process
        self._source, self._target = source, target
        self._tries = 0
        self.outcome: asyncio.Future[SimTransport] = network.loop.create_future()

    def ask(self) -> None:
        self._network.after(self._network.delay(self._source[0], self._target[0], 0), self._arrive)

    def _arrive(self) -> None:
        network, target = self._network, self._target
        if self.outcome.cancelled() or not self._process.is_alive:
            return
        if not network.passes(self._source[0], target[0]):
            self._ask_again()
            return
        listener = network.listeners.get(target)
        if listener is None:
            network.trace.note(f"refused {self._process} {target[0]}:{target[1]}")
            error = ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
            self._answer(lambda: self.outcome.set_exception(error))
            return
        near, far = network.pair(self._process, listener.process, self._source, target)
        network.trace.note(f"accept {far}")
        context = listener.process.context.copy()
        network.loop.call_soon(lambda: far.begin(listener.factory()), context=context)
        self._answer(lambda: self.outcome.set_result(near), near)

    def _answer(self, tell: Callable[[], None], near: SimTransport | None = None) -> None:
        """Tell the one who asks, if it still waits and can hear it; else whoever was accepted is refused."""

        def arrive() -> None:
            heard = self._network.passes(self._target[0], self._source[0]) and self._process.is_alive
            if heard and not self.outcome.done():
                tell()
            elif near is not None and not near.is_gone:
                near.is_gone = True
                self._network.refuse(near, near.peer)

        self._network.after(self._network.delay(self._target[0], self._source[0], 0), arrive)

    def _ask_again(self) -> None:
        if self._tries == len(CONNECT_AGAIN_S):
            self.outcome.set_exception(TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))
            return
        self._network.after(CONNECT_AGAIN_S[self._tries], self._arrive)
        self._tries += 1
