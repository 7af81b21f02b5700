"""Every command of `mqadmin`, of both versions: bolide's answer beside that of the original of the same version."""

import difflib
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.interop.mqadmin import seen
from tests.interop.mqadmin.cases import CASES, Case
from tests.interop.mqadmin.meaning import ends_well
from tests.interop.mqadmin.seen import Outcome
from tests.interop.mqadmin.side import Side
from tests.peers import java
from tests.peers.apache import Apache
from tests.peers.server import ServerKind
from tests.peers.witness import OWN_LOOK_SOON, Witness

log = logging.getLogger(__name__)

pytestmark = pytest.mark.needs("java", "mvn")


@dataclass
class Table:
    """Both sides, and a JVM with the tool of one version."""

    version: str
    original: Side
    ours: Side
    catalogue: set[str]
    codes: dict[str, int]
    outcomes: dict[str, str] = field(default_factory=dict)
    differences: dict[str, str] = field(default_factory=dict)

    def compare(self, case: Case) -> None:
        original, ours = self.original.run(case), self.ours.run(case)
        meant, means = _meaning(case, original), _meaning(case, ours)
        if meant == means or (case.more_is_fine and set(meant) <= set(means)):
            self.outcomes[case.command] = Outcome.SAME
            return
        is_sound = not set(ends_well(ours)) - set(ends_well(original))
        self.outcomes[case.command] = Outcome.DIFFERS if is_sound else Outcome.FAILS
        self.differences[case.command] = "\n".join(
            difflib.unified_diff(meant, means, "the original", "bolide", lineterm="", n=0)
        )


def _meaning(case: Case, printed: str) -> list[str]:
    try:
        return case.reading(printed)
    except ValueError:  # an error instead of JSON
        return ends_well(printed)


@pytest.fixture(scope="module", params=java.VERSIONS, ids=lambda version: f"mqadmin-{version}")
def table(
    request: pytest.FixtureRequest, kind: ServerKind, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Table]:
    version: str = request.param
    home = tmp_path_factory.mktemp(f"mqadmin-{version}")
    witness = Witness(version, home / "java", OWN_LOOK_SOON)
    kinds: dict[str, ServerKind] = {"original": Apache(version), "ours": kind}
    with ThreadPoolExecutor() as pool:
        sides = dict(
            zip(kinds, pool.map(lambda name: _side(kinds[name], witness, home / name), kinds), strict=True)
        )
    listed = witness.ask("catalogue")
    codes = {name: int(number) for name, _, number in (code.partition("=") for code in listed["codes"])}
    yield Table(version, sides["original"], sides["ours"], set(listed["commands"]), codes)
    for side in sides.values():
        side.end()
    witness.stop()


def _side(kind: ServerKind, witness: Witness, home: Path) -> Side:
    return Side(kind, witness, home)


def test_every_command_says_what_was_kept_of_it(table: Table) -> None:
    """Runs all commands of this version on both sides; `seen.json`, and so the page, holds how each has ended."""
    for case in CASES:
        if case.command in table.catalogue:
            table.compare(case)
    for command, what in table.differences.items():
        log.info("%s:\n%s", command, what)  # pytest --log-cli-level=INFO shows it
    outcomes = {command: table.outcomes.get(command, "") for command in sorted(table.catalogue)}
    seen.keep(table.version, table.codes, outcomes)
    kept = seen.load()[table.version]
    changed = {
        command: f"{outcome}, not {kept['commands'].get(command)}\n{table.differences.get(command, '')}"
        for command, outcome in outcomes.items()
        if kept["commands"].get(command) != outcome
    }
    assert not changed, "\n".join(f"{command}: {what}" for command, what in changed.items())
    assert kept["codes"] == table.codes
