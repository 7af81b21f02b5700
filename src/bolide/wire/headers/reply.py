"""A reply on its way to the client that waits for it: code 326."""

import dataclasses
from typing import Self

from bolide.wire.headers.send import SendRequest
from bolide.wire.schema import Header, Int, Long, wire


@dataclasses.dataclass(frozen=True)
class PushedReply(Header):
    """What a replier sent, with where it came from (RocketMQ: ReplyMessageRequestHeader)."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int
    queue_id: Int
    sys_flag: Int
    flag: Int
    born_host: str
    store_host: str
    born_timestamp_ms: Long = wire("bornTimestamp")
    store_timestamp_ms: Long = wire("storeTimestamp")
    properties: str = ""
    reconsume_times: Int = 0
    unit_mode: bool = False

    @classmethod
    def of(
        cls, sent: SendRequest, *, properties: str, born_host: str, store_host: str, store_timestamp_ms: int
    ) -> Self:
        return cls(
            producer_group=sent.producer_group,
            topic=sent.topic,
            default_topic=sent.default_topic,
            default_topic_queue_nums=sent.default_topic_queues,
            queue_id=sent.queue_id,
            sys_flag=sent.sys_flag,
            born_timestamp_ms=sent.born_timestamp_ms,
            flag=sent.flag,
            properties=properties,
            reconsume_times=sent.reconsume_times,
            unit_mode=sent.unit_mode,
            born_host=born_host,
            store_host=store_host,
            store_timestamp_ms=store_timestamp_ms,
        )
