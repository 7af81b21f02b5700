"""The two ends of a read, as options say them: words, offsets or times by queue, one time for all.

By queue they have RocketMQ-Spark's form, `{"topic": {"broker": {"queue": number}}}`, or Kafka's, which leaves the
broker out: that will do for a topic that one broker has.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bolide.model.errors import ConfigError
from bolide.model.limits.spark import SPARK_OFFSETS_TEXT_MAX
from bolide.model.moments import looks_like_seconds
from bolide.model.numbers import is_int64, parse_count
from bolide.model.offsets import MessageQueue
from bolide.pipeline.option_table import OptionTexts, Use, quoted

EARLIEST = -2
LATEST = -1
LAST_MS = 2**63 - 1
QUEUE_ID_MAX = 2**31 - 1
ANY_BROKER = ""
"""In place of a broker's name, where Kafka's form was used."""

BY_QUEUE = '{"topic": {"broker": {"queue": %s}}}'


class NumbersByQueue(dict[MessageQueue, int]):
    """A number for each queue that the user named."""

    def of(self, queue: MessageQueue) -> int | None:
        return self.get(queue, self.get(MessageQueue(queue.topic, ANY_BROKER, queue.queue_id)))

    def unnamed(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        return sorted(queue for queue in queues if self.of(queue) is None)

    def unknown(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        """Those that the user named and nobody has."""
        there = set(queues)
        there |= {MessageQueue(queue.topic, ANY_BROKER, queue.queue_id) for queue in there}
        return sorted(set(self) - there)

    def ambiguous(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        """Queues of several brokers that were named as one."""
        unnamed = [queue for queue in queues if queue not in self]
        counts = Counter((queue.topic, queue.queue_id) for queue in unnamed)
        return sorted(queue for queue in unnamed if counts[queue.topic, queue.queue_id] > 1)


@dataclass(frozen=True)
class Bound:
    """One side of a read: a moment for all queues, else one for each, else offsets, else the same (-2, -1) for all."""

    name: str
    everywhere: int
    by_queue: NumbersByQueue | None = None
    timestamp_ms: int | None = None
    times_by_queue: NumbersByQueue | None = None

    @property
    def named(self) -> NumbersByQueue | None:
        """What was said queue by queue."""
        return self.times_by_queue if self.times_by_queue is not None else self.by_queue

    def moment_of(self, queue: MessageQueue) -> int | None:
        if self.timestamp_ms is not None:
            return self.timestamp_ms
        return None if self.times_by_queue is None else self.times_by_queue.of(queue)

    def offset_of(self, queue: MessageQueue) -> int:
        """-2 and -1 among them.  A queue that was not named has been refused before."""
        found = self.everywhere if self.by_queue is None else self.by_queue.of(queue)
        return self.everywhere if found is None else found


def read_bound(options: OptionTexts, side: str, use: Use) -> Bound:
    """A timestamp wins over timestamps by queue, and these over offsets, as with Kafka."""
    earliest_by_default = side == "starting" and use is Use.BATCH
    default = EARLIEST if earliest_by_default else LATEST
    if f"{side}Timestamp" in options:
        name = f"{side}Timestamp"
        return Bound(name, default, timestamp_ms=_moment_ms(name, options.number(name, 0, LAST_MS, 0)))
    name = f"{side}OffsetsByTimestamp"
    if (text := options.get(name)) is not None:
        times = parse_by_queue(text, name, BY_QUEUE % "milliseconds", 0)
        for moment_ms in times.values():
            _moment_ms(name, moment_ms)
        return Bound(name, default, times_by_queue=times)
    name = f"{side}Offsets"
    text = options.get(name)
    if text is None or text.lower() in ("earliest", "latest"):
        word = default if text is None else EARLIEST if text.lower() == "earliest" else LATEST
        return Bound(name, _allowed(name, word, use))
    shape = f"earliest, latest or {BY_QUEUE % 'offset'}"
    offsets = parse_by_queue(text, name, shape, EARLIEST)
    for queue, offset in offsets.items():
        _allowed(name, offset, use, f": {offset} for {queue}")
    return Bound(name, default, by_queue=offsets)


def _allowed(name: str, offset: int, use: Use, where: str = "") -> int:
    if use is Use.BATCH and name == "startingOffsets" and offset == LATEST:
        raise ConfigError(
            f"{name}{where or '=latest'} leaves nothing to read in a batch: say earliest or offsets"
        )
    if name == "endingOffsets" and offset == EARLIEST:
        raise ConfigError(f"{name}{where or '=earliest'} leaves nothing to read: say latest or offsets")
    return offset


def _moment_ms(name: str, moment_ms: int) -> int:
    """0 is the beginning; what would be a moment of 1970 to 1973 was meant in seconds."""
    if looks_like_seconds(moment_ms):
        raise ConfigError(f"{name} is in milliseconds, and {moment_ms} looks like seconds: {moment_ms}000?")
    return moment_ms


def read_json(name: str, text: str, shape: str) -> dict[str, Any]:
    if len(text) > SPARK_OFFSETS_TEXT_MAX:
        raise ConfigError(f"{name} is longer than {SPARK_OFFSETS_TEXT_MAX} characters")
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name} is {shape}; this cannot be read: {quoted(text)}") from error
    if not isinstance(tree, dict):
        raise ConfigError(f"{name} is {shape}; this cannot be read: {quoted(text)}")
    return tree


def parse_by_queue(text: str, name: str, shape: str, least: int) -> NumbersByQueue:
    tree = read_json(name, text, shape)
    found: dict[MessageQueue, Any] = {}
    try:
        for topic, inner in tree.items():
            for broker, queues in inner.items():
                if isinstance(queues, Mapping):
                    found.update(
                        {MessageQueue(topic, broker, queue_id(at)): number for at, number in queues.items()}
                    )
                else:
                    found[MessageQueue(topic, ANY_BROKER, queue_id(broker))] = queues
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"{name} is {shape}; this cannot be read: {quoted(text)}") from error
    for queue, number in found.items():
        if not is_int64(number) or number < least:
            raise ConfigError(f"{name} is {shape}; {queue} has {quoted(number)}")
    return NumbersByQueue(found)


def queue_id(text: str) -> int:
    number = parse_count(text)
    if number is None or number > QUEUE_ID_MAX:
        raise ValueError(f"{text!r} is no queue")
    return number


def check_order(start: Bound, end: Bound) -> None:
    if (start.timestamp_ms or 0) > (LAST_MS if end.timestamp_ms is None else end.timestamp_ms):
        raise ConfigError(
            f"startingTimestamp ({start.timestamp_ms}) is later than endingTimestamp ({end.timestamp_ms})"
        )
    starts, ends = start.named, end.named
    if starts is None or ends is None or (start.by_queue is None) != (end.by_queue is None):
        return
    if start.timestamp_ms is not None or end.timestamp_ms is not None:
        return
    for queue, first in starts.items():
        last = ends.get(queue, LATEST)
        if first >= 0 and 0 <= last < first:
            raise ConfigError(f"{queue} would end at {last}, before it starts at {first}")
