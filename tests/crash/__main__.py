"""`python -m tests.crash`: many crash states, one of them again, or with a planted bug.

Of the store alone, or (`--kind waiting`) of whole brokers with messages that wait.
"""

import argparse
import logging
import secrets
import sys
import time

from tests.crash import campaign
from tests.crash.campaign import Tally
from tests.crash.plants import PLANTS, planted
from tests.crash.states import Failure, Run
from tests.crash.waiting import campaign as waiting
from tests.crash.waiting.plants import PLANTS as WAITING_PLANTS

PROGRESS_S = 5.0


def main() -> int:
    arguments = _arguments()
    is_store = arguments.kind == "store"
    if arguments.replay:
        return _replay(arguments.replay, arguments.plant) if is_store else _live_again(arguments.replay)
    if arguments.plant:
        found = (waiting if arguments.plant in WAITING_PLANTS else campaign).hunt(arguments.plant)
        print(f"{arguments.plant}: {found or 'NOT FOUND'}")
        return 0 if found else 1
    seed = secrets.randbelow(1 << 32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    explore = campaign.explore if is_store else waiting.explore
    tally = explore(
        arguments.states, seed, workers=arguments.workers, on_progress=_Progress(arguments.states)
    )
    print(tally)
    return 1 if tally.failures else 0


class _Progress:
    """Failures at once, and a line now and then."""

    def __init__(self, states: int) -> None:
        self._states = states
        self._failures = 0
        self._last = time.monotonic()

    def __call__(self, tally: Tally) -> None:
        for failure in tally.failures[self._failures :]:
            print(failure, flush=True)
        self._failures = len(tally.failures)
        if time.monotonic() - self._last >= PROGRESS_S:
            self._last = time.monotonic()
            print(f"{tally.states * 100 // self._states:3d} %  {tally}", flush=True)


def _replay(which: str, plant: str | None) -> int:
    """One state, with what the store says about it."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    seed, state = (int(number) for number in which.split(":"))
    with planted(plant):
        failure = Run(seed, only=state).play()
    if failure is None:
        print(f"seed {seed} state {state}: every promise is kept")
        return 0
    return _tell(failure)


def _live_again(which: str) -> int:
    """One life, with everything that happens in it."""
    seed = int(which.split(":")[0])
    _, failure = waiting.play(seed, show=print)
    if failure is None:
        print(f"seed {seed}: every promise is kept")
        return 0
    return _tell(failure)


def _tell(failure: Failure) -> int:
    print(failure.trace)
    print(failure)
    return 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kind", choices=("store", "waiting"), default="store")
    parser.add_argument("--states", type=int, default=5000, help="how many states to see at least")
    parser.add_argument("--seed", type=int, help="the first seed; random when it is not given")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--replay", metavar="SEED:STATE", help="see one state again")
    parser.add_argument(
        "--plant", choices=sorted([*PLANTS, *WAITING_PLANTS]), help="with a bug that must be found"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
