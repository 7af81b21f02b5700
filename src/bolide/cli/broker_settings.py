"""The settings that a broker is started with: from a file, `--set` wins, and every mistake is named with its place."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bolide.broker.config import BrokerConfig
from bolide.cli.checks_start import check_start
from bolide.cli.options import nameserver_variable
from bolide.cli.output import counted, say_error
from bolide.cli.settings import FileSettings, parse_assignments, read_settings
from bolide.model.settings_table import Examined, Finding, SettingsError

NAMESERVER = "namesrvAddr"


class BrokerSettings:
    def __init__(
        self, file: Path | None, assignments: Sequence[str], nameserver: str | None, usual_nameserver: str
    ) -> None:
        """`ConfigError` for a file that cannot be read, and for what is no assignment.

        The usual name server is the environment's, for a file that names none; `nameserver` is an option.
        """
        self._file = file
        self._usual = {NAMESERVER: usual_nameserver}
        self._given = FileSettings() if file is None else read_settings(file, "broker")
        self._option = {} if nameserver is None else {NAMESERVER: nameserver}
        self._own = parse_assignments(assignments)

    @property
    def all(self) -> Mapping[str, str]:
        return self._usual | self._given | self._option | self._own

    def config(self) -> BrokerConfig | None:
        """What they come to; None, with every problem said, when no broker starts with them."""
        try:
            return BrokerConfig.from_settings(self.all)
        except SettingsError as error:
            for remark in sorted(self._placed(error.problems)):
                say_error(f"{remark.place}{remark.text}")
            return None

    def check(self) -> bool:
        """Print all that there is to say of them; whether a broker starts."""
        found = BrokerConfig.examine(self.all)
        if not found.problems:
            here = check_start(BrokerConfig(**found.values))
            found.problems.extend(here.problems)
            found.warnings.extend(here.warnings)
        remarks = [
            *(remark._replace(text=f"problem: {remark.text}") for remark in self._placed(found.problems)),
            *(remark._replace(text=f"warning: {remark.text}") for remark in self._placed(found.warnings)),
            *(
                Remark(
                    line, f"{self._file}:{line}: ", f"warning: {key} is set again further down, which counts"
                )
                for line, key in self._given.overruled
            ),
        ]
        for remark in sorted(remarks):
            print(f"{remark.place}{remark.text}")
        warnings = len(remarks) - len(found.problems)
        print(f"{counted(len(found.problems), 'problem')}, {counted(warnings, 'warning')}: {_verdict(found)}")
        return not found.problems

    def _placed(self, findings: Sequence[Finding]) -> "Iterator[Remark]":
        for key, text in findings:
            if key in self._own:
                yield Remark(0, "--set: ", text)
            elif key in self._option:
                yield Remark(0, "--nameserver: ", text)
            elif key == NAMESERVER and key not in self._given:
                yield Remark(0, f"{nameserver_variable()}: ", text)
            elif key not in self._given:
                yield Remark(0, f"{self._file}: " if self._file else "", text)
            else:
                line = self._given.lines.get(key, 0)
                yield Remark(line, f"{self._file}:{line}: " if line else f"{self._file}: ", text)


class Remark(NamedTuple):
    """Something to say of a setting, and where it stands."""

    line: int
    place: str
    text: str


def _verdict(found: Examined) -> str:
    return (
        "no broker starts with these settings here"
        if found.problems
        else "a broker starts with these settings here"
    )
