"""Messages of the largest size go through an archive in less memory than Spark takes by itself; and what is said when
even that is too little."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.waiting import PATIENCE_SECONDS
from tests.pipeline import large_rows

pytestmark = pytest.mark.needs("java")

ROOT = Path(__file__).parents[2]
MEMORY = "480m"
"""A little more than the least that Spark takes."""

ROWS = 48
"""Of a batch: 192 MiB of bodies, of which there is no room for a copy."""


def archive(folder: Path, *settings: str) -> "subprocess.CompletedProcess[str]":
    """Two batches, a compaction and a read of all, in a process of its own: what is looked at is how its JVM ends."""
    return subprocess.run(
        [sys.executable, str(large_rows.__file__), str(folder), MEMORY, str(ROWS), *settings],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        },
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_SECONDS,
        check=False,
    )


def test_messages_of_the_largest_size_are_archived_compacted_and_read_in_little_memory(
    tmp_path: Path,
) -> None:
    done = archive(tmp_path / "a")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{2 * ROWS} rows, 2 files became 1\n"


def test_a_spark_that_dies_for_want_of_memory_says_so_with_the_remedy(tmp_path: Path) -> None:
    """As many rows are unpacked together as Spark would by itself."""
    died = archive(tmp_path / "a", "spark.sql.parquet.columnarReaderBatchSize=4096")
    assert died.returncode == 1
    last = died.stderr.splitlines()[-1]
    assert last.startswith(f"SparkDied: Spark has no memory left (spark.driver.memory is {MEMORY})"), (
        died.stderr
    )
    assert "--spark spark.driver.memory=4g" in last
