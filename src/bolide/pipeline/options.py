"""Options of a read: what they are called, what they mean, and which combinations make no sense.

Names and meanings follow Spark's Kafka source, the form of offsets follows RocketMQ-Spark.  Case does not matter.
A name that is not known is an error: a misspelled option must not be a read of the wrong range.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from bolide.model.errors import ConfigError
from bolide.model.names import check_group, check_topic
from bolide.model.offsets import MessageQueue
from bolide.model.topic import Subscription
from bolide.net.caller import parse_addresses

EARLIEST = -2
LATEST = -1

LAST_MS = 2**63 - 1
OFFSETS_TEXT_MAX = 16 * 1024 * 1024
PULL_BYTES_DEFAULT = 4 * 1024 * 1024
PULL_BYTES_MAX = 8 * 1024 * 1024
PARTITIONS_MAX = 100_000
GROUP_DEFAULT = "spark-reader"

NAMES = (
    "nameserver",
    "subscribe",
    "startingOffsets",
    "startingTimestamp",
    "endingOffsets",
    "endingTimestamp",
    "failOnDataLoss",
    "minPartitions",
    "tags",
    "consumerGroup",
    "maxBytesPerPull",
)
_CANONICAL = {name.lower(): name for name in NAMES}

_OTHER_WORDS = {
    "topic": "subscribe",
    "topics": "subscribe",
    "path": "subscribe",
    "group": "consumerGroup",
    "subexpression": "tags",
    "kafka.bootstrap.servers": "nameserver",
    "namesrvaddr": "nameserver",
    "namesrv": "nameserver",
}
"""What the same thing is called elsewhere."""

QueueOffsets = Mapping[MessageQueue, int]


@dataclass(frozen=True)
class Bound:
    """One side of a read: a moment, else an offset for each queue, else the same (-2, -1) for all."""

    everywhere: int
    by_queue: QueueOffsets | None = None
    timestamp_ms: int | None = None


@dataclass(frozen=True)
class ReadOptions:
    """Options of a batch read, checked."""

    nameserver: str
    topics: tuple[str, ...]
    start: Bound
    end: Bound
    fail_on_data_loss: bool = True
    min_partitions: int = 1
    tags: str = "*"
    group: str = GROUP_DEFAULT
    pull_bytes_max: int = PULL_BYTES_DEFAULT


def parse_options(given: Mapping[str, str]) -> ReadOptions:
    options = _known(given)
    topics = _topics(_required(options, "subscribe"))
    nameserver = ";".join(parse_addresses(_required(options, "nameserver")))
    start = _bound(options, "starting", EARLIEST, topics)
    end = _bound(options, "ending", LATEST, topics)
    if start.everywhere == LATEST:
        raise ConfigError("startingOffsets=latest leaves nothing to read in a batch: say earliest or offsets")
    if end.everywhere == EARLIEST:
        raise ConfigError("endingOffsets=earliest leaves nothing to read: say latest or offsets")
    _check_order(start, end)
    return ReadOptions(
        nameserver=nameserver,
        topics=topics,
        start=start,
        end=end,
        fail_on_data_loss=_flag(options, "failOnDataLoss", True),
        min_partitions=_number(options, "minPartitions", 1, 1, PARTITIONS_MAX),
        tags=Subscription.parse("", options.get("tags")).expression,
        group=check_group(options.get("consumerGroup", GROUP_DEFAULT)),
        pull_bytes_max=_number(options, "maxBytesPerPull", PULL_BYTES_DEFAULT, 1, PULL_BYTES_MAX),
    )


# ---- names and plain values ------------------------------------------------------------------------------------


def _known(given: Mapping[str, str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in given.items():
        canonical = _CANONICAL.get(name.lower())
        if canonical is None:
            raise ConfigError(f"there is no option {name!r}{_hint(name.lower())}")
        options[canonical] = str(value).strip()
    return options


def _hint(name: str) -> str:
    if name in _OTHER_WORDS:
        return f": it is called {_OTHER_WORDS[name]} here"
    close = difflib.get_close_matches(name, _CANONICAL, n=1)
    return f": did you mean {_CANONICAL[close[0]]}?" if close else f"; there are {', '.join(NAMES)}"


def _required(options: Mapping[str, str], name: str) -> str:
    value = options.get(name)
    if not value:
        raise ConfigError(f"the option {name} is missing")
    return value


def _topics(text: str) -> tuple[str, ...]:
    topics = [check_topic(topic.strip()) for topic in text.split(",") if topic.strip()]
    if not topics:
        raise ConfigError("subscribe names no topic")
    return tuple(dict.fromkeys(topics))


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    text = options.get(name, str(default)).lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name} is true or false, not {options[name]!r}")
    return text == "true"


def _number(options: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    text = options.get(name)
    if text is None:
        return default
    number = int(text) if text.isdecimal() and len(text) < 20 else -1
    if not low <= number <= high:
        raise ConfigError(f"{name} is a number from {low} to {high}, not {text!r}")
    return number


# ---- the two ends ----------------------------------------------------------------------------------------------


def _bound(options: Mapping[str, str], side: str, default: int, topics: tuple[str, ...]) -> Bound:
    """A timestamp wins over offsets, as with Kafka."""
    if f"{side}Timestamp" in options:
        return Bound(default, timestamp_ms=_number(options, f"{side}Timestamp", 0, 0, LAST_MS))
    name = f"{side}Offsets"
    text = options.get(name)
    if text is None:
        return Bound(default)
    if text.lower() in ("earliest", "latest"):
        return Bound(EARLIEST if text.lower() == "earliest" else LATEST)
    return Bound(default, by_queue=parse_offsets(text, name, topics))


def parse_offsets(text: str, name: str, topics: tuple[str, ...]) -> QueueOffsets:
    """`{"topic": {"broker": {"queue": offset}}}`, with -2 for the earliest and -1 for the latest."""
    shape = f'{name} is earliest, latest or {{"topic": {{"broker": {{"queue": offset}}}}}}'
    if len(text) > OFFSETS_TEXT_MAX:
        raise ConfigError(f"{name} is longer than {OFFSETS_TEXT_MAX} characters")
    try:
        tree = json.loads(text)
        offsets = {
            MessageQueue(topic, broker, int(queue)): offset
            for topic, brokers in tree.items()
            for broker, queues in brokers.items()
            for queue, offset in queues.items()
        }
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{shape}; this cannot be read: {text[:200]!r}") from error
    for queue, offset in offsets.items():
        if not isinstance(offset, int) or isinstance(offset, bool) or not EARLIEST <= offset < 2**63:
            raise ConfigError(f"{shape}; {queue} has {offset!r}")
        if queue.topic not in topics:
            raise ConfigError(f"{name} names the topic {queue.topic!r}, subscribe does not")
    return offsets


def _check_order(start: Bound, end: Bound) -> None:
    if (start.timestamp_ms or 0) > (LAST_MS if end.timestamp_ms is None else end.timestamp_ms):
        raise ConfigError("startingTimestamp is later than endingTimestamp")
    for queue, offset in (start.by_queue or {}).items():
        last = (end.by_queue or {}).get(queue, LATEST)
        if offset == LATEST:
            raise ConfigError(f"startingOffsets: -1 (latest) for {queue} leaves nothing to read in a batch")
        if offset >= 0 and 0 <= last < offset:
            raise ConfigError(f"{queue} would end at {last}, before it starts at {offset}")
    for queue, offset in (end.by_queue or {}).items():
        if offset == EARLIEST:
            raise ConfigError(f"endingOffsets: -2 (earliest) for {queue} leaves nothing to read")
