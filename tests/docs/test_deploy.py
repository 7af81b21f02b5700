"""What stands in deploy/ can be used as it stands."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bolide.cli.main import main
from bolide.cli.outcome import ExitCode

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "deploy").glob("*.service"))
BOLIDE = Path(sys.executable).with_name("bolide")


def values(unit: Path, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", unit.read_text(), re.MULTILINE)


def test_the_brokers_settings_are_settings_that_a_broker_starts_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["broker", "--check", "-c", str(ROOT / "deploy" / "broker.conf")]
    here = ["--set", "listenPort=0", "--set", f"storePathRootDir={tmp_path}"]  # others may use this machine's
    assert main([*words, *here]) == 0, capsys.readouterr()


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_command_that_exists_with_options_that_it_has(
    unit: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = values(unit, "ExecStart")
    _, command, *options = shlex.split(line)
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert [word for word in options if word.startswith("-") and word not in shown] == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_does_not_try_again_what_cannot_get_better(unit: Path) -> None:
    codes = {
        ExitCode(int(word)) for line in values(unit, "RestartPreventExitStatus") for word in line.split()
    }
    assert ExitCode.USAGE in codes
    assert codes <= {ExitCode.USAGE, ExitCode.STORE_FAILED}


@pytest.mark.needs("systemd-analyze")
def test_systemd_takes_the_units(tmp_path: Path) -> None:
    copies = [tmp_path / unit.name for unit in UNITS]
    for unit, copy in zip(UNITS, copies, strict=True):
        copy.write_text(unit.read_text().replace("/opt/bolide/bin/bolide", str(BOLIDE)))
    done = subprocess.run(["systemd-analyze", "verify", *copies], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_image_is_built_from_files_that_are_there() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    sources = [
        word
        for line in re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)
        for word in line.split()[:-1]
    ]
    assert [name for name in sources if not (ROOT / name).exists()] == []
    allowed = re.findall(r"^!(.*)$", (ROOT / "deploy" / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert set(sources) == set(allowed)
    assert [name for name in re.findall(r"requirements/[\w.]+", text) if not (ROOT / name).exists()] == []


def test_what_runs_is_locked_to_what_was_tested() -> None:
    pin = re.compile(r"^([\w.-]+)==([\w.]+)", re.MULTILINE)
    tested = dict(pin.findall((ROOT / "requirements" / "dev.txt").read_text()))
    locked = dict(pin.findall((ROOT / "requirements" / "run.txt").read_text()))
    assert len(locked) > 5
    assert {name: version for name, version in locked.items() if tested.get(name) != version} == {}
