"""Servers that cannot start as told: one line that names the setting, the file or the directory."""

import re
from pathlib import Path

import pytest

from bolide.cli.main import main


@pytest.mark.parametrize("command", ["broker", "nameserver"])
def test_a_mistake_in_a_file_is_named_with_the_file(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.conf"
    file.write_text("listenPort = many\n")
    assert main([command, "-c", str(file)]) == 2
    assert re.match(rf"error: {re.escape(str(file))}:(1:)? listenPort", capsys.readouterr().err)


def test_a_mistake_on_the_command_line_is_not_blamed_on_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("brokerName = a\n")
    assert main(["broker", "-c", str(file), "--set", "listenPort=many"]) == 2
    assert capsys.readouterr().err.startswith("error: --set: listenPort")


@pytest.mark.parametrize("words", [["up", "--data", ""], ["doctor", "--data", ""]], ids=" ".join)
def test_an_empty_data_directory_is_not_the_working_directory(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert "--data" in capsys.readouterr().err


def test_data_in_a_file_says_that_it_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").touch()
    assert main(["up", "--data", str(tmp_path / "taken")]) == 2
    assert "is a file" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["up"], ["nameserver"], ["broker"]], ids=" ".join)
def test_examples_in_the_help_stand_apart(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main([*words, "--help"])
    lines = capsys.readouterr().out.splitlines()
    examples = [
        line
        for line in lines
        if line.lstrip().startswith(("bolide tail", "bolide up", "bolide broker", "bolide nameserver"))
    ]
    assert any(line.startswith("     ") for line in examples), lines
