"""Declared pipelines on a real Spark: what comes out of their sinks, of their quarantines, and after a restart.

Files are the sources here, so that batches are what the test says; topics are in `test_declared_topics.py`.
"""

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bolide.model.errors import ConfigError
from bolide.net.clock import SystemClock
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.explain import explain
from bolide.pipeline.declared.files import load
from bolide.pipeline.declared.progress import QueryProgress, unmet_of_all
from bolide.pipeline.declared.run import PipelineFailed, Stop, Watch, run
from bolide.pipeline.declared.status import pipeline_status
from tests.pipeline.conftest import Bolide

pytestmark = pytest.mark.needs("java")

ROWS = """\
    name: rows
    checkpoint: cp
    sources:
      rows: {format: json, path: in, schema: "id long, amount double"}
"""


class Pipeline:
    """A definition in a folder of its own, run on the session of all tests."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark = folder, spark
        (folder / "in").mkdir()

    def rows(self, name: str, *rows: tuple[int | None, float]) -> None:
        """A file that is there at once or not at all."""
        lines = [json.dumps({"id": number, "amount": amount}) for number, amount in rows]
        new = self.folder / f"{name}.new"
        new.write_text("\n".join(lines) + "\n")
        new.rename(self.folder / "in" / f"{name}.json")

    def run(self, text: str, *, file: str = "rows.yaml", **how: Any) -> Sequence[QueryProgress]:
        path = self.folder / file
        path.write_text(dedent(text))
        loaded = load(path)
        assert loaded.errors == []
        assert loaded.definition is not None
        self.definition = loaded.definition
        checkpoint = Checkpoint.of(loaded.definition)
        return run(
            loaded.definition, self.spark, checkpoint, now_ms=SystemClock().now_ms, **{"once": True, **how}
        )

    def parquet(self, place: str) -> list[dict[str, Any]]:
        frame = self.spark.read.parquet(str(self.folder / place))
        return sorted((row.asDict() for row in frame.collect()), key=lambda row: row.get("id") or 0)


@pytest.fixture
def pipeline(tmp_path: Path, spark: SparkSession) -> Pipeline:
    return Pipeline(tmp_path, spark)


def test_rows_go_through_sql_python_and_a_join_into_sinks_and_a_restart_goes_on(pipeline: Pipeline) -> None:
    (pipeline.folder / "steps.py").write_text(
        dedent("""\
            from pyspark.sql import functions as F
            from pyspark.sql.types import LongType

            def helper(number):
                return number * 2

            double = F.udf(lambda number: helper(number), LongType(), useArrow=False)

            def twice(frame):
                return frame.withColumn("twice", double("id"))
            """)
    )
    names = pipeline.folder / "names"
    pipeline.spark.createDataFrame([(2, "two"), (4, "four")], "id long, name string").write.json(str(names))
    text = (
        ROWS.replace("sources:", "sources:\n      names: {format: json, path: names, batch: true}")
        + """\
    steps:
      twice: {python: "steps.py:twice", from: large}   # reads what is declared below it
      large: {sql: "SELECT rows.id, name FROM rows JOIN names ON rows.id = names.id WHERE amount >= 10"}
    sinks:
      archive: {from: twice, path: out}
      all: {from: rows, path: all, format: json}
    """
    )
    pipeline.rows("a", (1, 5), (2, 10), (3, 20))
    first = {query.name: query for query in pipeline.run(text)}
    assert pipeline.parquet("out") == [{"id": 2, "name": "two", "twice": 4}]
    assert first["all"].rows == 3
    pipeline.rows("b", (4, 40))
    again = {query.name: query for query in pipeline.run(text)}
    assert again["all"].rows == 1
    assert [row["id"] for row in pipeline.parquet("out")] == [2, 4]
    assert pipeline.spark.read.json(str(pipeline.folder / "all")).count() == 4


EXPECTING = (
    ROWS
    + """\
    steps:
      checked:
        sql: SELECT * FROM rows
        expect:
          odd: id % 2 = 1
          has_id: {condition: id IS NOT NULL, action: drop}
          positive: {condition: amount > 0, action: quarantine}
          small: {condition: amount < 100, action: quarantine}
    sinks:
      good: {from: checked, path: good}
    quarantine: {path: bad}
    """
)


def test_what_is_not_as_expected_is_counted_dropped_or_put_aside_with_its_reasons(pipeline: Pipeline) -> None:
    pipeline.rows("a", (1, 1), (2, 2), (3, -3), (4, 400), (None, 5), (6, -6))
    queries = pipeline.run(EXPECTING)
    assert [row["id"] for row in pipeline.parquet("good")] == [1, 2]
    put_aside = [(3, ["positive"]), (4, ["odd", "small"]), (6, ["odd", "positive"])]
    assert [(row["id"], row["_failed"]) for row in pipeline.parquet("bad/checked")] == put_aside
    assert unmet_of_all(queries) == {
        ("checked", "odd"): 4,  # null is not true
        ("checked", "has_id"): 1,
        ("checked", "positive"): 2,
        ("checked", "small"): 1,
    }
    pipeline.rows("b", (7, -7))
    pipeline.run(EXPECTING)
    put_aside.append((7, ["positive"]))  # and the others not again
    assert [(row["id"], row["_failed"]) for row in pipeline.parquet("bad/checked")] == put_aside
    found = asyncio.run(pipeline_status(pipeline.definition, Checkpoint.of(pipeline.definition)))
    assert found.state == "finished"
    assert [(query.name, query.done and query.done.number, query.in_hand) for query in found.queries] == [
        ("good", 1, None),
        ("quarantine.checked", 1, None),
    ]


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("id < unix_timestamp()", "current_timestamp"),
        ("amount < rand()", "rand"),
        ("id < unix_seconds(timestamp'now')", "'now'"),
        ("'id < unix_seconds(timestamp\"now\")'", '"now"'),
        ("id < unix_seconds(to_timestamp('now'))", "'now'"),
        ("id < unix_seconds(timestamp /* x */ 'now')", "'now'"),
    ],
)
def test_a_quarantine_is_not_decided_by_what_is_something_else_in_each_query(
    pipeline: Pipeline, condition: str, told: str
) -> None:
    """Sink and quarantine would each ask at a time of their own; what concerns the sink alone may ask."""
    text = EXPECTING.replace("amount > 0", condition)
    pipeline.rows("a", (1, 1), (2, 2))
    place = r"rows\.yaml:11: the expectation positive of the step checked"
    with pytest.raises(
        ConfigError, match=f"{place}: it asks for [^:]*{told}.*a row may end in neither place"
    ):
        pipeline.run(text)
    pipeline.run(text.replace(f"{condition}, action: quarantine", f"{condition}, action: drop"))


def test_a_quarantine_is_not_decided_by_the_rows_of_another_query(pipeline: Pipeline) -> None:
    """A clock in it would not be seen, and its table may have changed in between."""
    text = EXPECTING.replace(
        "amount > 0", "amount > (SELECT avg(x) FROM VALUES (1) AS t(x) WHERE now() > '2000')"
    )
    pipeline.rows("a", (1, 1))
    place = r"rows\.yaml:11: the expectation positive of the step checked"
    with pytest.raises(
        ConfigError, match=rf"{place}: it asks another query \(SELECT …\).*a row may end in neit"
    ):
        pipeline.run(text)


def test_a_clock_is_found_beside_columns_that_files_have_without_showing_them(pipeline: Pipeline) -> None:
    expected = "young: {condition: _metadata.file_modification_time < now(), action: quarantine}"
    text = EXPECTING.replace('amount double"}', f'amount double", expect: {{{expected}}}}}')
    pipeline.rows("a", (1, 1))
    with pytest.raises(ConfigError, match=r"the expectation young of the source rows: it asks for now\(\)"):
        pipeline.run(text)
    pipeline.run(text.replace("now()", "TIMESTAMP '2100-01-01 00:00:00'"))
    assert [row["id"] for row in pipeline.parquet("good")] == [1]


def test_an_expectation_that_must_hold_ends_the_run_and_nothing_of_the_batch_is_written(
    pipeline: Pipeline,
) -> None:
    text = EXPECTING.replace("action: drop", "action: fail")
    pipeline.rows("a", (1, 1), (None, 5))
    with pytest.raises(PipelineFailed, match="the expectation has_id of checked is not met: id IS NOT NULL"):
        pipeline.run(text)
    assert not list((pipeline.folder / "good").glob("*.parquet"))
    state = Checkpoint.of(pipeline.definition).read_state()
    assert state["state"] == "failed"
    assert "has_id" in state["error"]


def test_a_step_keeps_state_for_each_key_over_restarts(pipeline: Pipeline) -> None:
    pipeline.spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    (pipeline.folder / "states.py").write_text(
        dedent("""\
            from pyspark.sql import Row
            from pyspark.sql.streaming.stateful_processor import StatefulProcessor

            class Sum(StatefulProcessor):
                def init(self, handle):
                    self.total = handle.getValueState("total", "total double")

                def handleInputRows(self, key, rows, timers):
                    total = self.total.get()[0] if self.total.exists() else 0.0
                    total += sum(row.amount for row in rows)
                    self.total.update((total,))
                    yield Row(id=key[0], total=total)

                def close(self):
                    pass
            """)
    )
    text = (
        ROWS
        + """\
    steps:
      sums: {state: "states.py:Sum", from: rows, key: id, schema: "id long, total double"}
    sinks:
      sums: {from: sums, path: sums}
    """
    )
    pipeline.rows("a", (1, 1), (1, 2), (2, 5))
    pipeline.run(text)
    pipeline.rows("b", (1, 4))
    pipeline.run(text)
    assert [(row["id"], row["total"]) for row in pipeline.parquet("sums")] == [(1, 3.0), (1, 7.0), (2, 5.0)]


def test_the_python_form_runs_and_its_functions_reach_the_workers(pipeline: Pipeline) -> None:
    text = """\
        from pyspark.sql import functions as F

        from bolide.pipeline import Pipeline

        pipeline = Pipeline("rows", checkpoint="cp", quarantine={"path": "bad"})
        pipeline.source("rows", format="json", path="in", schema="id long, amount double")

        def helper(number):
            return number + 100

        @pipeline.step("rows", expect={"small": {"condition": "moved < 110", "action": "quarantine"}})
        def moved(rows):
            return rows.select(F.udf(lambda number: helper(number), "long", useArrow=False)("id").alias("moved"))

        pipeline.sink("moved", "moved", path="out")
        """
    pipeline.rows("a", (1, 1), (20, 2))
    pipeline.run(text, file="moved_rows.py")
    assert [row["moved"] for row in pipeline.parquet("out")] == [101]
    assert [row["moved"] for row in pipeline.parquet("bad/moved")] == [120]


def test_a_stop_lets_the_batch_in_hand_end_and_the_next_run_goes_on(pipeline: Pipeline) -> None:
    text = (
        ROWS.replace("schema:", "options: {maxFilesPerTrigger: 1}, schema:")
        + """\
    trigger: 10 ms
    sinks:
      out: {from: rows, path: out}
    """
    )
    for number in range(6):
        pipeline.rows(f"f{number}", (number, 1))
    stop = Stop()
    watch = Watch(batch=lambda query, report: stop.ask() if not stop.is_asked else None)
    (query,) = pipeline.run(text, once=False, stop=stop, watch=watch)
    assert 1 <= query.rows <= 6
    checkpoint = Checkpoint.of(pipeline.definition)
    assert checkpoint.read_state()["state"] == "stopped"
    assert not checkpoint.is_held()
    assert len(pipeline.parquet("out")) >= query.rows
    pipeline.run(text)
    assert [row["id"] for row in pipeline.parquet("out")] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ('{sql: "SELECT nothing FROM rows"}', r"rows\.yaml:6: the step made: .*nothing"),
        ('{sql: "SELEC id FROM rows"}', r"rows\.yaml:6: the step made: .*SELEC"),
        (
            '{sql: "SELECT id FROM rows", expect: {good: other > 1}}',
            r"rows\.yaml:6: the expectation good of the step made: .*other",
        ),
        (
            '{python: "wrong.py:fails", from: rows}',
            r"the step made: .*wrong\.py:fails ends with ZeroDivisionError",
        ),
        (
            '{python: "wrong.py:gives_none", from: rows}',
            r"gives_none returns NoneType, and a step is a DataFrame",
        ),
    ],
)
def test_what_only_spark_knows_is_told_with_the_place_in_the_file(
    pipeline: Pipeline, step: str, told: str
) -> None:
    (pipeline.folder / "wrong.py").write_text("def fails(rows): 1 / 0\ndef gives_none(rows): ...\n")
    text = f"{ROWS}    steps:\n      made: {step}\n    sinks:\n      out: {{from: made, path: out}}\n"
    with pytest.raises(ConfigError, match=told):
        pipeline.run(text)
    assert Checkpoint.of(pipeline.definition).read_state()["state"] == "failed"


def test_explain_shows_columns_and_plans_and_reads_nothing(pipeline: Pipeline) -> None:
    (pipeline.folder / "rows.yaml").write_text(dedent(EXPECTING))
    definition = load(pipeline.folder / "rows.yaml").definition
    assert definition is not None
    parts = {part.name: part for part in explain(pipeline.spark, definition)}
    assert dict(parts["checked"].columns) == {"id": "bigint", "amount": "double"}
    assert parts["checked"].inputs == ("rows",)
    assert parts["good"].plan
    assert "_failed" in parts["quarantine.checked"].columns
    assert not (pipeline.folder / "cp").exists()


def test_a_wrong_column_is_told_in_one_line_without_the_log_and_the_plan_of_spark(
    bolide: Bolide, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(logging.Logger.manager.loggerDict, "SQLQueryContextLogger", raising=False)
    (tmp_path / "in").mkdir()
    text = dedent(EXPECTING).replace("SELECT *", "SELECT id, amuont")
    (tmp_path / "rows.yaml").write_text(text)
    told, end = bolide("explain", "rows.yaml", code=2).split("\n")
    assert (told.split(":")[0], end) == ("error", "")
    assert "amuont" in told
    assert "Did you mean one of the following? [`amount`, `id`]" in told
    assert "View" not in told
