"""What `make demo` runs: ends well where Java is there, and says what is missing where it is not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.py"
DEMO_SECONDS = 600


def run_demo(env: dict[str, str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, DEMO],
        capture_output=True,
        text=True,
        timeout=DEMO_SECONDS,
        check=False,
        env=env,
        cwd=folder,
    )


@pytest.mark.needs("java")
def test_it_goes_from_a_first_message_to_an_audited_archive_and_a_report_quietly(tmp_path: Path) -> None:
    done = run_demo(dict(os.environ), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3,334 messages came" in done.stdout
    assert "3,301 rows in Parquet, 3,301 messages in the topic receipts, 33 put aside" in done.stdout
    assert "13,301 messages, by day and topic" in done.stdout
    assert "yes: every queue" in done.stdout
    assert "</html>" in (tmp_path / "demo-report.html").read_text()
    assert done.stderr == ""


def test_without_java_it_says_how_to_get_one(tmp_path: Path) -> None:
    env = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    refused = run_demo({**env, "PATH": str(tmp_path)}, tmp_path)
    assert refused.returncode == 1
    assert "needs Java 17" in refused.stderr
    assert "Traceback" not in refused.stderr
