"""Campaign: seeds one after the other until enough states were seen, on one or several processes."""

import errno
import multiprocessing
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tests.crash.deletion import ORDERS, play
from tests.crash.errors import count_steps, fail_step
from tests.crash.ledger import Broken
from tests.crash.plants import NEED_A_DELETION, NEED_A_FAILING_STEP, planted
from tests.crash.states import Failure, Run, quiet

SEEDS_PER_TASK = 10
HUNTED_STATES = 10_000
HUNTED_LIVES = 20
FAILURES_MAX = 10
"""A campaign ends early when it has found so many."""


@dataclass
class Tally:
    first_seed: int
    seeds: int = 0
    states: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.states} crash states from seeds {self.first_seed} to {self.first_seed + self.seeds - 1}"
            f" in {self.seconds:.1f} s ({self.states / max(self.seconds, 0.001):.0f} a second):"
            f" {len(self.failures)} failures"
        )


def explore(
    states: int,
    first_seed: int,
    *,
    workers: int = 1,
    plant: str | None = None,
    failures_max: int = FAILURES_MAX,
    on_progress: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Draw at least so many states, unless too many of them fail."""
    began = time.perf_counter()
    tally = Tally(first_seed)
    for count, failures in _results(first_seed, workers, plant):
        tally.seeds += SEEDS_PER_TASK
        tally.states += count
        tally.failures += failures
        tally.seconds = time.perf_counter() - began
        on_progress(tally)
        if tally.states >= states or len(tally.failures) >= failures_max:
            break
    return tally


def hunt(plant: str) -> str | None:
    """What this bug breaks, as the harness sees it; None when it does not."""
    if plant in NEED_A_FAILING_STEP:
        with planted(plant):
            return next((found for seed in range(HUNTED_LIVES) if (found := _first_broken(seed))), None)
    if plant in NEED_A_DELETION:
        with planted(plant):
            scenes = ((seed, order) for seed in range(HUNTED_LIVES) for order in ORDERS)
            return next((found for scene in scenes if (found := _broken_in(*scene))), None)
    tally = explore(HUNTED_STATES, 0, plant=plant, failures_max=1)
    return str(tally.failures[0]) if tally.failures else None


def _first_broken(seed: int) -> str | None:
    """The first step of a life whose failure breaks a promise."""
    quiet()
    for number, kind in enumerate(count_steps(seed)):
        try:
            fail_step(seed, number, errno.EIO)
        except Broken as broken:
            return f"seed {seed}, step {number} ({kind}) fails: {broken}"
    return None


def _broken_in(seed: int, order: str) -> str | None:
    quiet()
    try:
        play(seed, order)
    except Broken as broken:
        return f"seed {seed}, {order!r}: {broken}"
    return None


def _results(first_seed: int, workers: int, plant: str | None) -> Iterator[tuple[int, list[Failure]]]:
    """Results of one task after the other, for ever, in order of seeds whatever the number of workers."""
    play = partial(_play_seeds, plant=plant)
    starts = iter(range(first_seed, 1 << 62, SEEDS_PER_TASK))
    if workers == 1:
        yield from map(play, starts)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        ahead = [pool.apply_async(play, (next(starts),)) for _ in range(4 * workers)]
        while True:
            ahead.append(pool.apply_async(play, (next(starts),)))
            yield ahead.pop(0).get()


def _play_seeds(first: int, *, plant: str | None) -> tuple[int, list[Failure]]:
    quiet()
    states, failures = 0, []
    with planted(plant):
        for seed in range(first, first + SEEDS_PER_TASK):
            run = Run(seed)
            failure = run.play()
            states += run.states
            if failure is not None:
                failures.append(failure)
                if plant is not None:
                    break  # it is found
    return states, failures
