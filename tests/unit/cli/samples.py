"""A stored message to format, filter and copy."""

from typing import Any

from bolide.model.offsets import LogOffset, QueueOffset
from bolide.record.stored import StoredMessage

SAMPLE = StoredMessage(
    topic="orders",
    body=b"paid 42",
    properties={"TAGS": "eu", "KEYS": "42 43", "UNIQ_KEY": "AB01", "source": "web"},
    queue_id=3,
    queue_offset=QueueOffset(17),
    log_offset=LogOffset(4096),
    broker_name="broker-a",
    sys_flag=0,
    flag=0,
    born_timestamp_ms=1_700_000_000_000,
    born_host="10.0.0.9:5000",
    store_timestamp_ms=1_700_000_000_123,
    store_host="10.0.0.1:10911",
    reconsume_times=2,
    message_id="AB01",
    offset_message_id="CD02",
)


def sample(**changes: Any) -> StoredMessage:
    return SAMPLE.replaced(**changes)
