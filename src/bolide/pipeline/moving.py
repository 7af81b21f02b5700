"""What of an SQL condition is not the same each time that Spark looks: clocks, and what is made by chance.

A condition is asked by several queries, or by one query again.  Where it says yes at one time and no at another, a row
may be in none of the places that it should be in one of.

Which expressions are clocks is what Spark itself says: those that its rule replaces by what the time is now.  A text
that becomes a time is one where it does not begin with a year: `now`, and `10:30`, which is that of today.  In a
literal (`timestamp'now'`) it has become a time before anybody can see it; there it is looked at as it is written.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

NO_CLOCKS = {"CurrentTimeZone"}
"""What Spark replaces together with clocks; a session has one."""

_STILL = r"[\x00-\x20]*(?:[+-]?[0-9]{4}|epoch)"
"""How texts begin that mean the same time whenever Spark reads them."""

_GAP = r"(?:\s|/\*(?:(?!/\*|\*/).)*\*/|--[^\\\r\n]*[\r\n])*"
"""Between a type and its text: blanks, and comments without comments in them."""

_STILL_TEXT = re.compile(_STILL, re.IGNORECASE)
_STILL_LITERAL = re.compile(rf"\w+{_GAP}r?['\"]{_STILL}", re.IGNORECASE | re.DOTALL)

TEXTS, TIMES = "string", ("date", "timestamp")
"""How the names of their types begin."""


def moving_parts(filtered: DataFrame, written: str) -> list[str]:
    """What moves in the condition by which a frame was filtered last; `written` is its SQL."""
    return list(dict.fromkeys((*_moving_literals(filtered, written), *_moving_expressions(filtered))))


def asks_another_query(filtered: DataFrame) -> bool:
    """Whether that condition has a subquery: what moves in it, and what its tables have, is in plans of their own."""
    expressions = _catalyst(filtered).expressions
    return bool(expressions.SubqueryExpression.hasSubquery(_condition(_analyzed(filtered))))


def _catalyst(frame: DataFrame) -> Any:
    return cast(Any, frame.sparkSession)._jvm.org.apache.spark.sql.catalyst


def _analyzed(frame: DataFrame) -> Any:
    return cast(Any, frame)._jdf.queryExecution().analyzed()


def _condition(plan: Any) -> Any:
    while plan.getClass().getSimpleName() != "Filter":  # what Spark adds above it for columns that are hidden
        plan = plan.children().apply(0)
    return plan.condition()


def _moving_literals(frame: DataFrame, written: str) -> Iterator[str]:
    session = cast(Any, frame.sparkSession)._jsparkSession
    for leaf in _all(session.sessionState().sqlParser().parseExpression(written).collectLeaves()):
        if _kind(leaf) == "Literal" and _type(leaf).startswith(TIMES):
            origin = leaf.origin()
            text = written[origin.startIndex().get() : origin.stopIndex().get() + 1]
            if not _STILL_LITERAL.match(text):
                yield text


def _moving_expressions(frame: DataFrame) -> Iterator[str]:
    rules = _catalyst(frame).optimizer
    plain = rules.ReplaceExpressions.apply(_analyzed(frame))  # `to_timestamp` and its like as what they do
    yield from _moving(_condition(plain), _condition(rules.ComputeCurrentTime.apply(plain)))


def _moving(expression: Any, now: Any) -> Iterator[str]:
    """Those of an expression of the JVM's; `now` is what Spark makes of it where it has clocks."""
    kind, parts = _kind(expression), _all(expression.children())
    if kind != _kind(now):
        if kind not in NO_CLOCKS:
            yield f"{expression.prettyName()}()"
        return
    if not (expression.deterministic() or any(not part.deterministic() for part in parts)):
        yield f"{expression.prettyName()}()"
    if kind == "Cast" and _type(expression).startswith(TIMES):
        text = _constant_text(parts[0])
        if text is not None and not _STILL_TEXT.match(text):
            yield repr(text)
    for part, part_now in zip(parts, _all(now.children()), strict=True):
        yield from _moving(part, part_now)


def _constant_text(expression: Any) -> str | None:
    if not (_type(expression).startswith(TEXTS) and expression.foldable()):
        return None
    try:
        text = expression.eval(None)
    except PySparkException:  # Spark says it better when it comes there
        return None
    return None if text is None else str(text)


def _kind(expression: Any) -> str:
    return str(expression.getClass().getSimpleName())


def _type(expression: Any) -> str:
    return str(expression.dataType().typeName())


def _all(found: Any) -> list[Any]:
    """Of a sequence of the JVM's."""
    return [found.apply(at) for at in range(found.size())]
