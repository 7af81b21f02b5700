"""Messages as an application sends them, and the properties that all messages have."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntFlag

from bolide.model.errors import MessageIllegal
from bolide.model.pairs import NAME_END, PAIR_END, join_properties

BODY_BYTES_MAX = 4 * 1024 * 1024
PROPERTIES_BYTES_MAX = 32767


class Property:
    """Reserved property names (RocketMQ: MessageConst); `properties.py` says how each is treated."""

    KEYS = "KEYS"
    TAGS = "TAGS"
    WAIT = "WAIT"
    DELAY = "DELAY"
    RETRY_TOPIC = "RETRY_TOPIC"
    ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
    ATTEMPTS = "BOLIDE_ATTEMPTS"
    LEFT_OUT = "BOLIDE_LEFT_OUT"
    REAL_TOPIC = "REAL_TOPIC"
    REAL_QUEUE_ID = "REAL_QID"
    TRANSACTION_PREPARED = "TRAN_MSG"
    TRANSACTION_ID = "__transactionId__"
    TRANSACTION_CHECKS = "TRANSACTION_CHECK_TIMES"
    PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
    CHECK_IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"
    PRODUCER_GROUP = "PGROUP"
    SHARDING_KEY = "__SHARDINGKEY"
    UNIQUE_KEY = "UNIQ_KEY"
    MESSAGE_TYPE = "MSG_TYPE"
    CORRELATION_ID = "CORRELATION_ID"
    REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
    TTL = "TTL"
    PUSH_REPLY_TIME = "PUSH_REPLY_TIME"
    MSG_REGION = "MSG_REGION"
    TRACE_ON = "TRACE_ON"
    CLUSTER = "CLUSTER"
    POP_CHECKPOINT = "POP_CK"
    TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
    TIMER_DELAY_MS = "TIMER_DELAY_MS"
    TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
    TIMER_OUT_MS = "TIMER_OUT_MS"
    TIMER_ENQUEUE_MS = "TIMER_ENQUEUE_MS"
    TIMER_DEQUEUE_MS = "TIMER_DEQUEUE_MS"
    TIMER_ROLL_TIMES = "TIMER_ROLL_TIMES"
    TIMER_DELETE_KEY = "TIMER_DEL_UNIQKEY"
    BORN_TIMESTAMP = "BORN_TIMESTAMP"
    RECORD_CHECKSUM = "__CRC32#"


class SysFlag(IntFlag):
    """Bits of a record's sysFlag (RocketMQ: MessageSysFlag)."""

    COMPRESSED = 0x1
    MULTI_TAGS = 0x2
    PREPARED = 0x4
    COMMIT = 0x8
    ROLLBACK = 0xC
    BORN_HOST_V6 = 0x10
    STORE_HOST_V6 = 0x20
    NEED_UNWRAP = 0x40
    INNER_BATCH = 0x80
    COMPRESSION_LZ4 = 0x100
    COMPRESSION_ZSTD = 0x200
    COMPRESSION_ZLIB = 0x300


TRANSACTION_MASK = 0xC
COMPRESSION_MASK = 0x700


@dataclass(slots=True)
class Message:
    """A message to send.

    Example::

        producer.send(Message("orders", b"three apples", tags="paid", keys=["42"]))
        producer.send(Message("orders", b"not paid yet?", delay=60))

    Args:
        topic: where it goes: letters, digits, `%`, `|`, `_` and `-`, at most 127 of them.
        body: what it says, as bytes; 4 MiB at most, and not none.
        tags: one word that consumers can choose by; without blanks and ||, and not *.
        keys: words that it can be found by later, such as an order's number: a list of them, or one text with blanks
            between them.  No key has a blank in it: `"order 42"` is two keys, and `["order 42"]` is refused.
        properties: pairs of texts of the application's own; with tags and keys at most 32 KiB.
        flag: a number of 32 bits that is handed on as it is.
        delay_level: which of the broker's delay levels it waits for before it is delivered, the first being 1; 0 for
            none.  What a level means is configured there: by default 1 is a second, 3 ten seconds, 18 two hours.
        deliver_at: when consumers get it, not before: a datetime, or milliseconds since 1970.  A time that is over
            means at once.
        delay: the same as a span from now on, as the broker's clock measures it: a timedelta, or seconds.
        sharding_key: messages with the same key go to the same queue, in the order in which they are sent, unless the
            send names a queue or a selector; an order's number, say.  Consumers see it as a property.
    """

    topic: str
    body: bytes
    tags: str | None = None
    keys: Iterable[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    flag: int = 0
    delay_level: int = 0
    deliver_at: datetime | int | None = None
    delay: timedelta | float | None = None
    sharding_key: str | None = None


def is_true(text: str | None) -> bool:
    """As Java reads a truth value (Boolean.parseBoolean): `true` in letters of any size, and nothing else."""
    return text is not None and text.lower() == "true"


def format_properties(properties: Mapping[str, str]) -> str:
    """`name 0x01 value 0x02` for every pair; empty values are left out as Java leaves them out."""
    for name, value in properties.items():
        if NAME_END in name or PAIR_END in name or NAME_END in value or PAIR_END in value:
            raise MessageIllegal(f"property {name!r} contains a separator character (U+0001, U+0002)")
    return join_properties(properties)
