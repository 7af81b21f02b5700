"""Commands in this process, against one real server for all tests of a file: use topics and groups of your own."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from bolide.cli.main import main
from bolide.testing import EmbeddedServer


class Shown(NamedTuple):
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The words of each line of the table, without its head."""
        return [line.split() for line in self.out.splitlines()[2:]]


Command = Callable[..., Shown]


@pytest.fixture
def command(
    bolide_module_server: EmbeddedServer,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Command:
    """Run a command that ends with this code, where nobody can be asked; gives what it wrote."""
    monkeypatch.setenv("BOLIDE_NAMESERVER", bolide_module_server.nameserver)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)

    def run(*words: str, code: int = 0) -> Shown:
        capfd.readouterr()
        outcome = main(words)
        shown = Shown(*capfd.readouterr())
        assert outcome == code, shown.err
        return shown

    return run
