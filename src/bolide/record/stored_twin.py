"""StoredMessage, and how the records of a pull answer become such: the readable twin of `_stored.pyx`.

The compiled one keeps the answer and reads what a message says when it is asked; this one reads all of it at once.
Both give the same for the same bytes, and the same errors.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from bolide.model.errors import MalformedRecord
from bolide.model.limits import BODY_UNPACKED_BYTES_MAX
from bolide.model.message import Property, SysFlag
from bolide.model.numbers import INT32_MAX
from bolide.model.offsets import LogOffset, QueueOffset
from bolide.model.pairs import parse_properties
from bolide.record.compress import unpack_body, unpacked_at_most
from bolide.record.layout import OpenRecord, open_record
from bolide.record.message_id import format_host, format_offset_id

MESSAGE_COST_BYTES = 1024
PROPERTY_COST_BYTES = 256
"""What a message and each of its properties take in memory beside its body, about."""

_COMPRESSED = int(SysFlag.COMPRESSED)

host_text = lru_cache(maxsize=1024)(format_host)
"""Few producers and brokers send many messages."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as a queue holds it, its body unpacked.

    Example::

        def handle(messages: list[StoredMessage]) -> None:
            for message in messages:
                print(message.topic, message.tags, message.keys, message.body, message.reconsume_times)

    Brokers do not look into bodies.  One that is marked as packed and does not unpack comes as it is stored, and
    `body_error` says why; it is None for all others.
    """

    topic: str
    body: bytes
    properties: Mapping[str, str]
    queue_id: int
    queue_offset: QueueOffset
    log_offset: LogOffset
    broker_name: str
    sys_flag: int
    flag: int
    born_timestamp_ms: int
    born_host: str
    store_timestamp_ms: int
    store_host: str
    reconsume_times: int
    message_id: str
    offset_message_id: str
    body_error: str | None = None

    @property
    def tags(self) -> str | None:
        """The word that its producer gave it for consumers to choose by."""
        return self.properties.get(Property.TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        """The words that it can be found by: what stands between blanks (RocketMQ: KEY_SEPARATOR)."""
        return tuple(key for key in self.properties.get(Property.KEYS, "").split(" ") if key)

    @property
    def cost_bytes(self) -> int:
        """About what it takes in memory."""
        return MESSAGE_COST_BYTES + len(self.body) + PROPERTY_COST_BYTES * len(self.properties)

    def replaced(self, **changes: Any) -> Self:
        """The same message with other values of some fields."""
        return dataclasses.replace(self, **changes)


def message_at(
    data: bytes, at: int, broker_name: str, unpacked_bytes_max: int = BODY_UNPACKED_BYTES_MAX
) -> tuple[StoredMessage, int]:
    """The message whose record begins at `at`, and where the record ends; `MalformedRecord` when there is none."""
    record = open_record(data, at, len(data))
    return _message(data, record, broker_name, unpacked_bytes_max), record.end


def messages_in(
    data: bytes, broker_name: str, cost_bytes_max: int, at: int = 0, count_max: int = INT32_MAX
) -> tuple[list[StoredMessage], int, int]:
    """As many messages from `at` on as may be in memory at once, but one at least; the place behind their records, and
    what they take in memory.  What was unpacked in vain counts too: bad bodies must not hold anybody up.

    It ends before bytes that are no record, and says nothing of them.
    """
    messages: list[StoredMessage] = []
    cost_bytes, end = 0, len(data)
    while at < end and len(messages) < count_max and (cost_bytes < cost_bytes_max or not messages):
        try:
            message, behind = message_at(data, at, broker_name)
        except MalformedRecord:
            break
        one = message.cost_bytes
        if messages and cost_bytes + one > cost_bytes_max:
            break
        if message.body_error is not None:
            one += unpacked_at_most(message.body, message.sys_flag)
        cost_bytes += one
        messages.append(message)
        at = behind
    return messages, at, cost_bytes


def misplaced(messages: list[StoredMessage], begin: int, end: int) -> int | None:
    """Which message is the first that does not stand behind those before it, from the offset `begin` to before `end`;
    None when all do.
    """
    for index, message in enumerate(messages):
        if not begin <= message.queue_offset < end:
            return index
        begin = message.queue_offset
    return None


def _message(data: bytes, record: OpenRecord, broker_name: str, unpacked_bytes_max: int) -> StoredMessage:
    # All at once, because asking a tuple for eighteen names would be a good part of what a message costs.
    (
        _,
        queue_id,
        flag,
        queue_offset,
        log_offset,
        sys_flag,
        born_ms,
        born_host,
        store_ms,
        store_host,
        reconsume_times,
        _,
        body_at,
        body_end,
        topic_at,
        topic_end,
        properties_at,
        end,
    ) = record
    body, body_error = data[body_at:body_end], None
    if sys_flag & _COMPRESSED:
        body, body_error = unpacked(body, sys_flag, unpacked_bytes_max)
    # Some clients send text that is not UTF-8.  Java replaces what it cannot read, so one such message holds up nobody.
    topic = str(data[topic_at:topic_end], "utf-8", "replace")
    properties = parse_properties(str(data[properties_at:end], "utf-8", "replace"))
    offset_id = format_offset_id(store_host, LogOffset(log_offset))
    return StoredMessage(
        topic=topic,
        body=body,
        properties=properties,
        queue_id=queue_id,
        queue_offset=QueueOffset(queue_offset),
        log_offset=LogOffset(log_offset),
        broker_name=broker_name,
        sys_flag=sys_flag,
        flag=flag,
        born_timestamp_ms=born_ms,
        born_host=host_text(born_host),
        store_timestamp_ms=store_ms,
        store_host=host_text(store_host),
        reconsume_times=reconsume_times,
        message_id=properties.get(Property.UNIQUE_KEY, offset_id),
        offset_message_id=offset_id,
        body_error=body_error,
    )


def unpacked(body: bytes, sys_flag: int, size_bytes_max: int) -> tuple[bytes, str | None]:
    """A packed body as it was sent, or as it is stored and why."""
    try:
        return unpack_body(body, sys_flag, size_bytes_max), None
    except MalformedRecord as error:
        return body, str(error)
