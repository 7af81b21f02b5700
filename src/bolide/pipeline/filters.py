"""Spark's filters, as far as they spare a read something: queues, offsets, times and tags.

Pure.  What is found here only ever makes a read smaller than all that the filters could want; Spark holds every row
against all of them again.  So times may be taken with some slack: the clock of a broker can have been set back, by less
than that.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from bolide.client import checks
from bolide.model.errors import BolideError
from bolide.pipeline.options import ReadOptions
from bolide.pipeline.pushed import Pushed

TIME_SLACK_MS = 60_000
TAGS_MAX = 100

_COLUMNS = {
    "topic": "topic",
    "brokerName": "broker",
    "queueId": "queue",
    "partition": "queue",
    "queueOffset": "offset",
    "offset": "offset",
    "storeTimestamp": "time",
    "timestamp": "time",
    "tags": "tags",
}


def push(filters: Iterable[Filter], options: ReadOptions) -> Pushed:
    """What the filters, all of which must hold, say about where to look."""
    found: dict[str, Any] = {}
    for one in filters:
        attribute: tuple[str, ...] = getattr(one, "attribute", ())
        about = _COLUMNS.get(attribute[0]) if len(attribute) == 1 else None
        if about in ("topic", "broker", "queue", "tags"):
            values = _values(one, int if about == "queue" else str)
            if values is not None:
                found[about] = found.get(about, values) & values
        elif about in ("offset", "time"):
            _bound(one, about, found)
    if not _can_ask_for(found.get("tags"), options):
        found.pop("tags", None)
    return Pushed(**found)


def _values(one: Filter, kind: type) -> frozenset[Any] | None:
    """The values that are still possible."""
    values = (
        one.value
        if isinstance(one, In)
        else (one.value,)
        if isinstance(one, EqualTo | EqualNullSafe)
        else None
    )
    if values is None or not all(type(value) is kind for value in values):
        return None
    return frozenset(values)


def _bound(one: Filter, about: str, found: dict[str, Any]) -> None:
    if not isinstance(
        one, EqualTo | EqualNullSafe | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual
    ):
        return
    number = _number(one.value)
    if number is None:
        return
    low, high = (
        (f"{about}_min", f"{about}_max") if about == "offset" else (f"{about}_min_ms", f"{about}_max_ms")
    )
    slack = TIME_SLACK_MS if about == "time" else 0
    if not isinstance(one, LessThan | LessThanOrEqual):
        found[low] = max(found.get(low, 0), number - slack)
    if not isinstance(one, GreaterThan | GreaterThanOrEqual):
        found[high] = min(found.get(high, 2**63 - 1), number + slack)


def _number(value: object) -> int | None:
    """An offset, or a time in milliseconds."""
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return int(aware.timestamp() * 1000)
    return value if type(value) is int else None


def _can_ask_for(tags: frozenset[str] | None, options: ReadOptions) -> bool:
    """Tags become the broker's to judge, unless the user has given it something to judge already."""
    if tags is None or not tags or len(tags) > TAGS_MAX or options.wanted.leaves_out:
        return False
    try:
        checks.subscription("", " || ".join(sorted(tags)))
    except BolideError:
        return False
    return "*" not in tags and all(tag and tag == tag.strip() and "||" not in tag for tag in tags)
