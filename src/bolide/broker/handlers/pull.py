"""Pulling: codes 11 and 361.

Two ways in.  `on_pull` takes a plain pull of a shape that was asked before: who may read what is settled, so only the
reading is left.  `pull` takes any one request, decides everything that needs deciding, and gives every error.

Every answer carries the four offsets.  A pull that finds nothing new is held if it allows that, and executed again
when a message arrives or its time is over.
"""

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from bolide.broker.handlers.offset import commit
from bolide.broker.hold import HeldPull
from bolide.model.errors import (
    BolideError,
    GroupNotFound,
    InvalidRequest,
    PermissionDenied,
    RequestError,
    StoreRefusal,
    SubscriptionMissing,
    SubscriptionOutdated,
)
from bolide.model.offsets import GroupOffset
from bolide.model.response_code import ResponseCode
from bolide.model.topic import GroupConfig, Subscription
from bolide.net.dispatch import error_answer
from bolide.net.link import Link
from bolide.store.queue_index import ENTRY_BYTES
from bolide.store.reading import WINDOW_ENTRIES, PullLimits, PullResult, PullStatus
from bolide.wire.bodies.group import MessageModel
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.frame import decode_frame, encode_found
from bolide.wire.headers.pull import PullAnswer, PullFlag, PullRequest
from bolide.wire.pull_frame import PullFrame

if TYPE_CHECKING:
    from bolide.broker.app import Broker

HOLD_MS_MAX = 25_000
"""Clients give a pull up after 30 s, so it must be answered before, whatever it asks for."""

PLANS_MAX = 65_536
"""Shapes of pulls that are remembered; others take the general path."""

SHAPE_BYTES_MAX = 2048
"""Real ones have some hundred; longer ones take the general path, too."""

READING_MAX = 4096
"""Plans that keep entries read ahead; who was served longest ago loses them, and reads them again."""

BULK_COUNT_MAX = 32_768
BULK_BYTES_MAX = 4 * 1024 * 1024

_CODES = {
    PullStatus.NO_MATCHED_MESSAGE: ResponseCode.PULL_RETRY_IMMEDIATELY,
    PullStatus.MESSAGE_WAS_REMOVING: ResponseCode.PULL_RETRY_IMMEDIATELY,
    PullStatus.OFFSET_OVERFLOW_ONE: ResponseCode.PULL_NOT_FOUND,
    PullStatus.OFFSET_FOUND_NULL: ResponseCode.PULL_NOT_FOUND,
    PullStatus.OFFSET_TOO_SMALL: ResponseCode.PULL_OFFSET_MOVED,
    PullStatus.OFFSET_OVERFLOW_BADLY: ResponseCode.PULL_OFFSET_MOVED,
}


def pull(broker: "Broker", link: Link, request: Command) -> Command | None:
    """Messages from an offset, now or when there are some."""
    header = PullRequest.decode(request.fields)
    subscription = _check(broker, header)
    if header.sys_flag & PullFlag.COMMIT_OFFSET:
        commit(broker, header.consumer_group, header.topic, header.queue_id, header.commit_offset)
    offset = GroupOffset(header.queue_offset)
    broker.offsets.note_pull(header.consumer_group, header.topic, header.queue_id, offset)
    result = _read(broker, header, subscription)
    code = _code_of(result, header)
    if code == ResponseCode.PULL_NOT_FOUND and header.sys_flag & PullFlag.SUSPEND:
        wait_ms = min(header.suspend_timeout_millis, HOLD_MS_MAX)
        if not broker.config.long_polling:
            wait_ms = broker.config.short_polling_ms
        held = HeldPull(
            link, request, header.queue_offset, _codes(subscription), broker.clock.monotonic_ms() + wait_ms
        )
        if wait_ms > 0 and broker.hold.add((header.topic, header.queue_id), held):
            return None
    return _answer(request, result, code)


