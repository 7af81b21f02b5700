"""Sending a message back that could not be consumed: code 36."""

import dataclasses

from bolide.wire.schema import Header, Int, Long


@dataclasses.dataclass(frozen=True)
class SendBack(Header):
    """RocketMQ: ConsumerSendMsgBackRequestHeader.  The message is named by its place in the log."""

    offset: Long
    group: str
    delay_level: Int
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int | None = None
