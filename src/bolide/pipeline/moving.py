"""What of an SQL condition is not the same each time that Spark looks: clocks, and what is made by chance.

A condition is asked by several queries, or by one query again.  Where it says yes at one time and no at another, a row
may be in none of the places that it should be in one of.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from pyspark.sql import DataFrame

MOVING = {"Now", "CurrentTimestamp", "CurrentDate", "CurrentTime", "LocalTimestamp"}
"""Spark's expressions that have one value in a query, and another in the next."""

MOVING_WORDS = {"now", "today", "tomorrow", "yesterday"}
"""Texts that Spark reads as such a time, of a literal before anybody can see it."""

_TIME = rf"\s*(?:{'|'.join(sorted(MOVING_WORDS))})(?:\s[^'\"#]*)?"
"""With the name of a zone, if it has one; columns have a # there."""

_MOVING_TIME = re.compile(_TIME, re.IGNORECASE)
_MOVING_LITERAL = re.compile(rf"\b(?:date|timestamp\w*)\s*r?(?:'{_TIME}'|\"{_TIME}\")", re.IGNORECASE)


def moving_parts(filtered: DataFrame, written: str) -> list[str]:
    """What moves in the condition by which a frame was filtered last; `written` is its SQL."""
    literals = (found[0] for found in _MOVING_LITERAL.finditer(written))
    return list(dict.fromkeys((*literals, *_moving(_condition(filtered)))))


def asks_another_query(filtered: DataFrame) -> bool:
    """Whether that condition has a subquery: what moves in it, and what its tables have, is in plans of their own."""
    expressions = cast(Any, filtered.sparkSession)._jvm.org.apache.spark.sql.catalyst.expressions
    return bool(expressions.SubqueryExpression.hasSubquery(_condition(filtered)))


def _condition(filtered: DataFrame) -> Any:
    plan = cast(Any, filtered)._jdf.queryExecution().analyzed()
    while plan.getClass().getSimpleName() != "Filter":  # what Spark adds above it for columns that are hidden
        plan = plan.children().apply(0)
    return plan.condition()


def _moving(expression: Any) -> Iterator[str]:
    """Those of an expression of the JVM's."""
    kind, children = expression.getClass().getSimpleName(), expression.children()
    parts = [children.apply(at) for at in range(children.size())]
    if kind in MOVING or not (expression.deterministic() or any(not part.deterministic() for part in parts)):
        yield f"{expression.prettyName()}()"
    if kind == "Cast" and _MOVING_TIME.fullmatch(parts[0].toString()):
        yield repr(parts[0].toString())
    for part in parts:
        yield from _moving(part)
