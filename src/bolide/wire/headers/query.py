"""Messages by key and by place: codes 12 and 33."""

import dataclasses

from bolide.wire.schema import Header, Int, Long, wire

TAG_INDEX = "T"
"""The index type of a tag (RocketMQ 5.5: MessageConst.INDEX_TAG_TYPE); keys and unique keys need none."""


@dataclasses.dataclass(frozen=True)
class QueryMessage(Header):
    topic: str
    key: str
    max_num: Int
    begin_timestamp: Long
    end_timestamp: Long
    index_type: str | None = None
    unique_key: bool | None = wire("_UNIQUE_KEY_QUERY", default=None)


@dataclasses.dataclass(frozen=True)
class QueryAnswer(Header):
    """How far the index is; Java clients want both fields whatever the response code."""

    index_last_update_timestamp: Long
    index_last_update_phyoffset: Long


@dataclasses.dataclass(frozen=True)
class ViewMessage(Header):
    offset: Long
    topic: str | None = None
