"""Runs the chosen workloads, side against side, and keeps every sample."""

from collections import defaultdict, deque
from collections.abc import Callable, Collection
from pathlib import Path

from tests.bench.attacks.kinds import ATTACKS
from tests.bench.attacks.measure import prepare, under_attack
from tests.bench.callbacks.measure import longest_callbacks, table_of
from tests.bench.callbacks.scene import Scene
from tests.bench.clients.measure import client_figures, memory_figures
from tests.bench.rows import (
    ATTACKED,
    CALLBACKS,
    CLIENTS,
    FRESH_WORKLOADS,
    OWN_WORKLOADS,
    SPARK,
    START,
    WORKLOADS,
)
from tests.bench.scale import Scale
from tests.bench.sides import KAFKA, KINDS, OURS, THEIRS, running_side
from tests.bench.spark.measure import spark_figures
from tests.bench.starting import seconds_to_first_send
from tests.bench.workloads import warm_up

Say = Callable[[str], None]


class Samples:
    """Figures by side, workload and name; one value per run."""

    def __init__(self) -> None:
        self.values: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
        self.notes: list[str] = []

    def add(self, side: str, workload: str, figures: dict[str, float]) -> None:
        for name, value in figures.items():
            self.values[side, workload, name].append(value)

    def of(self, side: str, workload: str, figure: str) -> list[float]:
        return self.values.get((side, workload, figure), [])


def run(
    chosen: Collection[str],
    sides: Collection[str],
    scale: Scale,
    home: Path,
    say: Say,
    attacks: Collection[str] = tuple(ATTACKS),
) -> Samples:
    samples = Samples()
    for number in range(scale.rounds) if WORKLOADS.keys() & set(chosen) else ():
        for side in _in_turn(number, THEIRS, sides):
            say(f"round {number + 1} of {scale.rounds}: {side}")
            _run_workloads(side, chosen, scale, home, samples, say)
    servers = [side for side in sides if side in KINDS]
    if START in chosen:
        _run_starts(servers, scale, home, samples, say)
    _run_fresh(chosen, servers, scale, home, samples, say)
    if OURS in sides:
        _run_own(chosen, scale, home, samples, say)
    if OURS in sides and CALLBACKS in chosen:
        _run_callbacks(scale, home, samples, say)
    for side in servers if ATTACKED in chosen else ():
        _run_attacks(side, attacks, scale, home / f"{ATTACKED}-{side}", samples, say)
    if SPARK in chosen:
        _run_spark(sides, scale, home, samples, say)
    if CLIENTS in chosen:
        _run_clients(sides, scale, home, samples, say)
    return samples


def _in_turn(number: int, peer: str, sides: Collection[str]) -> list[str]:
    """A-B, B-A, A-B …: the order turns every round so that neither side always comes first."""
    return [side for side in ((OURS, peer) if number % 2 else (peer, OURS)) if side in sides]


def _run_workloads(
    name: str, chosen: Collection[str], scale: Scale, home: Path, samples: Samples, say: Say
) -> None:
    wanted = {key: workload for key, workload in WORKLOADS.items() if key in chosen}
    with running_side(name, home / name) as side:
        warm_up(side, scale)
        for key, workload in wanted.items():
            figures = workload(side, scale)
            samples.add(name, key, figures)
            say(f"  {key}: {_brief(figures)}")


def _run_starts(sides: Collection[str], scale: Scale, home: Path, samples: Samples, say: Say) -> None:
    for _ in range(scale.starts):
        for side in sides:
            seconds = seconds_to_first_send(side, home / f"start-{side}")
            samples.add(side, START, {"seconds": seconds})
            say(f"start of {side}: {seconds:.2f} s")


def _run_fresh(
    chosen: Collection[str], sides: Collection[str], scale: Scale, home: Path, samples: Samples, say: Say
) -> None:
    for key, (settings, workload) in FRESH_WORKLOADS.items():
        for side in sides if key in chosen else ():
            with running_side(side, home / f"{key}-{side}", settings=settings) as fresh:
                warm_up(fresh, scale)
                figures = workload(fresh, scale)
            samples.add(side, key, figures)
            say(f"{key} of {side}: {_brief(figures)}")


def _run_own(chosen: Collection[str], scale: Scale, home: Path, samples: Samples, say: Say) -> None:
    for key, workload in OWN_WORKLOADS.items():
        if key in chosen:
            with running_side(OURS, home / key) as side:
                warm_up(side, scale)
                figures = workload(side, scale)
            samples.add(OURS, key, figures)
            say(f"{key}: {_brief(figures)}")


def _run_callbacks(scale: Scale, home: Path, samples: Samples, say: Say) -> None:
    scene = Scene(scale.scene_topics, scale.scene_groups, scale.held_pulls)
    say(
        f"longest callbacks with {scene.topics:,} topics, {scene.groups:,} groups, {scene.held_pulls:,} held pulls"
    )
    found = longest_callbacks(scene, home / CALLBACKS, say)
    samples.add(OURS, CALLBACKS, {key: longest.ms for key, longest in found.items()})
    samples.notes += table_of(found)


def _run_attacks(
    name: str, attacks: Collection[str], scale: Scale, home: Path, samples: Samples, say: Say
) -> None:
    """One after the other on one server; where theirs does not survive one, the next has a fresh server."""
    left = deque(attacks)
    while left:
        try:
            with running_side(name, home) as side:
                warm_up(side, scale)
                prepare(side)
                while left:
                    kind = left.popleft()
                    figures = under_attack(side, scale, kind)
                    samples.add(name, ATTACKED, figures)
                    say(f"attack {kind} on {name}: {_brief(figures)}")
        except Exception as error:
            if name == OURS:
                raise
            samples.notes.append(f"{name} did not get through the attack {kind!r}: {type(error).__name__}")
            say(f"attack {kind} on {name}: {error}")


def _run_spark(sides: Collection[str], scale: Scale, home: Path, samples: Samples, say: Say) -> None:
    for number in range(scale.rounds):
        for side in _in_turn(number, KAFKA, sides):
            figures = spark_figures(side, scale, home / f"{SPARK}-{side}")
            samples.add(side, SPARK, figures)
            say(f"Spark on {side}, {number + 1} of {scale.rounds}: {_brief(figures)}")


def _run_clients(sides: Collection[str], scale: Scale, home: Path, samples: Samples, say: Say) -> None:
    for number in range(scale.rounds):
        in_turn = _in_turn(number, KAFKA, sides)
        for side in [*in_turn, THEIRS] if THEIRS in sides else in_turn:
            figures = client_figures(side, scale, home / f"{CLIENTS}-{side}")
            samples.add(side, CLIENTS, figures)
            say(f"clients of {side}, {number + 1} of {scale.rounds}: {_brief(figures)}")
    if OURS in sides:
        figures = memory_figures(scale, home / f"{CLIENTS}-memory")
        samples.add(OURS, CLIENTS, figures)
        say(f"memory of a client: {_brief(figures)}")


def _brief(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:,.6g}" for name, value in figures.items())