class PullPlan:
    """What a pull of one shape comes to, whatever offset it asks for."""

    __slots__ = ("_broker", "_codes", "_commits", "_cursor", "_group", "_limits", "_queue_id", "_topic")

    def __init__(self, broker: "Broker", header: PullRequest, subscription: Subscription) -> None:
        self._broker = broker
        self._group = header.consumer_group
        self._topic = header.topic
        self._queue_id = header.queue_id
        self._commits = bool(header.sys_flag & PullFlag.COMMIT_OFFSET)
        self._limits = _limits(broker, header)
        self._codes = _codes(subscription)
        self._cursor = broker.store.reader.cursor(header.topic, header.queue_id)

    @property
    def has_queue(self) -> bool:
        return self._cursor.queue is not None

    @property
    def entries_bytes(self) -> int:
        return len(self._cursor.entries)

    def release(self) -> None:
        """Keep nothing in memory until the next pull."""
        self._cursor.release()

    def serve(self, link: Link, pull: PullFrame) -> bool:
        """Answer with messages; False, with nothing done, when there are none to be had at once."""
        queue = self._cursor.queue
        offset = pull.queue_offset
        if queue is None or not queue.start <= offset < queue.end:
            self._cursor.release()  # most readers wait at the end of their queue
            return False
        broker = self._broker
        entries = self._cursor.entries
        result = broker.store.reader.pull_at(self._cursor, offset, self._limits, self._codes)
        if self._cursor.entries is not entries:
            broker.plans.reads_ahead(self)
        if not result.count:
            return False
        if self._commits and pull.commit_offset >= 0:
            committed = GroupOffset(min(pull.commit_offset, queue.end))
            broker.offsets.commit(self._group, self._topic, self._queue_id, committed)
        broker.offsets.note_pull(self._group, self._topic, self._queue_id, GroupOffset(offset))
        broker.traffic.found += 1
        broker.traffic.transferred += result.count
        head = encode_found(
            pull.opaque, result.next_offset, result.offset_min, result.offset_max, len(result.data)
        )
        link.write_parts(head, result.data)
        return True


