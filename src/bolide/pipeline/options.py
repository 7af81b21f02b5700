"""Options of a read: what they are called, what they mean, and which combinations make no sense.

Names and meanings follow Spark's Kafka source, the form of offsets follows RocketMQ-Spark.  Case does not matter.
A name that is not known is an error: a misspelled option must not be a read of the wrong range.  Everything that is
wrong is said at once.
"""

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from bolide.client.checks import subscription
from bolide.model.addresses import parse_addresses
from bolide.model.errors import BolideError, ConfigError
from bolide.model.names import check_group, check_topic
from bolide.model.numbers import parse_count
from bolide.model.offsets import MessageQueue
from bolide.model.spark_limits import SPARK_OFFSETS_TEXT_MAX, SPARK_PULL_BYTES_MAX, SPARK_TASKS_MAX
from bolide.pipeline.columns_twin import BAD_BODIES

EARLIEST = -2
LATEST = -1

LAST_MS = 2**63 - 1
SECONDS_FROM, MILLISECONDS_FROM = 10**8, 10**11
"""Both are in 1973: between them lie the seconds of this century and the milliseconds of a time without messages."""

QUEUE_ID_MAX = 2**31 - 1
PULL_BYTES_DEFAULT = 4 * 1024 * 1024
GROUP_DEFAULT = "spark-reader"
SHOWN_MAX = 200

NAMES = (
    "nameserver",
    "subscribe",
    "startingOffsets",
    "startingTimestamp",
    "endingOffsets",
    "endingTimestamp",
    "failOnDataLoss",
    "badBodies",
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
    "paths": "subscribe",
    "assign": "subscribe",
    "subscribepattern": "subscribe",
    "group": "consumerGroup",
    "groupid": "consumerGroup",
    "kafka.group.id": "consumerGroup",
    "subexpression": "tags",
    "tag": "tags",
    "kafka.bootstrap.servers": "nameserver",
    "namesrvaddr": "nameserver",
    "namesrv": "nameserver",
}
"""What the same thing is called elsewhere."""

_OF_STREAMS = frozenset({"maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay"})

QueueOffsets = Mapping[MessageQueue, int]
T = TypeVar("T")


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
    bad_bodies: str = BAD_BODIES[0]
    min_partitions: int = 1
    tags: str = "*"
    group: str = GROUP_DEFAULT
    pull_bytes_max: int = PULL_BYTES_DEFAULT


def parse_options(given: Mapping[str, str]) -> ReadOptions:
    """The options of a read; `ConfigError` says everything that is wrong with them."""
    wrong = _Complaints()
    hear = wrong.hear
    options = _known(given, wrong)
    nothing: tuple[str, ...] = ()
    topics = hear(nothing, _topics, options)
    start = hear(Bound(EARLIEST), _bound, options, "starting", EARLIEST, topics)
    end = hear(Bound(LATEST), _bound, options, "ending", LATEST, topics)
    hear(None, _check_order, start, end)
    found = ReadOptions(
        nameserver=hear("", _nameserver, options),
        topics=topics,
        start=start,
        end=end,
        fail_on_data_loss=hear(True, _flag, options, "failOnDataLoss", True),
        bad_bodies=hear("", _choice, options, "badBodies", BAD_BODIES),
        min_partitions=hear(0, _number, options, "minPartitions", 1, SPARK_TASKS_MAX, 1),
        tags=hear("", _named, "tags", _tags, options),
        group=hear("", _named, "consumerGroup", check_group, options.get("consumerGroup", GROUP_DEFAULT)),
        pull_bytes_max=hear(
            0, _number, options, "maxBytesPerPull", 1, SPARK_PULL_BYTES_MAX, PULL_BYTES_DEFAULT
        ),
    )
    wrong.say()
    return found


class _Complaints:
    """Goes on after an error, so that the user hears of all of them at once."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def hear(self, otherwise: T, check: Callable[..., T], *arguments: Any) -> T:
        """What the check returns, or something in its place that nobody will ever see."""
        try:
            return check(*arguments)
        except ConfigError as error:
            self.add(str(error))
            return otherwise

    def add(self, text: str) -> None:
        self._texts.append(text)

    def say(self) -> None:
        if len(self._texts) > 1:
            self._texts.insert(0, f"{len(self._texts)} things are wrong with the options:")
        if self._texts:
            raise ConfigError("\n  ".join(self._texts))


# ---- names and plain values ------------------------------------------------------------------------------------


def _known(given: Mapping[str, str], wrong: _Complaints) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in given.items():
        canonical = _CANONICAL.get(name.lower())
        if canonical is None:
            wrong.add(f"there is no option {_quoted(name)}{_hint(name.lower())}")
        else:
            options[canonical] = str(value).strip()
    return options


def _hint(name: str) -> str:
    if name in _OTHER_WORDS:
        return f": it is called {_OTHER_WORDS[name]} here"
    if name in _OF_STREAMS:
        return ": it is about streams, which this source does not read yet"
    close = difflib.get_close_matches(name[:SHOWN_MAX], _CANONICAL, n=1, cutoff=0.7)
    return f": did you mean {_CANONICAL[close[0]]}?" if close else f"; there are {', '.join(NAMES)}"


def _quoted(value: object) -> str:
    """What the user wrote, for an error: escaped, and not all of it when it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"


