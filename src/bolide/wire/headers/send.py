"""Sending: codes 10, 310 and 320.

Code 10 spells its fields out, 310 and 320 use one letter each.  Both become a `SendRequest`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Self

from bolide.wire.schema import Header, Int, Long, layout_of, wire


@dataclasses.dataclass(frozen=True)
class SendRequest(Header):
    """One-letter spelling.  `batch`, not the request code, decides whether the body is a batch."""

    topic: str = wire("b")
    producer_group: str = wire("a", required=True, default="")
    default_topic: str = wire("c", required=True, default="TBW102")
    default_topic_queues: Int = wire("d", required=True, default=4)
    queue_id: Int = wire("e", required=True, default=-1)
    sys_flag: Int = wire("f", required=True, default=0)
    born_timestamp_ms: Long = wire("g", required=True, default=0)
    flag: Int = wire("h", required=True, default=0)
    properties: str = wire("i", default="")
    reconsume_times: Int = wire("j", default=0)
    unit_mode: bool = wire("k", default=False)
    max_reconsume_times: Int | None = wire("l", default=None)
    batch: bool = wire("m", default=False)

    @classmethod
    def decode_long(cls, fields: Mapping[str, str]) -> Self:
        """From code 10's spelling."""
        return cls.decode_by(_LONG_LAYOUT, fields)


def send_fields(
    topic: str,
    producer_group: str,
    default_topic: str,
    default_topic_queues: int,
    queue_id: int,
    sys_flag: int,
    born_timestamp_ms: int,
    flag: int,
    properties: str,
    *,
    batch: bool,
) -> dict[str, str]:
    """What `SendRequest(...).encode()` gives of these, for who sends many: it takes a tenth of the time."""
    return {
        "b": topic,
        "a": producer_group,
        "c": default_topic,
        "d": str(default_topic_queues),
        "e": str(queue_id),
        "f": str(int(sys_flag)),
        "g": str(born_timestamp_ms),
        "h": str(flag),
        "i": properties,
        "j": "0",
        "k": "false",
        "m": "true" if batch else "false",
    }


_LONG_NAMES = {
    "topic": "topic",
    "producer_group": "producerGroup",
    "default_topic": "defaultTopic",
    "default_topic_queues": "defaultTopicQueueNums",
    "queue_id": "queueId",
    "sys_flag": "sysFlag",
    "born_timestamp_ms": "bornTimestamp",
    "flag": "flag",
    "properties": "properties",
    "reconsume_times": "reconsumeTimes",
    "unit_mode": "unitMode",
    "max_reconsume_times": "maxReconsumeTimes",
    "batch": "batch",
}
_LONG_LAYOUT = tuple(item._replace(spelling=_LONG_NAMES[item.name]) for item in layout_of(SendRequest))


@dataclasses.dataclass(frozen=True)
class SendAnswer(Header):
    """Where the message went.  `msg_id` lists one id per message of a batch, joined by commas."""

    msg_id: str
    queue_id: Int
    queue_offset: Long
    transaction_id: str | None = None
    region: str = wire("MSG_REGION", default="DefaultRegion")
    trace_on: str = wire("TRACE_ON", default="true")
    recall_handle: str | None = wire("recallHandle", default=None)


@dataclasses.dataclass(frozen=True)
class RecallRequest(Header):
    """A timed message is not to be delivered."""

    topic: str
    recall_handle: str
    producer_group: str | None = None


@dataclasses.dataclass(frozen=True)
class RecallAnswer(Header):
    """The id of the message that was called back."""

    msg_id: str
