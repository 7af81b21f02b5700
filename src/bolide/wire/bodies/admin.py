"""Bodies for operators: of 18, 220, 221 and 225, and answers to 222, 223, 303, 308, 315, 317, 321, 328 and 345."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bolide.model import java_json, json_pieces
from bolide.model.config_json import group_from_json, topic_from_json
from bolide.model.errors import InvalidRequest
from bolide.model.limits import CONFIG_LIST_BYTES_MAX, CONFIG_LIST_MAX
from bolide.model.offsets import MessageQueue
from bolide.model.steps import Steps
from bolide.model.topic import GroupConfig, Subscription, TopicConfig
from bolide.wire.bodies.connection import ClientConnection
from bolide.wire.bodies.group import subscription_as_json
from bolide.wire.bodies.members import number, parse_answer, parse_object, rows, table
from bolide.wire.bodies.offset import QueueProgress
from bolide.wire.bodies.queue import queue_as_json, queue_as_key, queue_from_json, queue_from_key

Offsets = Mapping[MessageQueue, int]
OffsetRows = Iterable[tuple[MessageQueue, int]]

QUEUES_PER_STEP = 128


# ---- offsets (220, 221, 222, 223, 308) ---------------------------------------------------------------------------


def offsets_pieces(offsets: OffsetRows) -> Iterator[bytes]:
    """The answer to 222 and the body of 220 (RocketMQ: ResetOffsetBody)."""
    return json_pieces.compact({"offsetTable": json_pieces.Entries(_by_key(offsets))})


def offset_list_pieces(offsets: OffsetRows) -> Iterator[bytes]:
    """The body of 220 as C++ clients read it (RocketMQ: ResetOffsetBodyForC)."""
    listed = ({**queue_as_json(queue), "offset": offset} for queue, offset in offsets)
    return json_pieces.compact({"offsetTable": json_pieces.Items(listed)})


def decode_reset(body: bytes) -> dict[MessageQueue, int]:
    """The body of 220, in either form."""
    members = parse_answer(body, "the offsets to go to")
    if isinstance(members.get("offsetTable"), list):
        return {queue_from_json(row): number(row, "offset") for row in rows(members, "offsetTable")}
    queues = table(members, "offsetTable")
    return {queue_from_key(key): number(queues, key) for key in queues}


def member_offsets_pieces(offsets: OffsetRows) -> Iterator[bytes]:
    """The answer to 221 (RocketMQ: GetConsumerStatusBody)."""
    return json_pieces.compact(
        {"consumerTable": {}, "messageQueueTable": json_pieces.Entries(_by_key(offsets))}
    )


def decode_member_offsets(body: bytes) -> Steps[dict[MessageQueue, int]]:
    """A client's answer to 221 (RocketMQ: GetConsumerStatusBody), some queues in a step.

    Its length is for the caller to bound: all queues of a member are one table in Java's dialect.
    """
    queues = table(parse_object(body, "the consumer's state", dialect_bytes_max=None), "messageQueueTable")
    offsets: dict[MessageQueue, int] = {}
    for at, key in enumerate(queues, 1):
        offsets[queue_from_key(key)] = number(queues, key)
        if at % QUEUES_PER_STEP == 0:
            yield
    return offsets


def group_offsets_pieces(members: Mapping[str, Offsets]) -> Iterator[bytes]:
    """The answer to 223: by client id (RocketMQ: GetConsumerStatusBody)."""
    told = (
        (client_id, json_pieces.Entries(_by_key(offsets.items()))) for client_id, offsets in members.items()
    )
    return json_pieces.compact({"consumerTable": json_pieces.Entries(told), "messageQueueTable": {}})


def correction_offsets_pieces(offsets: Mapping[int, int]) -> Iterator[bytes]:
    """The answer to 308 (RocketMQ: QueryCorrectionOffsetBody)."""
    return json_pieces.compact({"correctionOffsets": json_pieces.Entries(offsets.items())})


def _by_key(offsets: OffsetRows) -> Iterator[tuple[java_json.Bare, int]]:
    return ((queue_as_key(queue), offset) for queue, offset in offsets)


# ---- progress (303, 317) -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueueTimeSpan:
    """Times of one queue's messages (RocketMQ: QueueTimeSpan)."""

    queue: MessageQueue
    first_ms: int
    last_ms: int
    consumed_ms: int
    delay_ms: int

    def as_json(self) -> dict[str, Any]:
        return {
            "consumeTimeStamp": self.consumed_ms,
            "delayTime": self.delay_ms,
            "maxTimeStamp": self.last_ms,
            "messageQueue": queue_as_json(self.queue),
            "minTimeStamp": self.first_ms,
        }


def time_span_pieces(spans: Iterable[QueueTimeSpan]) -> Iterator[bytes]:
    """The answer to 303 (RocketMQ: QueryConsumeTimeSpanBody)."""
    return json_pieces.compact({"consumeTimeSpanSet": json_pieces.Items(span.as_json() for span in spans)})


Progress = Iterable[tuple[MessageQueue, QueueProgress]]


