"""The command line: `python -m tests.bench [--quick] [--rows sync64,async] [--sides bolide,apache]`."""

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.bench import report
from tests.bench.attacks.kinds import ATTACKS
from tests.bench.descriptors import limit_descriptors
from tests.bench.rows import CALLBACKS, CLIENTS, KEYS, SPARK
from tests.bench.run import run
from tests.bench.scale import FULL, QUICK, SMOKE
from tests.bench.sides import OURS, SIDES
from tests.peers import java
from tests.peers.built import ROOT

BUSY_LOAD = 0.7


def main() -> int:
    options = _parser().parse_args()
    scale = SMOKE if options.smoke else QUICK if options.quick else FULL
    if options.rounds is not None:
        scale = replace(scale, rounds=max(1, options.rounds))
    chosen, sides = _listed(options.rows, KEYS), _listed(options.sides, SIDES)
    attacks = _listed(options.attacks, tuple(ATTACKS))
    if report.LOAD_AT_START > BUSY_LOAD:
        _say(f"warning: the machine is busy (load average {report.LOAD_AT_START:.2f}); ratios will suffer")
    if OURS in sides and not Path(sys.executable).with_name("bolide").exists():
        _say("error: bolide is not installed beside this interpreter; run `make setup`")
        return 2
    if set(chosen) - {CALLBACKS, SPARK, CLIENTS}:
        java.build(java.LATEST)
    limit_descriptors()
    with tempfile.TemporaryDirectory(prefix="bolide-bench-", dir=options.dir) as home:
        samples = run(chosen, sides, scale, Path(home), _say, attacks)
    lines = report.lines_of(samples)
    page = report.write(options.out, lines, samples, scale)
    print(page.read_text())
    verdicts = [line.passed for line in lines if line.passed is not None]
    _say(f"{sum(verdicts)} of {len(verdicts)} bars cleared")
    return 1 if options.enforce and not all(verdicts) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=main.__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="one short round: minutes, not a quarter of an hour"
    )
    parser.add_argument(
        "--smoke", action="store_true", help="only whether the benchmark runs; figures mean nothing"
    )
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="how often what has rounds is measured, where medians count"
    )
    parser.add_argument("--rows", default=",".join(KEYS), help=f"workloads to run, of {', '.join(KEYS)}")
    parser.add_argument(
        "--attacks", default=",".join(ATTACKS), help="which of the row attacks, in this order"
    )
    parser.add_argument("--sides", default=",".join(SIDES), help=f"servers to run, of {', '.join(SIDES)}")
    parser.add_argument("--out", type=Path, default=ROOT / "bench-results", help="where the results go")
    parser.add_argument("--dir", type=Path, help="where the stores live while it runs (some gigabytes)")
    parser.add_argument("--enforce", action="store_true", help="exit with 1 if a bar is missed")
    return parser


def _listed(text: str, known: tuple[str, ...]) -> list[str]:
    chosen = [word.strip() for word in text.split(",") if word.strip()]
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    return chosen


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
