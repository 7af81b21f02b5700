"""docs/command-line.md has the exit codes, variables and letters that the code has."""

import re
from pathlib import Path

import pytest

from bolide.cli.app import command, every_command
from bolide.cli.outcome import MEANINGS
from bolide.cli.since import parse_since

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "command-line.md").read_text()
VARIABLE = re.compile(r"\b(BOLIDE_[A-Z_]+|NAMESRV_ADDR|NO_COLOR)\b")
MOMENTS = re.findall(r"`([^`]+)`", re.search(r"\| form.*?\n\n", PAGE, re.DOTALL)[0])  # type: ignore[index]


def test_every_exit_code_stands_there_with_its_meaning() -> None:
    told = dict(re.findall(r"^\| (\d+) \| (.+) \|$", PAGE, re.MULTILINE))
    assert told == {str(int(code)): meaning for code, meaning in MEANINGS.items()}


def test_every_variable_that_is_read_stands_there_and_no_other() -> None:
    read = {
        name
        for path in [*(ROOT / "src").rglob("*.py"), ROOT / "setup.py"]
        for line in path.read_text().splitlines()
        if "environ" in line or "envvar" in line or "VARIABLES" in line
        for name in VARIABLE.findall(line)
    }
    assert set(VARIABLE.findall(PAGE)) == read - {"BOLIDE_DEBUG_BUILD", "BOLIDE_SANITIZE"}


def test_every_letter_stands_there() -> None:
    used = {
        name
        for one in every_command(command())
        for parameter in one.params
        for name in parameter.opts
        if re.fullmatch("-[a-z]", name)
    }
    (section,) = re.findall(r"^## Letters\n(.*?)^##", PAGE, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`(-[a-z])`", section)) == used | {"-h"}


@pytest.mark.parametrize("example", [text.strip("'") for text in MOMENTS if not text.startswith("bolide")])
def test_every_moment_on_the_page_is_one(example: str) -> None:
    if example not in ("end", "date +%s"):
        assert parse_since(example, 1_800_000_000_000) is not None
