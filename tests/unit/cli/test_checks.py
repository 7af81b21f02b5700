"""What `bolide doctor` says about this machine."""

import resource
import shutil
import socket
from pathlib import Path
from typing import NamedTuple

import pytest

from bolide.cli import checks_here
from bolide.cli.findings import Verdict
from tests.peers.ports import free_port


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.mark.parametrize(
    ("free_gib", "verdict"), [(1, Verdict.WRONG), (5, Verdict.DOUBTFUL), (50, Verdict.GOOD)]
)
def test_a_disk_without_room_is_a_problem_even_before_its_directory_exists(
    free_gib: int, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def disk_usage(place: Path) -> Usage:
        asked.append(place)
        return Usage(100 * 1024**3, 0, free_gib * 1024**3)

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    assert checks_here.check_disk(tmp_path / "not" / "yet").verdict is verdict
    assert asked == [tmp_path]


@pytest.mark.parametrize(
    ("used_gib", "verdict", "setting"),
    [
        (80, Verdict.GOOD, ""),
        (86, Verdict.DOUBTFUL, "diskSpaceCleanForciblyRatio"),
        (91, Verdict.WRONG, "diskSpaceWarningLevelRatio"),
    ],
)
def test_a_disk_that_a_broker_would_refuse_is_a_problem_although_there_is_room(
    used_gib: int, verdict: Verdict, setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = Usage(1000 * 1024**3, 10 * used_gib * 1024**3, 10 * (100 - used_gib) * 1024**3)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage)
    finding = checks_here.check_disk(tmp_path)
    assert finding.verdict is verdict
    assert setting in finding.advice


def test_few_open_files_are_doubtful_with_the_command_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 524_288))
    finding = checks_here.check_file_limit()
    assert finding.verdict is Verdict.DOUBTFUL
    assert "ulimit -n 65536" in finding.advice
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert checks_here.check_file_limit().verdict is Verdict.GOOD


def test_a_port_is_free_or_used_by_somebody() -> None:
    assert checks_here.check_port("broker", free_port()).verdict is Verdict.GOOD
    with socket.create_server(("127.0.0.1", 0)) as taken:
        finding = checks_here.check_port("broker", taken.getsockname()[1])
    assert finding.verdict is Verdict.WRONG
    assert "ss -ltnp" in finding.advice


def test_a_clock_that_was_never_set_is_a_problem() -> None:
    assert checks_here.check_clock(0).verdict is Verdict.WRONG
    assert checks_here.check_clock(1_800_000_000_000).verdict is Verdict.GOOD


def test_modules_that_are_not_compiled_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_here, "PURE", False)
    monkeypatch.setattr(checks_here, "describe", lambda: {"bolide.wire._frame": "python"})
    findings = {finding.check: finding for finding in checks_here.check_python()}
    assert findings["python"].verdict is Verdict.GOOD
    assert findings["modules"].verdict is Verdict.DOUBTFUL
    assert "bolide.wire._frame" in findings["modules"].text
