"""`bolide pipeline run` as users run it: a process that is told to stop, and goes on from its checkpoint."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bolide.pipeline.interrupts import STOPPED
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("java")

PIPELINE = """\
checkpoint: cp
trigger: 100 ms
sources:
  rows: {format: json, path: in, schema: id long}
sinks:
  out: {from: rows, path: out, format: json}
"""


def bolide(folder: Path, *words: str) -> "subprocess.Popen[str]":
    program = [sys.executable, "-m", "bolide.cli.main", "pipeline", *words]
    return subprocess.Popen(
        program, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def ids(folder: Path) -> list[int]:
    lines = [line for file in (folder / "out").glob("*.json") for line in file.read_text().splitlines()]
    return sorted(json.loads(line)["id"] for line in lines)


def add(folder: Path, number: int) -> None:
    new = folder / f"{number}.new"
    new.write_text(json.dumps({"id": number}) + "\n")
    new.rename(folder / "in" / f"{number}.json")


def test_sigterm_ends_a_run_in_order_and_the_next_one_goes_on(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "rows.yaml").write_text(PIPELINE)
    add(tmp_path, 1)
    running = bolide(tmp_path, "run", "rows.yaml")
    commits = tmp_path / "cp" / "queries" / "out" / "commits"
    try:
        wait_until(
            lambda: (commits / "0").exists() or running.poll() is not None,
            PATIENCE_SECONDS,
            "the first batch is done",
        )
        second = bolide(tmp_path, "run", "rows.yaml", "--once")
        told = second.communicate()[1]
        assert second.returncode == 2
        assert "this pipeline runs already" in told
        running.send_signal(signal.SIGTERM)
        told = running.communicate()[1]
        assert running.returncode == 0, told
        assert "out: 1 row in 1 batch" in told
    finally:
        running.kill()
        running.communicate()
    add(tmp_path, 2)
    again = bolide(tmp_path, "run", "rows.yaml", "--once", "--json")
    out, told = again.communicate()
    assert again.returncode == 0, told
    assert [json.loads(line)["batchId"] for line in out.splitlines()] == [1]
    assert ids(tmp_path) == [1, 2]
    status = bolide(tmp_path, "status", "rows.yaml", "--json")
    assert json.loads(status.communicate()[0])["state"] == "finished"


def test_a_terminal_that_closes_ends_a_run_in_order(tmp_path: Path) -> None:
    """The whole group hears of it, and so does who is stopped by a supervisor: Spark's JVM must not end first."""
    (tmp_path / "in").mkdir()
    (tmp_path / "rows.yaml").write_text(PIPELINE)
    add(tmp_path, 1)
    running = bolide(tmp_path, "run", "rows.yaml")
    try:
        wait_until(
            lambda: (tmp_path / "cp/queries/out/commits/0").exists() or running.poll() is not None,
            PATIENCE_SECONDS,
            "the first batch is done",
        )
        os.killpg(running.pid, signal.SIGHUP)
        told = running.communicate()[1]
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == 0, told
    assert "out: 1 row in 1 batch" in told
    assert "Traceback" not in told


JAVA = """\
#!/bin/sh
# The JVM of Spark begins with Ctrl-C for the command, which is its parent; the one before it only puts words together.
case "$*" in *launcher.Main*) ;; *) kill -INT $PPID ;; esac
exec {java} "$@"
"""


def test_ctrl_c_while_spark_starts_ends_with_one_line_and_leaves_no_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ends of the pipe are the JVM's, too: that it ends is that the JVM has."""
    real = shutil.which("java")
    assert real is not None
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(JAVA.format(java=real))
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    (tmp_path / "in").mkdir()
    (tmp_path / "rows.yaml").write_text(PIPELINE)
    running = bolide(tmp_path, "explain", "rows.yaml")
    try:
        told = running.communicate(timeout=PATIENCE_SECONDS)[1]
    except subprocess.TimeoutExpired:
        os.killpg(running.pid, signal.SIGKILL)
        raise
    assert running.returncode == 130
    assert [line for line in told.splitlines() if not line.startswith("WARNING: ")] == [STOPPED]


IN_A_JOB = """\
import os, signal, sys
from threading import Thread
from bolide.pipeline.session import session_for
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

def press() -> None:
    jobs = spark.sparkContext.statusTracker()
    wait_until(jobs.getActiveJobsIds, PATIENCE_SECONDS, "the job runs")
    os.kill(os.getpid(), signal.SIGINT)

try:
    with session_for("test", master="local[1]") as spark:
        Thread(target=press, daemon=True).start()
        spark.range(10**13).selectExpr("sum(hash(id))").collect()
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_ctrl_c_in_a_job_leaves_no_traceback_of_spark() -> None:
    """Its own handler speaks to the JVM in the middle of what is being said to it."""
    program = [sys.executable, "-c", IN_A_JOB]
    ended = subprocess.run(program, check=False, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert ended.returncode == 130, ended.stderr
    assert [line for line in ended.stderr.splitlines() if not line.startswith("WARNING: ")] == []
