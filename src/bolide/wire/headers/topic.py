"""Topics on a broker: codes 17, 215, 351, 202, 300, 343."""

import dataclasses

from bolide.wire.schema import Header, Int, wire


@dataclasses.dataclass(frozen=True)
class UpdateTopic(Header):
    topic: str
    default_topic: str = wire(required=True, default="TBW102")
    read_queues: Int = wire("readQueueNums", required=True, default=16)
    write_queues: Int = wire("writeQueueNums", required=True, default=16)
    perm: Int = wire(required=True, default=6)
    topic_filter_type: str = wire(required=True, default="SINGLE_TAG")
    topic_sys_flag: Int | None = None
    order: bool = False
    attributes: str | None = None


@dataclasses.dataclass(frozen=True)
class TopicRequest(Header):
    topic: str
