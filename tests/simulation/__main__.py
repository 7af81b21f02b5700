"""`python -m tests.simulation`: many worlds, or one of them again with everything that happens in it."""

import argparse
import secrets
import sys
import time

from tests.simulation.campaign import Run, explore, play
from tests.simulation.scenarios import SCENARIOS, SHORT

PROGRESS_S = 10.0


def main() -> int:
    arguments = _arguments()
    if arguments.replay:
        return _replay(arguments.replay)
    first = secrets.randbelow(1 << 32) if arguments.seed is None else arguments.seed
    names = [arguments.scenario] if arguments.scenario else SHORT
    print(f"seeds {first} to {first + arguments.seeds - 1}", flush=True)
    tally = explore(
        names, range(first, first + arguments.seeds), workers=arguments.workers, on_run=_Progress()
    )
    print(tally.longest)
    print(tally)
    return 1 if tally.failures else 0


class _Progress:
    """Failures at once, and a line now and then."""

    def __init__(self) -> None:
        self._runs = 0
        self._said = time.monotonic()

    def __call__(self, run: Run) -> None:
        self._runs += 1
        if run.failure is not None:
            print(run, flush=True)
        if time.monotonic() - self._said >= PROGRESS_S:
            self._said = time.monotonic()
            print(f"{self._runs} worlds", flush=True)


def _replay(which: str) -> int:
    """One world again: every event, and what the servers and clients say."""
    scenario, _, seed = which.partition(":")
    if scenario not in SCENARIOS or not seed.isdecimal():
        names = ", ".join(sorted(SCENARIOS))
        print(f"error: {which!r} is not SCENARIO:SEED; scenarios: {names}", file=sys.stderr)
        return 2
    run = play(scenario, int(seed), print)
    print(run.where, end="")
    print(run)
    return 0 if run.failure is None else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds")
    parser.add_argument("--seed", type=int, help="the first one; by chance when it is not given")
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), help="only this one")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--replay", metavar="SCENARIO:SEED", help="see one world again")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
