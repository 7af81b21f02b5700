"""The settings that a server is started with: from a file, options and `--set` win, and every mistake is named with its
place.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from bolide.cli.output import counted, say_error
from bolide.cli.settings import FileSettings, parse_assignments, read_settings
from bolide.model.settings_table import Examined, Finding, SettingsError, SettingsTable

Table = TypeVar("Table", bound=SettingsTable)


class Given(NamedTuple):
    """A setting that stands in no file, and the name of the option or variable that gave it."""

    source: str
    value: str


class ServerSettings(Generic[Table]):
    def __init__(
        self,
        table: type[Table],
        file: Path | None,
        assignments: Sequence[str],
        options: Mapping[str, Given],
        usual: Mapping[str, Given],
    ) -> None:
        """`ConfigError` for a file that cannot be read, and for what is no assignment.

        What is usual counts where neither the file nor an option says another thing: the environment's.
        """
        self._table = table
        self._file = file
        section = table.SERVER.replace(" ", "")
        self._given = FileSettings() if file is None else read_settings(file, section)
        self._own = parse_assignments(assignments)
        own = {key: Given("--set", value) for key, value in self._own.items()}
        self._strong = {**options, **own}
        self._usual = usual

    @property
    def all(self) -> Mapping[str, str]:
        usual = {key: given.value for key, given in self._usual.items()}
        return usual | self._given | {key: given.value for key, given in self._strong.items()}

    def config(self) -> Table | None:
        """What they come to; None, with every problem said, when no server starts with them."""
        try:
            return self._table.from_settings(self.all)
        except SettingsError as error:
            for remark in sorted(self._placed(error.problems)):
                say_error(f"{remark.place}{remark.text}")
            return None

    def check(self, found: Examined) -> bool:
        """Print all that there is to say of them; whether a server starts."""
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
        verdict = f"{'no' if found.problems else 'a'} {self._table.SERVER} starts with these settings here"
        print(f"{counted(len(found.problems), 'problem')}, {counted(warnings, 'warning')}: {verdict}")
        return not found.problems

    def _placed(self, findings: Sequence[Finding]) -> "Iterator[Remark]":
        for key, text in findings:
            line = self._given.lines.get(key, 0)
            if key in self._strong:
                yield Remark(0, f"{self._strong[key].source}: ", text)
            elif key in self._given and line:
                yield Remark(line, f"{self._file}:{line}: ", text)
            elif key in self._usual and key not in self._given:
                yield Remark(0, f"{self._usual[key].source}: ", text)
            else:
                yield Remark(0, f"{self._file}: " if self._file else "", text)


class Remark(NamedTuple):
    """Something to say of a setting, and where it stands."""

    line: int
    place: str
    text: str
