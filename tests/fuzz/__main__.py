"""`python -m tests.fuzz`: many inputs for every parser, or one of them again."""

import argparse
import secrets
import sys
import time
from pathlib import Path

from tests.fuzz import guided
from tests.fuzz.campaign import Finding, Tally, explore_with_workers, on_guard
from tests.fuzz.target import Target, was_taken
from tests.fuzz.targets import TARGETS

PROGRESS_S = 10.0


def main() -> int:
    arguments = _arguments()
    targets = [TARGETS[name] for name in arguments.target or TARGETS]
    if arguments.replay is not None:
        return _replay(targets, bytes.fromhex(arguments.replay))
    if arguments.guided:
        for target in targets:
            print(
                guided.run(target, arguments.inputs * target.share // sum(one.share for one in targets)),
                flush=True,
            )
        return 0
    seed = secrets.randbelow(1 << 32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    progress = _Progress(arguments.inputs, arguments.save)
    try:
        tally = explore_with_workers(targets, arguments.inputs, seed, arguments.workers, progress)
    except KeyboardInterrupt:
        print("stopped")
        tally = progress.tally
    for name in sorted(tally.inputs):
        print(f"  {name:24} {tally.inputs[name]:9} inputs, {tally.taken[name]:9} taken")
    print(tally)
    return 1 if tally.findings else 0


class _Progress:
    """Findings at once, and in files; a line now and then."""

    def __init__(self, inputs: int, folder: Path) -> None:
        self._inputs = inputs
        self._folder = folder
        self._findings = 0
        self.tally = Tally()
        self._last = time.monotonic()

    def __call__(self, tally: Tally) -> None:
        self.tally = tally
        for finding in tally.findings[self._findings :]:
            print(finding, flush=True)
            self._save(finding)
        self._findings = len(tally.findings)
        if time.monotonic() - self._last >= PROGRESS_S:
            self._last = time.monotonic()
            print(f"{tally.total * 100 // self._inputs:3d} %  {tally}", flush=True)

    def _save(self, finding: Finding) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{finding.target}-{self._findings}-{len(finding.data)}.hex"
        path.write_text(finding.data.hex() + "\n")


def _replay(targets: list[Target], data: bytes) -> int:
    """With the traceback, if there is one."""
    with on_guard():
        for target in targets:
            print(f"{target.name}: {'taken' if was_taken(target, data) else 'refused'}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="how many, for all targets together")
    parser.add_argument("--seed", type=int, help="where chance begins; random when it is not given")
    parser.add_argument(
        "--target", action="append", choices=sorted(TARGETS), help="only this one; may be repeated"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--replay", metavar="HEX", help="one input again, with the traceback")
    parser.add_argument("--save", type=Path, default=Path("build/fuzz"), help="where findings are kept")
    parser.add_argument(
        "--guided",
        action="store_true",
        help="let Atheris look for inputs that reach new code",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
