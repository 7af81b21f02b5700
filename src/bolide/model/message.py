"""Messages: what an application sends, and what it gets back from a queue."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntFlag

from bolide.model.errors import MessageIllegal
from bolide.model.offsets import LogOffset, QueueOffset

BODY_BYTES_MAX = 4 * 1024 * 1024
PROPERTIES_BYTES_MAX = 32767

NAME_END = "\x01"
PAIR_END = "\x02"

MESSAGE_COST_BYTES = 1024
PROPERTY_COST_BYTES = 256
"""What a message and each of its properties take in memory beside its body, about."""


class Property:
    """Reserved property names (RocketMQ: MessageConst); `properties.py` says how each is treated."""

    KEYS = "KEYS"
    TAGS = "TAGS"
    WAIT = "WAIT"
    DELAY = "DELAY"
    RETRY_TOPIC = "RETRY_TOPIC"
    ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
    ATTEMPTS = "BOLIDE_ATTEMPTS"
    REAL_TOPIC = "REAL_TOPIC"
    REAL_QUEUE_ID = "REAL_QID"
    TRANSACTION_PREPARED = "TRAN_MSG"
    TRANSACTION_ID = "__transactionId__"
    TRANSACTION_CHECKS = "TRANSACTION_CHECK_TIMES"
    PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
    CHECK_IMMUNITY = "CHECK_IMMUNITY_TIME_IN_SECONDS"
    PRODUCER_GROUP = "PGROUP"
    UNIQUE_KEY = "UNIQ_KEY"
    REPLY_TO_CLIENT = "REPLY_TO_CLIENT"
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

    Args:
        topic: where it goes: letters, digits, `%`, `|`, `_` and `-`, at most 127 of them.
        body: what it says, as bytes; 4 MiB at most, and not none.
        tags: one word that consumers can choose by; without blanks and ||, and not *.
        keys: words that it can be found by later, such as an order's number: a list of them, or one text with blanks
            between them.
        properties: pairs of texts of the application's own; with tags and keys at most 32 KiB.
        flag: a number of 32 bits that is handed on as it is.
        delay_level: which of the broker's delay levels it waits for before it is delivered, the first being 1; 0 for
            none.  What a level means is configured there: by default 1 is a second, 3 ten seconds, 18 two hours.
        deliver_at: when consumers get it, not before: a datetime, or milliseconds since 1970.  A time that is over
            means at once.
        delay: the same as a span from now on, as the broker's clock measures it: a timedelta, or seconds.
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


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as a queue holds it, its body unpacked.

    Brokers do not look into bodies.  One that is marked as packed and does not unpack comes as it is stored, and
    `body_error` says why; it is None for all others.
    """

    topic: str
    body: bytes
    properties: Mapping[str, str]
    queue_id: int
    queue_offset: QueueOffset
    log_offset: LogOffset
    broker_name: str
    sys_flag: int
    flag: int
    born_timestamp_ms: int
    born_host: str
    store_timestamp_ms: int
    store_host: str
    reconsume_times: int
    message_id: str
    offset_message_id: str
    body_error: str | None = None

    @property
    def tags(self) -> str | None:
        """The word that its producer gave it for consumers to choose by."""
        return self.properties.get(Property.TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        """The words that it can be found by."""
        return tuple(self.properties.get(Property.KEYS, "").split())

    @property
    def cost_bytes(self) -> int:
        """About what it takes in memory."""
        return MESSAGE_COST_BYTES + len(self.body) + PROPERTY_COST_BYTES * len(self.properties)


def is_true(text: str | None) -> bool:
    """As Java reads a truth value (Boolean.parseBoolean): `true` in letters of any size, and nothing else."""
    return text is not None and text.lower() == "true"


def format_properties(properties: Mapping[str, str]) -> str:
    """`name 0x01 value 0x02` for every pair; empty values are left out as Java leaves them out."""
    parts: list[str] = []
    for name, value in properties.items():
        if NAME_END in name or PAIR_END in name or NAME_END in value or PAIR_END in value:
            raise MessageIllegal(f"property {name!r} contains a separator character (U+0001, U+0002)")
        if name and value:
            parts += (name, NAME_END, value, PAIR_END)
    return "".join(parts)


def parse_properties(text: str) -> dict[str, str]:
    """The pairs of a property string; tolerates a missing last separator and skips what Java skips."""
    properties: dict[str, str] = {}
    for pair in text.split(PAIR_END):
        name, separator, value = pair.partition(NAME_END)
        if separator and name and value:
            properties[name] = value
    return properties