def all_progress_pieces(
    groups: Iterable[tuple[str, Iterable[tuple[Progress, float]]]], broker_address: str
) -> Iterator[bytes]:
    """The answer to 317 (RocketMQ: ConsumeStatsList): each group with its topics; the totals come last."""
    total = inflight = 0

    def counted(progress: Progress) -> Iterator[tuple[java_json.Bare, dict[str, int]]]:
        nonlocal total, inflight
        for queue, one in progress:
            total += one.behind
            inflight += max(0, one.pull_offset - one.group_offset)
            yield queue_as_key(queue), one.as_json()

    def told() -> Iterator[json_pieces.Entries]:
        for group, topics in groups:
            stats = (
                json_pieces.Entries(
                    [("consumeTps", rate), ("offsetTable", json_pieces.Entries(counted(progress)))]
                )
                for progress, rate in topics
            )
            yield json_pieces.Entries([(group, json_pieces.Items(stats))])

    def members() -> Iterator[tuple[str, Any]]:
        yield "brokerAddr", broker_address
        yield "consumeStatsList", json_pieces.Items(told())
        yield "totalDiff", total
        yield "totalInflightDiff", inflight

    return json_pieces.compact(json_pieces.Entries(members()))


# ---- statistics (315) --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatisticsFigure:
    """What came within a span (RocketMQ: BrokerStatsItem)."""

    total: int
    per_second: float
    per_time: float

    def as_json(self) -> dict[str, float]:
        return {"avgpt": self.per_time, "sum": self.total, "tps": self.per_second}


def encode_statistics(minute: StatisticsFigure, hour: StatisticsFigure, day: StatisticsFigure) -> bytes:
    """RocketMQ: BrokerStatsData."""
    return java_json.dumps(
        {"statsDay": day.as_json(), "statsHour": hour.as_json(), "statsMinute": minute.as_json()}
    )


# ---- a queue's entries (321) -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueueEntry:
    log_offset: int
    size: int
    tags_code: int

    def as_json(self) -> dict[str, Any]:
        return {
            "eval": False,
            "physicOffset": self.log_offset,
            "physicSize": self.size,
            "tagsCode": self.tags_code,
        }


def encode_queue_entries(
    entries: Iterable[QueueEntry],
    offset_min: int,
    offset_max: int,
    subscription: Subscription | None,
    filter_text: str | None,
) -> bytes:
    """RocketMQ: QueryConsumeQueueResponseBody."""
    members: dict[str, Any] = {
        "maxQueueIndex": offset_max,
        "minQueueIndex": offset_min,
        "queueData": [entry.as_json() for entry in entries],
    }
    if filter_text is not None:
        members["filterData"] = filter_text
    if subscription is not None:
        members["subscriptionData"] = subscription_as_json(subscription)
    return java_json.dumps(members)


# ---- clients (328, 345) ------------------------------------------------------------------------------------------


def producer_table_pieces(
    groups: Iterable[tuple[str, Iterable[tuple[ClientConnection, int]]]],
) -> Iterator[bytes]:
    """All producers by group, each with when it was heard last (RocketMQ: ProducerTableInfo)."""

    def one(client: ClientConnection, heard_ms: int) -> dict[str, Any]:
        return {
            "clientId": client.client_id,
            "language": client.language,
            "lastUpdateTimestamp": heard_ms,
            "remoteIP": f"/{client.address}",  # as Java writes an address
            "version": client.version,
        }

    told = ((group, json_pieces.Items(one(*client) for client in clients)) for group, clients in groups)
    return json_pieces.compact({"data": json_pieces.Entries(told)})


def encode_subscription(group: str, topic: str, subscription: Subscription | None) -> bytes:
    """The answer to 345 (RocketMQ: QuerySubscriptionResponseBody)."""
    members: dict[str, Any] = {"group": group, "topic": topic}
    if subscription is not None:
        members["subscriptionData"] = subscription_as_json(subscription)
    return java_json.dumps(members)


# ---- lists of topics and groups (18, 225) ------------------------------------------------------------------------


class TopicRows:
    """Topics that are made by one request; each is looked at when it is asked for: they are many."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[TopicConfig]:
        return map(topic_from_json, self._rows)

    @property
    def names(self) -> Iterator[str]:
        """What stands there for names."""
        return (str(row.get("topicName")) for row in self._rows)


def decode_topic_list(body: bytes) -> TopicRows:
    """RocketMQ: CreateTopicListRequestBody."""
    return TopicRows(_listed(body, "the topic list", "topicConfigList"))


def decode_group_list(body: bytes) -> Iterator[GroupConfig]:
    """RocketMQ: SubscriptionGroupList.  The same of groups."""
    return map(group_from_json, _listed(body, "the group list", "groupConfigList"))


def _listed(body: bytes, what: str, name: str) -> list[dict[str, Any]]:
    if len(body) > CONFIG_LIST_BYTES_MAX:
        raise InvalidRequest(f"{what} has {len(body)} bytes; {CONFIG_LIST_BYTES_MAX} are allowed")
    listed = rows(parse_object(body, what), name)
    if not listed:
        raise InvalidRequest(f"{what} is empty")
    if len(listed) > CONFIG_LIST_MAX:
        raise InvalidRequest(f"{what} has {len(listed)} entries; {CONFIG_LIST_MAX} are allowed")
    return listed
