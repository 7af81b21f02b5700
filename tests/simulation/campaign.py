"""Campaign: one scenario with one seed, or many of both, on one or several processes."""

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tests.simulation.scenarios import SCENARIOS
from tests.simulation.world import World


@dataclass(frozen=True)
class Run:
    """One world from its beginning to its end."""

    scenario: str
    seed: int
    digest: str
    events: int
    simulated_s: float
    failure: str | None
    where: str = ""
    waits: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        outcome = "every promise is kept" if self.failure is None else self.failure
        return f"{self.scenario} {self.seed}: {outcome} (at {self.simulated_s:.3f} s, trace {self.digest})"


@dataclass
class Tally:
    runs: int = 0
    simulated_s: float = 0.0
    events: int = 0
    seconds: float = 0.0
    failures: list[Run] = field(default_factory=list)
    waits: dict[str, float] = field(default_factory=dict)

    def add(self, run: Run) -> None:
        self.runs += 1
        self.simulated_s += run.simulated_s
        self.events += run.events
        if run.failure is not None:
            self.failures.append(run)
        for what, took in run.waits.items():
            self.waits[what] = max(took, self.waits.get(what, 0.0))

    @property
    def longest(self) -> str:
        """What was waited for in all these worlds, and the longest that it took."""
        return "\n".join(f"{took:8.2f} s  {what}" for what, took in sorted(self.waits.items()))

    def __str__(self) -> str:
        return (
            f"{self.runs} worlds, {self.simulated_s / 3600:.1f} simulated hours, {self.events} events"
            f" in {self.seconds:.1f} s: {len(self.failures)} failures"
        )


def play(scenario: str, seed: int, show: Callable[[str], None] | None = None) -> Run:
    """Play one world.  Whatever goes wrong in it is in the answer."""
    world = World(seed, show)
    failure, where = None, ""
    try:
        world.run(SCENARIOS[scenario](world))
    except Exception as error:
        failure, where = f"{type(error).__name__}: {error}", traceback.format_exc()
    return Run(scenario, seed, world.trace.digest, world.trace.events, world.now, failure, where, world.waits)


def explore(
    scenarios: Iterable[str],
    seeds: Iterable[int],
    *,
    workers: int = 1,
    on_run: Callable[[Run], None] = lambda run: None,
) -> Tally:
    """Play every scenario with every seed."""
    began = time.perf_counter()
    tally = Tally()
    names = list(scenarios)
    for run in _runs([(name, seed) for seed in seeds for name in names], workers):
        tally.add(run)
        tally.seconds = time.perf_counter() - began
        on_run(run)
    return tally


def _runs(wanted: list[tuple[str, int]], workers: int) -> Iterator[Run]:
    if workers == 1:
        yield from (play(*one) for one in wanted)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap(_play, wanted)


def _play(one: tuple[str, int]) -> Run:
    return play(*one)
