"""Steps that keep state, on a real Spark: what they drop, match and forget, over batches, restarts and a hard stop."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from bolide.model.errors import ConfigError
from bolide.pipeline.declared.explain import explain
from bolide.pipeline.declared.files import load
from bolide.pipeline.declared.run import Stop, Watch
from tests.pipeline.state_stage import StateStage

pytestmark = pytest.mark.needs("java")

DEDUP = """\
    checkpoint: cp
    sources:
      orders: SOURCE orders
    steps:
      unique:
        dedup: {from: orders, by: id, within: 1 hour, time: t}
    sinks:
      out: {from: unique, path: out}
"""
JOIN = """\
    checkpoint: cp
    sources:
      orders: SOURCE orders
      payments: SOURCE payments
    steps:
      paid:
        join: {left: orders, right: payments, on: id, within: 10 minutes, time: t, type: TYPE}
    sinks:
      out: {from: paid, path: out}
"""
PAIRS = ("orders.id", "minute(orders.t)", "payments.id", "minute(payments.t)")
HOUR = 60


@pytest.fixture
def stage(tmp_path: Path, spark: SparkSession) -> StateStage:
    return StateStage(tmp_path, spark)


def test_duplicates_are_dropped_within_a_batch_across_batches_and_across_a_restart(stage: StateStage) -> None:
    stage.rows("orders", (1, 0), (1, 0), (2, 0), (None, 0), (None, 0))
    stage.rows("orders", (2, 10), (3, 10))
    stage.run(DEDUP)
    other = r"the step unique keeps state of orders by t and t, and what .* has is of orders by id and t"
    with pytest.raises(ConfigError, match=other):
        stage.run(DEDUP.replace("by: id", "by: t"))
    stage.rows("orders", (1, 59), (3, 59), (4, 59), (None, 59))
    stage.run(DEDUP.replace("1 hour", "2 hours"))  # for how long is not of what
    nothing = (None,)  # is like no other
    assert stage.out("id") == sorted([(1,), (2,), (3,), (4,), nothing, nothing, nothing], key=str)


def test_state_is_forgotten_behind_the_window_and_what_comes_too_late_is_counted(stage: StateStage) -> None:
    stage.rows("orders", *((number, 0) for number in range(50)))
    assert stage.run(DEDUP).state_rows == 50
    stage.rows("orders", (100, 3 * HOUR))
    assert stage.run(DEDUP).state_rows == 1
    stage.rows(
        "orders", (1, 3 * HOUR), (200, HOUR)
    )  # once more after the window; and before all that is known
    after = stage.run(DEDUP)
    assert after.state_rows == 2
    assert after.late == 1
    assert sorted(number for (number,) in stage.out("id")) == sorted([*range(50), 1, 100])


def test_a_join_finds_pairs_across_batches_and_a_restart_and_forgets_them_behind_the_window(
    stage: StateStage,
) -> None:
    text = JOIN.replace("TYPE", "inner")
    stage.rows("orders", (1, 0), (2, 0), (3, 0), (3, 1))
    stage.rows("payments", (1, 10), (2, 11))
    stage.run(text)
    stage.rows("payments", (3, 5))
    stage.rows("orders", (2, 20))
    stage.run(text)
    pairs = [(1, 0, 1, 10), (2, 20, 2, 11), (3, 0, 3, 5), (3, 1, 3, 5)]
    assert stage.out(*PAIRS) == pairs
    stage.rows("orders", (9, 5 * HOUR))
    stage.rows("payments", (9, 5 * HOUR))
    assert stage.run(text).state_rows == 2  # of nine; the pair that has just come
    assert stage.out(*PAIRS) == [*pairs, (9, 0, 9, 0)]


def test_a_left_join_gives_what_has_no_match_when_none_can_come_any_more(stage: StateStage) -> None:
    text = JOIN.replace("TYPE", "left")
    stage.rows("orders", (1, 0), (2, 0))
    stage.rows("payments", (1, 5), (7, 5))
    stage.run(text)
    assert stage.out(*PAIRS) == [(1, 0, 1, 5)]
    stage.rows("orders", (3, 5 * HOUR))
    stage.rows("payments", (4, 5 * HOUR))
    stage.run(text)
    assert stage.out(*PAIRS, "payments IS NULL") == [(1, 0, 1, 5, False), (2, 0, None, None, True)]


def _stop_at_once() -> dict[str, Any]:
    """Behind the first batch with rows, in the middle of whatever runs then."""
    stop = Stop()

    def ask(query: str, report: object) -> None:
        stop.ask()
        stop.ask()

    return {"once": False, "stop": stop, "watch": Watch(batch=ask)}


def test_a_stop_in_the_middle_of_a_batch_loses_and_doubles_nothing(stage: StateStage) -> None:
    dedup = f"    trigger: 10 ms\n{DEDUP}"
    for batch in range(6):
        stage.rows("orders", *((number, batch) for number in range(batch, batch + 3)))
    stage.run(dedup, **_stop_at_once())
    stage.run(dedup)
    assert [number for (number,) in stage.out("id")] == list(range(8))


def test_a_join_that_was_stopped_in_the_middle_of_a_batch_has_every_pair_once(stage: StateStage) -> None:
    text = "    trigger: 10 ms\n" + JOIN.replace("TYPE", "inner")
    for batch in range(4):
        stage.rows("orders", (batch, batch))
        stage.rows("payments", (3 - batch, batch))
    stage.run(text, **_stop_at_once())
    stage.run(text)
    assert stage.out(*PAIRS) == [(number, number, number, 3 - number) for number in range(4)]


def test_duplicates_can_be_dropped_before_a_join_which_then_waits_as_long_for_late_rows(
    stage: StateStage,
) -> None:
    text = (
        JOIN.replace("TYPE", "inner, select: 'orders.id, payments.t'")
        .replace("left: orders", "left: unique")
        .replace("orders.id, ", "unique.id, ")
        .replace(
            "    steps:\n",
            "    steps:\n      unique: {dedup: {from: orders, by: id, within: 1 hour, time: t}}\n",
        )
    )
    stage.rows("orders", (1, 0), (1, 1), (2, 2))
    stage.rows("payments", (1, 5), (2, 5))
    stage.run(text)
    assert stage.out("id", "minute(t)") == [(1, 5), (2, 5)]


def test_explain_shows_what_state_is_kept_of(stage: StateStage) -> None:
    file = stage.folder / "rows.yaml"
    for text, told in (
        (DEDUP, "dedup by id within 1 hours of t"),
        (
            JOIN.replace("TYPE", "left, late: 1h"),
            "left join on id within 10 minutes of t, at most 1 hours late",
        ),
    ):
        stage.write(text)
        definition = load(file).definition
        assert definition is not None
        *_, step, plan = explain(stage.spark, definition)
        assert step.what == told
        assert stage.folder.name in plan.plan or "only while it runs" in plan.plan


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("by: id", "by: nothing"), r"rows\.yaml:5: the step unique: .*nothing"),
        (("time: t", "time: id"), r"rows\.yaml:5: the step unique: .*id"),
    ],
)
def test_columns_that_are_not_there_are_told_with_the_place_in_the_file(
    stage: StateStage, change: tuple[str, str], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        stage.run(DEDUP.replace(*change))
