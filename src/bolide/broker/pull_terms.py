"""On what terms a pull is served: may this group read this queue, which messages of it, how many, and how long does it
wait when there are none?"""

from typing import NamedTuple

from bolide.broker.failures import group_for
from bolide.broker.state import BrokerState
from bolide.model.errors import (
    InvalidRequest,
    PermissionDenied,
    RequestError,
    SubscriptionMissing,
    SubscriptionOutdated,
)
from bolide.model.filter import Filter
from bolide.model.limit import KIB
from bolide.model.limits import HOLD_MS_MAX, PULL_BULK_BYTES_MAX, PULL_BULK_MESSAGES_MAX
from bolide.model.topic import TAG, GroupConfig, Subscription, TopicConfig
from bolide.net.link import Link
from bolide.rules.filters import SQL, filter_of
from bolide.store.reading import PullLimits
from bolide.wire.bodies.group import MessageModel
from bolide.wire.headers.pull import PullFlag, PullRequest

CROWDED_BYTES = 256 * KIB
"""What a pull brings while many answers wait to be read, however much it asks for."""


class PullTerms(NamedTuple):
    filter: Filter
    limits: PullLimits
    wait_ms: int
    """0 for a pull that is answered at once, whatever it finds."""


def pull_terms(state: BrokerState, link: Link, header: PullRequest, *, of_writer: bool = False) -> PullTerms:
    """The terms; an error says why there are none.  `of_writer`: see `is_of_writer`."""
    config = state.settings.now
    if not config.readable:
        raise PermissionDenied(f"the broker {config.broker_name} may not be read now")
    group = group_for(state, link, header.consumer_group)
    if not group.consume_enable:
        raise PermissionDenied(f"the group {group.name} may not consume")
    topic = state.topics.require(header.topic)
    if not of_writer:
        _check_readable(topic, header.queue_id)
    if header.sys_flag & PullFlag.SUBSCRIPTION:
        kind = header.expression_type or TAG
        subscription = Subscription.parse(header.topic, header.subscription, header.sub_version, kind)
    else:
        subscription = _known_subscription(state, header, group)
    return PullTerms(wanted_by(state, subscription), _limits(state, header), _wait_ms(state, header))


def is_of_writer(state: BrokerState, link: Link, header: PullRequest) -> bool:
    """Whether this is a bulk writer that looks for what it has stored of a part already (`broker/handlers/write.py`).

    It belongs to the write: that its messages lie where consumers may not read, or not any more, keeps nobody from
    storing them once.
    """
    return (
        header.bulk
        and state.writers.is_beginning(link, header.topic)
        and state.store.queues.find(header.topic, header.queue_id) is not None
    )


def _check_readable(topic: TopicConfig, queue_id: int) -> None:
    if not topic.readable:
        raise PermissionDenied(f"the topic {topic.name} may not be read")
    if not 0 <= queue_id < topic.read_queues:
        raise InvalidRequest(
            f"queue {queue_id} cannot be read: the topic {topic.name} has {topic.read_queues} read queues"
        )


def bearable(link: Link, limits: PullLimits) -> PullLimits:
    """How much a pull may bring now: while many answers wait to be read, less to who reads whole topics."""
    if limits.hot_bytes <= CROWDED_BYTES or not link.account.is_crowded:
        return limits
    return limits._replace(hot_bytes=CROWDED_BYTES, cold_bytes=min(limits.cold_bytes, CROWDED_BYTES))


def wanted_by(state: BrokerState, subscription: Subscription) -> Filter:
    """The filter of a subscription, if this broker honours it."""
    if subscription.expression_type == SQL and not state.settings.now.property_filter:
        raise RequestError("this broker takes no SQL expressions (enablePropertyFilter=false)")
    return filter_of(subscription)


def _known_subscription(state: BrokerState, header: PullRequest, group: GroupConfig) -> Subscription:
    members = state.clients.group(group.name)
    if members is None:
        raise SubscriptionMissing(f"no member of the group {group.name} is connected")
    if members.message_model is MessageModel.BROADCASTING and not group.consume_broadcast_enable:
        raise PermissionDenied(f"the group {group.name} may not consume by broadcasting")
    subscription = members.subscriptions.get(header.topic)
    if subscription is None:
        raise SubscriptionMissing(f"the group {group.name} does not subscribe to {header.topic}")
    if subscription.version < header.sub_version:
        raise SubscriptionOutdated(
            f"the subscription of {group.name} to {header.topic} is older than the pull's"
        )
    return subscription


def _limits(state: BrokerState, header: PullRequest) -> PullLimits:
    """The original's limits; readers of whole topics (Spark) may ask for more with `bulk`.

    Who asks for no message gets one, as from the original: the Go client's polling lives by that.
    """
    wanted = max(1, header.max_msg_nums)
    if header.bulk:
        size = min(header.max_msg_bytes or PULL_BULK_BYTES_MAX, PULL_BULK_BYTES_MAX)
        count = min(wanted, PULL_BULK_MESSAGES_MAX)
        return PullLimits(count, size, count, size, hot_bytes_behind=0)
    config = state.settings.now
    return PullLimits(
        hot_count=min(wanted, config.hot_count_max),
        hot_bytes=min(header.max_msg_bytes or config.hot_bytes_max, config.hot_bytes_max),
        cold_count=min(wanted, config.cold_count_max),
        cold_bytes=min(header.max_msg_bytes or config.cold_bytes_max, config.cold_bytes_max),
        hot_bytes_behind=state.recent_bytes,
    )


def _wait_ms(state: BrokerState, header: PullRequest) -> int:
    if not header.sys_flag & PullFlag.SUSPEND:
        return 0
    config = state.settings.now
    if not config.long_polling:
        return config.short_polling_ms
    # Clients give a pull up after 30 s, so it must be answered before, whatever it asks for.
    return max(0, min(header.suspend_timeout_millis, HOLD_MS_MAX))
