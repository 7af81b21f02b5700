"""What `check` says about steps that drop duplicates and join streams, without Spark."""

from pathlib import Path

import pytest

from bolide.pipeline.declared.definition import Dedup, Join, JoinType
from tests.unit.pipeline.declared.stage import loaded, problems

SOUND = """\
    nameserver: 127.0.0.1:9876
    sources:
      orders: {topic: orders}
      payments: {topic: payments}
    steps:
      unique:
        dedup: {from: orders, by: key, within: 1 hour}
      paid:
        join: {left: unique, right: payments, on: key, within: 10m, type: left}
    sinks:
      out: {from: paid, path: out}
"""


def test_both_kinds_are_read_with_their_defaults(tmp_path: Path) -> None:
    found = loaded(tmp_path, SOUND)
    assert found.problems == []
    assert found.definition is not None
    unique, paid = found.definition.steps["unique"], found.definition.steps["paid"]
    assert unique.work == Dedup(by="key", within="1 hours", late=None, time="storeTimestamp")
    assert unique.inputs == ["orders"]
    assert paid.work == Join(
        on="key",
        within="10 minutes",
        late=None,
        times=("storeTimestamp", "storeTimestamp"),
        type=JoinType.LEFT,
        select=None,
    )
    assert paid.inputs == ["unique", "payments"]


def test_the_python_form_says_the_same(tmp_path: Path) -> None:
    text = """\
        from bolide.pipeline import Pipeline

        pipeline = Pipeline("pipeline", nameserver="127.0.0.1:9876")
        pipeline.source("orders", topic="orders")
        pipeline.source("payments", topic="payments")
        pipeline.dedup("unique", "orders", by="key", within="1 hour")
        pipeline.join("paid", "unique", "payments", on="key", within="10m", type="left", expect={"a": "true"})
        pipeline.sink("out", "paid", path="out")
    """
    found = loaded(tmp_path, text, "pipeline.py")
    assert found.problems == []
    said, written = found.definition, loaded(tmp_path, SOUND).definition
    assert said is not None
    assert written is not None
    assert [step.work for step in said.steps.values()] == [step.work for step in written.steps.values()]
    assert [one.name for one in said.steps["paid"].expectations] == ["a"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("by: key, ", ""), "7: dedup of the step unique needs by, as in by: id"),
        ((", within: 1 hour", ""), "7: dedup of the step unique needs within, as in within: 1 hour"),
        (("1 hour", "soon"), "7: within: 'soon' is no time; 10 minutes is one"),
        (("1 hour", "0s"), "6: the step unique: within is no time at all; 10 minutes is one"),
        (
            ("1 hour", "1 hour, late: 1 minute"),
            "6: the step unique: late is 1 minutes, and is within or longer",
        ),
        (("by: key", "bye: key"), "7: dedup of the step unique has no key 'bye': did you mean by?"),
        (
            ("{from: orders, by: key, within: 1 hour}", "orders"),
            "7: dedup of the step unique is keys and values (",
        ),
        (("from: orders", "from: [orders, payments]"), "7: dedup of the step unique has one input, not 2"),
        (("from: orders", "from: ordres"), "6: the step unique reads ordres, and there is no such source"),
        (("right: payments, ", ""), "9: join of the step paid needs right, as in right: payments"),
        (("type: left", "type: outer"), "9: type is one of inner, left, not 'outer'"),
        (("type: left", "time: [a, b, c]"), "9: time is one column, or one of left and one of right"),
        (("right: payments", "right: Unique"), "8: the step paid joins unique with itself"),
        (
            ("payments: {topic: payments}", "payments: {path: p, batch: true}"),
            "8: the step paid keeps state of streams, and payments is a table (batch: true): join it in a step",
        ),
        (
            ("orders: {topic: orders}", "orders: {path: p, batch: true}"),
            "6: the step unique keeps state of streams, and orders is a table (batch: true): SELECT DISTINCT",
        ),
        (
            ("path: out", "format: console, output: update"),
            "11: the sink out has output: update, and the step paid behind it gives rows once and for all",
        ),
        (
            ("{topic: orders}", "{topic: orders, watermark: {column: storeTimestamp, delay: 5m}}"),
            "6: the step unique has rows up to 1 hours late by storeTimestamp, and the source orders behind it"
            " 5 minutes by storeTimestamp",
        ),
        (
            ("type: left", "late: 2h"),
            "8: the step paid has rows up to 2 hours late by storeTimestamp, and the step unique behind it 1 hours",
        ),
        (
            ("within: 1 hour}", "within: 1 hour}\n        watermark: {column: a, delay: 1m}"),
            "8: the step unique has its watermark from within and late",
        ),
        (
            ("within: 1 hour}", "within: 1 hour}\n        from: orders"),
            "8: what the step unique reads stands inside of dedup",
        ),
        (
            ("    sinks:", "      again: {dedup: {from: paid, by: id, within: 1h}}\n    sinks:"),
            "10: the step again keeps state of rows of paid, which keeps state itself",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    assert change[0] in SOUND
    found = problems(tmp_path, SOUND.replace(*change))
    assert any(one.startswith(told) for one in found), found


def test_a_watermark_that_says_the_same_is_taken(tmp_path: Path) -> None:
    same = "{topic: orders, watermark: {column: storetimestamp, delay: 60 minutes}}"
    assert problems(tmp_path, SOUND.replace("{topic: orders}", same)) == []


QUARANTINE = "expect: {good: {condition: tags IS NOT NULL, action: quarantine}}"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            ("within: 1 hour}", f"within: 1 hour}}\n        {QUARANTINE}"),
            "8: the expectation good puts rows of the step unique aside, which keeps state:",
        ),
        (
            ("type: left}", f"type: left}}\n        {QUARANTINE}"),
            "10: the expectation good puts rows of the step paid aside, which keeps state:",
        ),
        (
            (
                "    sinks:",
                f"      later:\n        sql: SELECT * FROM unique\n        {QUARANTINE}\n    sinks:",
            ),
            "12: the expectation good puts rows of the step later aside, and unique behind it keeps state:",
        ),
        (
            (
                "    sinks:",
                "      counted: {state: s.py:S, from: orders, key: key, schema: n int,\n"
                f"        {QUARANTINE}}}\n    sinks:",
            ),
            "11: the expectation good puts rows of the step counted aside, which keeps state:",
        ),
    ],
    ids=["dedup", "join", "behind one", "state"],
)
def test_no_row_is_put_aside_where_two_queries_would_each_keep_their_own_state(
    tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    text = SOUND.replace(*change) + "    quarantine: {path: bad}\n"
    found = problems(tmp_path, text)
    assert [one for one in found if one.startswith(told) and "expect it of the source" in one], found


def test_rows_are_put_aside_before_state_is_kept(tmp_path: Path) -> None:
    text = SOUND.replace("{topic: orders}", f"{{topic: orders, {QUARANTINE}}}")
    assert problems(tmp_path, text + "    quarantine: {path: bad}\n") == []


@pytest.mark.parametrize("action", ["warn", "drop", "fail"])
def test_other_expectations_of_a_step_with_state_are_taken(tmp_path: Path, action: str) -> None:
    expected = QUARANTINE.replace("action: quarantine", f"action: {action}")
    text = SOUND.replace("within: 1 hour}", f"within: 1 hour}}\n        {expected}")
    assert problems(tmp_path, text) == []
