"""Topics on a broker: codes 17, 215, 351, 202, 300, 343."""

import dataclasses

from bolide.wire.schema import Header, wire


@dataclasses.dataclass(frozen=True)
class UpdateTopic(Header):
    topic: str
    default_topic: str = "TBW102"
    read_queues: int = wire("readQueueNums", default=16)
    write_queues: int = wire("writeQueueNums", default=16)
    perm: int = 6
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int | None = None
    order: bool = False
    attributes: str | None = None


@dataclasses.dataclass(frozen=True)
class TopicRequest(Header):
    topic: str
