"""From a subscription to the filter that a queue is read with; the one place that knows which kinds there are."""

from functools import lru_cache

from bolide.model.errors import RequestError
from bolide.model.filter import Filter
from bolide.model.topic import TAG, Subscription
from bolide.rules.sql.judge import Judge

SQL = "SQL92"
JUDGES_KEPT = 128
"""So many expressions are not parsed again for each pull."""
BYTES_PER_CHARACTER = 20
"""What a judge takes at most: a list of the shortest texts."""


def filter_of(subscription: Subscription) -> Filter:
    """What a subscription wants; `RequestError` for a kind of expression that cannot be honoured."""
    if subscription.expression_type == TAG:
        return subscription.filter
    if subscription.expression_type == SQL:
        return _sql_filter(subscription.expression)
    raise RequestError(
        f"messages are filtered by {TAG} or {SQL} here, not by {subscription.expression_type[:32]!r}"
    )


@lru_cache(JUDGES_KEPT)
def _sql_filter(expression: str) -> Filter:
    judge = Judge(expression)
    return Filter(examine=judge, weight=judge.weight, examine_bytes=BYTES_PER_CHARACTER * len(expression))
