"""A Delta table as a sink has every row once, wherever the driver dies, and needs no Spark to be read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from bolide.model.errors import ConfigError
from bolide.net.clock import SystemClock
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.delta_sink import DeltaSink
from bolide.pipeline.declared.files import load
from bolide.pipeline.declared.run import run
from tests.peers.waiting import PATIENCE_SECONDS
from tests.pipeline import delta_run

pytestmark = pytest.mark.needs("java")

ROOT = Path(__file__).parents[2]
CITIES = ("Köln", "a/b: c%", "x.parquet", None)
"""Folders are named after them."""


def city(number: int) -> str | None:
    return CITIES[number % len(CITIES)]


def rows(spark: SparkSession, numbers: range) -> DataFrame:
    return spark.createDataFrame([(number, city(number)) for number in numbers], "id long, city string")


def held(folder: Path) -> list[tuple[int, str | None]]:
    """What the table says that it has, read by its own library."""
    found = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    return sorted((row["id"], row["city"]) for row in found)


def expected(numbers: range) -> list[tuple[int, str | None]]:
    return [(number, city(number)) for number in numbers]


class Died(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("deadly", ["stage", "name", "move", "commit", "committed"])
def test_a_batch_that_is_repeated_is_there_once_whatever_step_was_the_last(
    deadly: str, spark: SparkSession, tmp_path: Path
) -> None:
    def die(step: str) -> None:
        if step == deadly:
            raise Died

    now_ms = SystemClock().now_ms
    sink, dying = DeltaSink(tmp_path, now_ms, ["city"]), DeltaSink(tmp_path, now_ms, ["city"], die)
    sink.write(rows(spark, range(6)), "query", 0)
    with pytest.raises(Died):
        dying.write(rows(spark, range(6, 12)), "query", 1)
    sink.write(rows(spark, range(6, 12)), "query", 1)
    sink.write(rows(spark, range(6, 12)), "query", 1)
    assert held(tmp_path) == expected(range(12))
    assert DeltaTable(str(tmp_path)).version() == 1
    assert not list(tmp_path.glob("_staging/*"))


def test_queries_that_write_one_table_count_their_own_batches(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink(tmp_path, SystemClock().now_ms)
    for query, numbers in (("one", range(3)), ("two", range(3, 6)), ("one", range(9))):
        sink.write(rows(spark, numbers), query, 0)
    assert held(tmp_path) == expected(range(6))


def test_other_columns_and_partitions_than_the_table_has_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    now_ms = SystemClock().now_ms
    DeltaSink(tmp_path, now_ms, ["city"]).write(rows(spark, range(3)), "q", 0)
    with pytest.raises(ConfigError, match="has other columns than what is written to it: city, town"):
        DeltaSink(tmp_path, now_ms).write(rows(spark, range(3)).withColumnRenamed("city", "town"), "q", 1)
    with pytest.raises(ConfigError, match="is partitioned by city"):
        DeltaSink(tmp_path, now_ms).write(rows(spark, range(3)), "q", 1)
    assert held(tmp_path) == expected(range(3))


def test_a_declared_pipeline_writes_a_table_and_goes_on_with_it(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(
        'checkpoint: cp\nsources: {rows: {format: json, path: in, schema: "id long, city string"}}\n'
        "sinks: {table: {from: rows, format: delta, path: table, partition_by: [city]}}\n"
    )
    (tmp_path / "in").mkdir()
    for number in range(2):
        give(tmp_path, range(3 * number, 3 * number + 3))
        loaded = load(file)
        assert loaded.problems == []
        assert loaded.definition is not None
        run(
            loaded.definition,
            spark,
            Checkpoint.of(loaded.definition),
            now_ms=SystemClock().now_ms,
            once=True,
        )
    assert held(tmp_path / "table") == expected(range(6))
    assert DeltaTable(str(tmp_path / "table")).version() == 1


def give(folder: Path, numbers: range) -> None:
    """A file of its own, there at once."""
    lines = [json.dumps({"id": number, "city": city(number)}) for number in numbers]
    file = folder / "in" / f"{numbers.start:04}.json"
    file.with_suffix(".new").write_text("\n".join(lines))
    file.with_suffix(".new").rename(file)


@pytest.mark.parametrize("deadly", ["commit", "committed"])
def test_a_driver_that_is_killed_around_the_commit_costs_no_row_and_doubles_none(
    deadly: str, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for start in range(0, 9, 3):
        give(tmp_path, range(start, start + 3))
    died = stream(tmp_path, deadly, 2)
    assert died.returncode < 0, died.stderr
    assert len(held(tmp_path / "table")) == (3 if deadly == "commit" else 6)
    done = stream(tmp_path, "none", 1)
    assert done.returncode == 0, done.stderr
    assert held(tmp_path / "table") == expected(range(9))


def stream(folder: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(delta_run.__file__), str(folder), *map(str, words)],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        },
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_SECONDS,
        check=False,
    )
