"""From a subscription to the filter that a queue is read with; the one place that knows which kinds there are."""

from functools import lru_cache

from bolide.model.errors import RequestError
from bolide.model.filter import Filter
from bolide.model.topic import TAG, Subscription
from bolide.rules.sql.judge import Judge

SQL = "SQL92"
JUDGES_KEPT, KEPT_LENGTH_MAX = 64, 4096
"""So many expressions, none longer than that, are not parsed again for each pull."""
BYTES_PER_CHARACTER = 20
"""What a judge takes at most: a list of the shortest texts."""


def filter_of(subscription: Subscription) -> Filter:
    """What a subscription wants; `RequestError` for a kind of expression that cannot be honoured."""
    if subscription.expression_type == TAG:
        return subscription.filter
    if subscription.expression_type == SQL:
        is_long = len(subscription.expression) > KEPT_LENGTH_MAX
        return (_sql_filter if is_long else _kept_sql_filter)(subscription.expression)
    raise RequestError(
        f"messages are filtered by {TAG} or {SQL} here, not by {subscription.expression_type[:32]!r}"
    )


def _sql_filter(expression: str) -> Filter:
    return Filter(examine=Judge(expression), examine_bytes=BYTES_PER_CHARACTER * len(expression))


_kept_sql_filter = lru_cache(JUDGES_KEPT)(_sql_filter)
