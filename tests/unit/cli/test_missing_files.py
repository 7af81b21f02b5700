"""A file that is named on the command line, and is not there: wrong usage, whichever command it is."""

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Command


@pytest.mark.parametrize(
    "words",
    [
        ("send", "orders", "--file"),
        ("broker", "--config"),
        ("nameserver", "--config"),
        ("cluster", "import"),
        ("pipeline", "check"),
        ("pipeline", "run"),
        ("pipeline", "dlq", "redrive"),
    ],
    ids=" ".join,
)
def test_a_file_that_is_not_there_is_wrong_usage_and_is_named(
    command: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    said = command(*words, str(tmp_path / "missing.yaml"), code=2).err
    assert str(tmp_path / "missing.yaml") in said
    assert len(said.splitlines()) == 1