class PullPlans:
    """Plans by shape.  All are forgotten when anything changes that one of them was made from."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._plans: dict[bytes, PullPlan] = {}
        self._reading: OrderedDict[PullPlan, None] = OrderedDict()
        self._made_from: object = None

    def __len__(self) -> int:
        return len(self._plans)

    @property
    def entries_bytes(self) -> int:
        """What all plans have read ahead."""
        return sum(plan.entries_bytes for plan in self._plans.values())

    def reads_ahead(self, plan: PullPlan) -> None:
        """A plan has read entries for its next pulls; it keeps them if they are few, and others do not."""
        if plan.entries_bytes > WINDOW_ENTRIES * ENTRY_BYTES:
            plan.release()
            return
        self._reading[plan] = None
        self._reading.move_to_end(plan)
        if len(self._reading) > READING_MAX:
            self._reading.popitem(last=False)[0].release()

    def find(self, shape: bytes) -> PullPlan | None:
        broker = self._broker
        now = (broker.config_version, broker.topics.version, broker.groups.version, broker.clients.revision)
        if now != self._made_from:
            self._made_from = now
            self._plans.clear()
            self._reading.clear()
        return self._plans.get(shape)

    def learn(self, shape: bytes, request: Command) -> None:
        """Remember what a pull came to, unless it was refused or its queue was never written to."""
        if len(shape) > SHAPE_BYTES_MAX:
            return
        try:
            header = PullRequest.decode(request.fields)
            plan = PullPlan(self._broker, header, _check(self._broker, header))
        except (RequestError, StoreRefusal):
            return
        if plan.has_queue and self.find(shape) is None and len(self._plans) < PLANS_MAX:
            self._plans[shape] = plan


def on_pull(broker: "Broker", link: Link, pull: PullFrame) -> None:
    """Answer a plain pull, by its plan if it has one and there are messages, else by the general path."""
    plan = broker.plans.find(pull.shape)
    try:
        if plan is not None and plan.serve(link, pull):
            return
    except (BolideError, OSError):  # the general path meets the same and says so
        pass
    request = decode_frame(pull.frame())
    broker.on_request(link, request)
    if plan is None:
        broker.plans.learn(pull.shape, request)


def resume(broker: "Broker", held: HeldPull) -> None:
    """Execute a held pull again; it is answered now, whatever it finds."""
    if not held.link.is_open or held.request.is_one_way:
        return
    try:
        header = PullRequest.decode(held.request.fields)
        if held.link.is_congested:  # it has not read what it was sent before: it may come back for more
            result = PullResult(PullStatus.NO_MATCHED_MESSAGE, held.offset, held.offset, held.offset)
        else:
            subscription = _check(broker, header)
            if _codes(subscription) == held.codes:
                # What was looked at while it waited is not looked at again.
                header = replace(header, queue_offset=max(held.offset, held.seen))
            result = _read(broker, header, subscription)
        answer = _answer(held.request, result, _code_of(result, header))
    except Exception as error:  # whoever sent the message that woke this pull must not suffer from it
        answer = error_answer(held.request, error)
    held.link.answer(answer)


def _check(broker: "Broker", header: PullRequest) -> Subscription:
    """May this group read this queue, and which messages of it does it want?"""
    if not broker.config.readable:
        raise PermissionDenied(f"the broker {broker.config.broker_name} may not be read now")
    group = _group(broker, header.consumer_group)
    if not group.consume_enable:
        raise PermissionDenied(f"the group {group.name} may not consume")
    topic = broker.topics.require(header.topic)
    if not topic.readable:
        raise PermissionDenied(f"the topic {topic.name} may not be read")
    if not 0 <= header.queue_id < topic.read_queues:
        raise InvalidRequest(
            f"queue {header.queue_id} cannot be read: the topic {topic.name} has {topic.read_queues} read queues"
        )
    if header.max_msg_nums < 1:
        raise InvalidRequest(f"maxMsgNums must be at least 1, not {header.max_msg_nums}")
    if header.sys_flag & PullFlag.SUBSCRIPTION:
        return _inline_subscription(header)
    return _known_subscription(broker, header, group)


def _group(broker: "Broker", name: str) -> GroupConfig:
    """The group, made on demand; for a name that cannot be one the original says that there is no such group."""
    try:
        return broker.groups.find(name, auto_create=broker.config.auto_create_group)
    except InvalidRequest as error:
        raise GroupNotFound(str(error)) from None


def _inline_subscription(header: PullRequest) -> Subscription:
    if header.expression_type and header.expression_type != "TAG":
        raise RequestError(f"filters of type {header.expression_type} are not supported by this broker")
    return Subscription.parse(header.topic, header.subscription, header.sub_version)


def _known_subscription(broker: "Broker", header: PullRequest, group: GroupConfig) -> Subscription:
    members = broker.clients.group(group.name)
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
    if subscription.expression_type != "TAG":
        raise RequestError(f"filters of type {subscription.expression_type} are not supported by this broker")
    return subscription


def _codes(subscription: Subscription) -> frozenset[int] | None:
    return None if subscription.takes_all else subscription.codes


def _read(broker: "Broker", header: PullRequest, subscription: Subscription) -> PullResult:
    result = broker.store.reader.pull(
        header.topic,
        header.queue_id,
        header.queue_offset,
        limits=_limits(broker, header),
        codes=_codes(subscription),
    )
    if result.count:
        broker.traffic.found += 1
        broker.traffic.transferred += result.count
    else:
        broker.traffic.missed += 1
    return result


def _limits(broker: "Broker", header: PullRequest) -> PullLimits:
    """The original's limits; readers of whole topics (Spark) may ask for more with `bulk`."""
    if header.bulk:
        size = min(header.max_msg_bytes or BULK_BYTES_MAX, BULK_BYTES_MAX)
        count = min(header.max_msg_nums, BULK_COUNT_MAX)
        return PullLimits(count, size, count, size, hot_bytes_behind=0)
    config = broker.config
    return PullLimits(
        hot_count=min(header.max_msg_nums, config.hot_count_max),
        hot_bytes=min(header.max_msg_bytes or config.hot_bytes_max, config.hot_bytes_max),
        cold_count=min(header.max_msg_nums, config.cold_count_max),
        cold_bytes=min(header.max_msg_bytes or config.cold_bytes_max, config.cold_bytes_max),
        hot_bytes_behind=broker.recent_bytes,
    )


def _code_of(result: PullResult, header: PullRequest) -> ResponseCode:
    if result.status is PullStatus.FOUND:
        return ResponseCode.SUCCESS
    if result.status is PullStatus.NO_MESSAGE_IN_QUEUE:
        if header.queue_offset == 0:
            return ResponseCode.PULL_NOT_FOUND
        return ResponseCode.PULL_OFFSET_MOVED
    return _CODES[result.status]


def _answer(request: Command, result: PullResult, code: ResponseCode) -> Command:
    header = PullAnswer(
        suggest_which_broker_id=0,  # no slave to read from
        next_begin_offset=result.next_offset,
        min_offset=result.offset_min,
        max_offset=result.offset_max,
    )
    return request.answer(code, header.encode(), result.data, result.status.value)


HANDLERS = {RequestCode.PULL_MESSAGE: pull, RequestCode.LITE_PULL_MESSAGE: pull}
