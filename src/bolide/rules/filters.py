"""From a subscription to the filter that a queue is read with; the one place that knows which kinds there are."""

from bolide.model.errors import RequestError
from bolide.model.filter import Filter
from bolide.model.topic import TAG, Subscription


def filter_of(subscription: Subscription) -> Filter:
    """What a subscription wants; `RequestError` for a kind of expression that cannot be honoured."""
    if subscription.expression_type != TAG:
        raise RequestError(f"this broker filters by tag only, not by {subscription.expression_type[:32]}")
    return subscription.filter
