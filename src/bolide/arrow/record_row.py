"""row_of: one stored record as a row, a value for each column that the record itself decides."""

from collections.abc import Mapping
from typing import Any

from bolide.model.message import Property
from bolide.model.offsets import LogOffset
from bolide.record.layout import OpenRecord
from bolide.record.message_id import format_host, format_offset_id

TIME_MS_MAX = (2**63 - 1) // 1000


def row_of(data: bytes, record: OpenRecord, properties: Mapping[str, str]) -> dict[str, Any]:
    """The body is as it is stored."""
    offset_id = format_offset_id(record.store_host, LogOffset(record.log_offset))
    return {
        "topic": data[record.topic_at : record.topic_end].decode("utf-8", "replace"),
        "queueId": record.queue_id,
        "queueOffset": record.queue_offset,
        "body": data[record.body_at : record.body_end],
        "tags": properties.get(Property.TAGS),
        "key": properties.get(Property.KEYS),
        "keys": keys_of(properties),
        "properties": properties,
        "msgId": properties.get(Property.UNIQUE_KEY, offset_id),
        "offsetMsgId": offset_id,
        "bornTimestamp": _microseconds(record.born_timestamp_ms),
        "storeTimestamp": _microseconds(record.store_timestamp_ms),
        "bornHost": format_host(record.born_host),
        "storeHost": format_host(record.store_host),
        "reconsumeTimes": record.reconsume_times,
        "flag": record.flag,
        "sysFlag": record.sys_flag,
        "logOffset": record.log_offset,
    }


def keys_of(properties: Mapping[str, str]) -> list[str]:
    return [key for key in properties.get(Property.KEYS, "").split(" ") if key]


def _microseconds(time_ms: int) -> int | None:
    return time_ms * 1000 if -TIME_MS_MAX <= time_ms <= TIME_MS_MAX else None
