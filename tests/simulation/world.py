"""World: hosts, the processes on them, and how both end.  Everything in it comes from one seed.

    world = World(seed)
    world.run(scenario(world))

A process ends in one of four ways: it stops in order, it is killed (its kernel closes its connections, its files stay
as they were written), its host loses power (nobody is told, and what was not synced may be lost), or its host is cut
off and it does not even know.
"""

import asyncio
import gc
import logging
import random
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from bolide.net.surroundings import Surroundings
from tests.crash.disk import SimDisk
from tests.simulation.clock import HostClock
from tests.simulation.loop import SimLoop
from tests.simulation.network import Network
from tests.simulation.process import Process
from tests.simulation.threads import SimThreads
from tests.simulation.trace import LogToTrace, Trace

T = TypeVar("T")

POLL_S = 0.05
MEMORY_BYTES = 1 << 30


class Broken(AssertionError):
    """A promise that was not kept."""


class HostAddresses:
    """See `net.addresses.Addresses`: every host has one address, and names are not used."""

    def __init__(self, address: str) -> None:
        self._address = address

    def resolve(self, host: str) -> str:
        return host

    def outward(self, *, v6: bool = False) -> str:
        return self._address

    async def facing(self, server: str) -> str:
        return self._address


class Host:
    """A machine: its address, its clock, and a disk that outlives its processes."""

    def __init__(self, name: str, address: str, clock: HostClock) -> None:
        self.name = name
        self.address = address
        self.clock = clock
        self.pids = 100
        self.process: Process | None = None
        self.threads: SimThreads | None = None
        self.disk = SimDisk()
        self.use_disk(self.disk)

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.is_alive

    def use_disk(self, disk: SimDisk) -> None:
        def keep_time(kind: str, path: str) -> None:
            disk.now_ms = self.clock.now_ms()

        self.disk = disk
        disk.on_step = keep_time