def _required(options: Mapping[str, str], name: str, example: str) -> str:
    value = options.get(name)
    if not value:
        raise ConfigError(f'the option {name} is missing: .option("{name}", "{example}")')
    return value


def _named(name: str, check: Callable[..., T], *arguments: Any) -> T:
    """For checks that do not know that they are asked about an option."""
    try:
        return check(*arguments)
    except BolideError as error:
        raise ConfigError(f"{name}: {error}") from error


def _nameserver(options: Mapping[str, str]) -> str:
    text = _required(options, "nameserver", "127.0.0.1:9876")
    return ";".join(_named("nameserver", parse_addresses, text))


def _topics(options: Mapping[str, str]) -> tuple[str, ...]:
    names = [name.strip() for name in _required(options, "subscribe", "topic").split(",")]
    topics = [_named("subscribe", check_topic, name) for name in names if name]
    if not topics:
        raise ConfigError(f"subscribe: {_quoted(options['subscribe'])} names no topic")
    return tuple(dict.fromkeys(topics))


def _tags(options: Mapping[str, str]) -> str:
    return subscription("", options.get("tags", "*")).expression


def _flag(options: Mapping[str, str], name: str, default: bool) -> bool:
    return _choice(options, name, ("true", "false") if default else ("false", "true")) == "true"


def _choice(options: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    """One of some words; the first is the default."""
    text = options.get(name, choices[0])
    if text.lower() not in choices:
        *others, last = choices
        raise ConfigError(f"{name} is {', '.join(others)} or {last}, not {_quoted(text)}")
    return text.lower()


def _number(options: Mapping[str, str], name: str, low: int, high: int, default: int) -> int:
    text = options.get(name)
    if text is None:
        return default
    number = parse_count(text)
    if number is None or not low <= number <= high:
        raise ConfigError(f"{name} is a number from {low} to {high}, not {_quoted(text)}")
    return number


# ---- the two ends ----------------------------------------------------------------------------------------------


def _bound(options: Mapping[str, str], side: str, default: int, topics: tuple[str, ...]) -> Bound:
    """A timestamp wins over offsets, as with Kafka."""
    if f"{side}Timestamp" in options:
        return Bound(default, timestamp_ms=_moment_ms(options, f"{side}Timestamp"))
    name = f"{side}Offsets"
    text = options.get(name)
    if text is None or text.lower() == ("earliest" if default == EARLIEST else "latest"):
        return Bound(default)
    if text.lower() == "latest":
        raise ConfigError("startingOffsets=latest leaves nothing to read in a batch: say earliest or offsets")
    if text.lower() == "earliest":
        raise ConfigError("endingOffsets=earliest leaves nothing to read: say latest or offsets")
    return Bound(default, by_queue=parse_offsets(text, name, topics))


def _moment_ms(options: Mapping[str, str], name: str) -> int:
    """0 is the beginning; what would be a moment of 1970 to 1973 was meant in seconds."""
    moment_ms = _number(options, name, 0, LAST_MS, 0)
    if SECONDS_FROM <= moment_ms < MILLISECONDS_FROM:
        raise ConfigError(f"{name} is in milliseconds, and {moment_ms} looks like seconds: {moment_ms}000?")
    return moment_ms


def parse_offsets(text: str, name: str, topics: tuple[str, ...]) -> QueueOffsets:
    """`{"topic": {"broker": {"queue": offset}}}`, with -2 for the earliest and -1 for the latest."""
    shape = f'{name} is earliest, latest or {{"topic": {{"broker": {{"queue": offset}}}}}}'
    if len(text) > SPARK_OFFSETS_TEXT_MAX:
        raise ConfigError(f"{name} is longer than {SPARK_OFFSETS_TEXT_MAX} characters")
    try:
        tree = json.loads(text)
        offsets = {
            MessageQueue(topic, broker, _queue_id(queue)): offset
            for topic, brokers in tree.items()
            for broker, queues in brokers.items()
            for queue, offset in queues.items()
        }
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{shape}; this cannot be read: {_quoted(text)}") from error
    for queue, offset in offsets.items():
        if not isinstance(offset, int) or isinstance(offset, bool) or not EARLIEST <= offset < 2**63:
            raise ConfigError(f"{shape}; {queue} has {_quoted(offset)}")
        if topics and queue.topic not in topics:
            raise ConfigError(f"{name} names the topic {_quoted(queue.topic)}, subscribe does not")
    return offsets


def _queue_id(text: str) -> int:
    number = parse_count(text)
    if number is None or number > QUEUE_ID_MAX:
        raise ValueError(f"{text!r} is no queue")
    return number


def _check_order(start: Bound, end: Bound) -> None:
    if (start.timestamp_ms or 0) > (LAST_MS if end.timestamp_ms is None else end.timestamp_ms):
        raise ConfigError(
            f"startingTimestamp ({start.timestamp_ms}) is later than endingTimestamp ({end.timestamp_ms})"
        )
    for queue, offset in (start.by_queue or {}).items():
        last = (end.by_queue or {}).get(queue, LATEST)
        if offset == LATEST:
            raise ConfigError(f"startingOffsets: -1 (latest) for {queue} leaves nothing to read in a batch")
        if offset >= 0 and 0 <= last < offset:
            raise ConfigError(f"{queue} would end at {last}, before it starts at {offset}")
    for queue, offset in (end.by_queue or {}).items():
        if offset == EARLIEST:
            raise ConfigError(f"endingOffsets: -2 (earliest) for {queue} leaves nothing to read")
