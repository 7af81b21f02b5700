"""Looking at groups and their members, and moving them: codes 220 to 223, 303, 307 to 309, 314, 315, 317, 321, 345."""

import dataclasses

from bolide.wire.schema import Header, Int, Long


@dataclasses.dataclass(frozen=True)
class ResetOffset(Header):
    """222 to a broker, 220 to a client.  With a queue and an offset (5.x) the time does not count."""

    topic: str
    group: str
    timestamp: Long
    is_force: bool = True
    queue_id: Int = -1
    offset: Long | None = None


@dataclasses.dataclass(frozen=True)
class ConsumerStatusRequest(Header):
    """223 to a broker, 221 to a client."""

    topic: str
    group: str
    client_addr: str | None = None
    """One client's id; all members when there is none."""


@dataclasses.dataclass(frozen=True)
class RunningInfoRequest(Header):
    consumer_group: str
    client_id: str
    jstack_enable: bool = False


@dataclasses.dataclass(frozen=True)
class ConsumeDirectly(Header):
    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int | None = None
    group_sys_flag: Int | None = None


@dataclasses.dataclass(frozen=True)
class TimeSpanRequest(Header):
    topic: str
    group: str


@dataclasses.dataclass(frozen=True)
class CorrectionOffsetRequest(Header):
    topic: str
    compare_group: str
    filter_groups: str | None = None
    """Groups that do not count, joined by commas."""


@dataclasses.dataclass(frozen=True)
class CloneOffsets(Header):
    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool = False


@dataclasses.dataclass(frozen=True)
class StatisticsRequest(Header):
    stats_name: str
    stats_key: str


@dataclasses.dataclass(frozen=True)
class AllProgressRequest(Header):
    is_order: bool = False


@dataclasses.dataclass(frozen=True)
class QueueEntriesRequest(Header):
    topic: str
    queue_id: Int
    index: Long
    count: Int
    consumer_group: str | None = None


@dataclasses.dataclass(frozen=True)
class SubscriptionRequest(Header):
    group: str
    topic: str = ""