class World:
    """`show` gets every event as a line, for a replay."""

    def __init__(self, seed: int, show: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.loop = SimLoop()  # type: ignore[abstract]  # has what we use
        self.trace = Trace(self.loop.time, show)
        self.network = Network(self.loop, self.fork_rng(), self.trace)
        self.hosts: list[Host] = []
        self.waits: dict[str, float] = {}
        """What was waited for, and the longest that it took."""
        self._show = show

    def fork_rng(self) -> random.Random:
        """A source of chance of one's own: who asks it more often changes nothing for the others."""
        return random.Random(self.rng.getrandbits(64))

    # ---- running -------------------------------------------------------------------------------------------

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """Play a scenario to its end.  What nobody handled breaks it."""
        with _undisturbed(self._show, self.loop.time):
            try:
                outcome = self.loop.run_until_complete(scenario)
                self._check_errors()
                return outcome
            finally:
                self.loop.close()

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        """Something that the world itself does all the time; when it fails, the world breaks."""
        task = self.loop.create_task(work)
        task.add_done_callback(partial(self.ended, None))

    def _check_errors(self) -> None:
        if self.loop.errors:
            raise Broken(f"errors that nobody handled: {self.loop.errors[:3]}")

    @property
    def now(self) -> float:
        return self.loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # noqa: TID251 - simulated, like everything here

    async def until(self, what: str, holds: Callable[[], bool], within_s: float) -> float:
        """Wait until something is so, and say how long that took; `Broken` when it takes longer than it may."""
        began = self.now
        while not holds():
            self._check_errors()
            if self.now - began > within_s:
                raise Broken(f"not within {within_s:g} s: {what}")
            await self.sleep(POLL_S)
        took = self.now - began
        self.waits[what] = max(took, self.waits.get(what, 0.0))
        return took

    # ---- hosts and processes -------------------------------------------------------------------------------

    def add_host(self, name: str) -> Host:
        """A machine whose clock is a little wrong."""
        clock = HostClock(
            self.loop.time, skew_ms=self.rng.randint(-5_000, 5_000), drift=self.rng.uniform(-1e-4, 1e-4)
        )
        host = Host(name, f"10.0.0.{len(self.hosts) + 1}", clock)
        self.hosts.append(host)
        self.network.start_host(host.address)
        return host

    def start(self, host: Host, main: Callable[[Surroundings], Coroutine[Any, Any, None]]) -> Process:
        """A new process on a host, which has none."""
        assert not host.is_running, f"{host.name} has a process already"
        self.network.start_host(host.address)
        host.pids += 1
        process = host.process = Process(host.name, host.address, host.pids)
        host.threads = SimThreads(self.fork_rng())
        surroundings = Surroundings(
            host.clock,
            self.fork_rng(),
            host.threads,
            HostAddresses(host.address),
            process.pid,
            MEMORY_BYTES,
        )
        self.trace.note(f"start {process}")
        task = self._run_as(process, main(surroundings))
        task.add_done_callback(partial(self.ended, process))
        return process

    def ended(self, process: Process | None, task: "asyncio.Task[None]") -> None:
        """A process that ends with an error is a finding."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.loop.errors.append(f"{process or 'world'}: {error!r}")

    def begin(self, host: Host, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Have the process on a host do something."""
        assert host.process is not None
        return self._run_as(host.process, work)

    async def call(self, host: Host, work: Coroutine[Any, Any, T], within_s: float) -> T:
        """Have the process on a host do something, and wait for it."""
        task = self.begin(host, work)
        done, _ = await asyncio.wait((task,), timeout=within_s)
        if not done:
            raise Broken(f"{host.process} did not end in {within_s:g} s: {task.get_coro()}")
        return task.result()

    def kill(self, host: Host) -> None:
        """The process is gone at once, if it has not ended by itself; the kernel and its pages are not."""
        if host.is_running:
            assert host.process is not None
            self.trace.note(f"kill {host.process}")
            host.process.is_alive = False
            self.network.end_process(host.process)
        host.disk.after_kill()

    def power_off(self, host: Host) -> None:
        """Everything that was not synced may be lost, and nobody hears of it."""
        self.trace.note(f"power off {host.name}")
        if host.process is not None:
            host.process.is_alive = False
        self.network.stop_host(host.address)
        host.use_disk(host.disk.after_power_loss(self.rng))

    # ---- the network ---------------------------------------------------------------------------------------

    def cut(self, some: list[Host], others: list[Host], *, both_ways: bool = True) -> None:
        """Nothing passes from some hosts to the others, and nothing back unless told so."""
        names = f"{[host.name for host in some]} {[host.name for host in others]}"
        self.trace.note(f"cut {names} both_ways={both_ways}")
        for one in some:
            for other in others:
                self.network.cut(one.address, other.address)
                if both_ways:
                    self.network.cut(other.address, one.address)

    def step_clock(self, host: Host, ms: int) -> None:
        """Somebody sets the wall clock of a host."""
        self.trace.note(f"clock of {host.name} {ms:+d} ms")
        host.clock.step(ms)

    def heal(self) -> None:
        """Every way is open and fast again, and every disk."""
        self.trace.note("heal")
        self.network.heal()
        for host in self.hosts:
            self.slow_disk(host, 0)

    def slow_disk(self, host: Host, seconds: float) -> None:
        """Work of the threads of a host takes up to so much longer."""
        if host.threads is not None and host.threads.slowness_s != seconds:
            self.trace.note(f"disk of {host.name} {seconds:g} s")
            host.threads.slowness_s = seconds

    def _run_as(self, process: Process, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        return self.loop.create_task(work, context=process.context.copy())


@contextmanager
def _undisturbed(show: Callable[[str], None] | None, now: Callable[[], float]) -> Iterator[None]:
    """Memory is collected afterwards and not in the middle; what the servers say goes to who wants to read it."""
    logger = logging.getLogger("bolide")
    handlers, level, propagate = logger.handlers[:], logger.level, logger.propagate
    logger.propagate = False
    logger.handlers = [] if show is None else [LogToTrace(now, show)]
    logger.setLevel(logging.CRITICAL + 1 if show is None else logging.INFO)
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)
