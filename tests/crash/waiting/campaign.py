"""Lives one after the other, on one or several processes; and the hunt for a planted bug."""

import multiprocessing
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from tests.crash.campaign import FAILURES_MAX, Tally
from tests.crash.states import Failure
from tests.crash.waiting.life import Life
from tests.crash.waiting.plants import FIRST_SEEDS, PLANTS, THEMES

HUNTED_LIVES = 400


def explore(
    states: int,
    first_seed: int,
    *,
    workers: int = 1,
    on_progress: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Live until starts have found at least so many states, unless too many of them break a promise."""
    began = time.perf_counter()
    tally = Tally(first_seed)
    for count, failure in _results(first_seed, workers):
        tally.seeds += 1
        tally.states += count
        tally.failures += [] if failure is None else [failure]
        tally.seconds = time.perf_counter() - began
        on_progress(tally)
        if tally.states >= states or len(tally.failures) >= FAILURES_MAX:
            break
    return tally


def hunt(plant: str) -> str | None:
    """What this bug breaks; None when it is not found."""
    with ExitStack() as stack:
        PLANTS[plant](stack)
        first = FIRST_SEEDS.get(plant, 0)
        for seed in range(first, first + HUNTED_LIVES):
            _, failure = play(seed, THEMES.get(plant))
            if failure is not None:
                return f"seed {seed}: {failure.what}"
    return None


def play(
    seed: int, theme: str | None = None, show: Callable[[str], None] | None = None
) -> tuple[int, Failure | None]:
    """One life: how many states its starts have found, and what was broken."""
    life = Life(seed, theme, show)
    try:
        life.play()
    except Exception as error:  # also that a start needs a human
        what = f"{type(error).__name__}: {error}"
        return life.states, Failure(seed, 0, what, traceback.format_exc(), "waiting")
    return life.states, None


def _results(first_seed: int, workers: int) -> Iterator[tuple[int, Failure | None]]:
    seeds = iter(range(first_seed, 1 << 62))
    if workers == 1:
        yield from map(play, seeds)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        ahead = [pool.apply_async(play, (next(seeds),)) for _ in range(8 * workers)]
        while True:
            ahead.append(pool.apply_async(play, (next(seeds),)))
            yield ahead.pop(0).get()
