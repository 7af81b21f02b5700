"""Filters of Spark: what spares a read something is taken, and never more than the filter leaves out."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from bolide.model.offsets import MessageQueue
from bolide.pipeline.filtering_reader import FilteringReader
from bolide.pipeline.filters import TIME_SLACK_MS, push
from bolide.pipeline.options import parse_options
from bolide.pipeline.pushed import Pushed
from bolide.pipeline.schema import whole_schema

NEEDED = {"nameserver": "h:1", "subscribe": "orders"}
NOON_MS = 1_700_000_000_000
NOON = datetime.fromtimestamp(NOON_MS / 1000, UTC)


def pushed(*filters: Filter, **options: str) -> Pushed:
    return push(filters, parse_options(NEEDED | options))


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        ([EqualTo(("queueId",), 3)], {"queue": frozenset({3})}),
        ([EqualNullSafe(("partition",), 3)], {"queue": frozenset({3})}),
        ([In(("queueId",), (1, 2)), In(("queueId",), (2, 3))], {"queue": frozenset({2})}),
        (
            [EqualTo(("topic",), "a"), EqualTo(("brokerName",), "b")],
            {"topic": frozenset("a"), "broker": frozenset("b")},
        ),
        ([EqualTo(("queueOffset",), 5)], {"offset_min": 5, "offset_max": 5}),
        ([GreaterThanOrEqual(("offset",), 5), LessThan(("offset",), 9)], {"offset_min": 5, "offset_max": 9}),
        ([GreaterThan(("queueOffset",), 5), GreaterThan(("queueOffset",), 3)], {"offset_min": 5}),
        ([GreaterThan(("storeTimestamp",), NOON)], {"time_min_ms": NOON_MS - TIME_SLACK_MS}),
        ([LessThanOrEqual(("timestamp",), NOON)], {"time_max_ms": NOON_MS + TIME_SLACK_MS}),
        ([In(("tags",), ("paid", "open"))], {"tags": frozenset({"paid", "open"})}),
    ],
)
def test_what_is_taken(filters: list[Filter], left: dict[str, Any]) -> None:
    assert pushed(*filters) == Pushed(**left)


@pytest.mark.parametrize(
    "one",
    [
        Not(EqualTo(("queueId",), 3)),
        IsNotNull(("queueId",)),
        EqualTo(("queueId",), None),
        EqualTo(("queueId",), "3"),
        EqualTo(("queueId",), True),
        In(("topic",), ("a", None)),
        StringStartsWith(("topic",), "a"),
        EqualTo(("body",), b"x"),
        EqualTo(("properties", "queueId"), 3),
        GreaterThan(("bornTimestamp",), NOON),
        GreaterThan(("storeTimestamp",), "noon"),
        In(("queueOffset",), (1, 2)),
        EqualTo(("tags",), "a || b"),
        EqualTo(("tags",), "*"),
        EqualTo(("tags",), " paid"),
        EqualTo(("tags",), ""),
        In(("tags",), tuple(map(str, range(1000)))),
    ],
)
def test_what_is_left_to_spark(one: Filter) -> None:
    assert pushed(one) == Pushed()


def test_tags_of_the_user_are_not_replaced() -> None:
    assert pushed(EqualTo(("tags",), "paid"), tags="open") == Pushed()
    assert pushed(EqualTo(("tags",), "paid"), sql="a = 1") == Pushed()


def test_queues_that_no_row_can_come_from_are_left_out() -> None:
    left = Pushed(topic=frozenset("t"), queue=frozenset({1}))
    assert left.has(MessageQueue("t", "b", 1))
    assert not left.has(MessageQueue("t", "b", 2))
    assert not left.has(MessageQueue("u", "b", 1))
    assert not Pushed(broker=frozenset()).has(MessageQueue("t", "b", 1))


def test_spark_checks_every_filter_again() -> None:
    reader = FilteringReader(parse_options(NEEDED), whole_schema())
    filters = [EqualTo(("tags",), "paid"), EqualTo(("queueId",), 1), EqualTo(("body",), b"x")]
    assert list(reader.pushFilters(list(filters))) == filters
