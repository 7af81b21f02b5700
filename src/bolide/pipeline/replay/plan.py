"""A replay as values: what is read, slice by slice, and where it goes.  Asks nobody, and knows no Spark.

A replay is cut into slices, which are sent one after the other.  A slice is always the same messages in the same tasks,
so that the brokers know those again that they have of it (`account.py`).  Of topics a slice is a part of each queue, by
offsets; of an archive it is a span of time.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from bolide.model.errors import ConfigError
from bolide.model.limits.spark import REPLAY_SLICE_MESSAGES_MAX, REPLAY_SLICES_MAX
from bolide.model.offsets import MessageQueue
from bolide.pipeline.places import Mark
from bolide.pipeline.ranges import QueueRange

KIND = "bolide replay"
VERSION = 1

SLICE_SECONDS = 30
"""What is sent within this time is a slice, where there is a rate."""

SLICE_MESSAGES_MIN = 100
TASK_RATE_MAX = 5_000
"""Messages a second that one task is asked for; more are shared by several."""

TASKS_MAX = 64

NAMED_MAX = 20
"""Messages that cannot be sent are counted, and so many of them named."""


@dataclass(frozen=True)
class Selection:
    """Which messages are meant: all conditions together.  Times are those at which brokers stored them."""

    from_ms: int | None = None
    until_ms: int | None = None
    """The first moment that is not meant any more."""
    tags: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    where: str | None = None
    """SQL of Spark's, over the columns of a topic."""

    @property
    def leaves_out(self) -> bool:
        """Whether less may be meant than lies between the ends."""
        return bool(self.tags or self.keys or self.where)


@dataclass(frozen=True)
class Asked:
    """What somebody wants; the same words again go on with the same replay."""

    to: str
    topics: tuple[str, ...] = ()
    archive: str | None = None
    selection: Selection = Selection()
    words: Mapping[str, str] | None = None
    """The times as they were written: `2h` is another moment tomorrow, and the same replay."""
    keep_order: bool = False
    rate: int | None = None
    nameserver: str = ""
    """Of the cluster: offsets of another one mean other messages."""

    def differs(self, other: "Asked") -> list[str]:
        """In what, as options are called.  A rate may change on the way."""
        mine, theirs = self._essence(), other._essence()
        return [name for name, value in mine.items() if value != theirs[name]]

    def _essence(self) -> dict[str, Any]:
        chosen, words = self.selection, self.words or {}
        return {
            "--to": self.to,
            "--from-topic": self.topics,
            "--from-archive": self.archive,
            "--from": words.get("from"),
            "--until": words.get("until"),
            "--tag": chosen.tags,
            "--key": chosen.keys,
            "--where": chosen.where,
            "--keep-order": self.keep_order,
            "--nameserver": self.nameserver,
        }


@dataclass(frozen=True)
class Replay:
    """`ranges` are of topics, `moments_ms` of an archive: the first moment of each slice, and the end of the last."""

    id: str
    writer: str
    """Under this name brokers keep what they have of it; no other replay has it."""
    asked: Asked
    made_ms: int
    messages: int
    """How many there are at most: of an archive exactly, of topics before tags, keys and SQL are looked at."""
    slices: int
    tasks: int = 1
    ranges: tuple[QueueRange, ...] = ()
    marks: tuple[Mark | None, ...] = ()
    """The last message of each range, None where none was to be seen; older plans have no marks."""
    moments_ms: tuple[int, ...] = ()

    def ranges_of(self, first: int, end: int) -> list[QueueRange]:
        """What slices from one to before another have of each queue, which may be nothing.

        Queues are not all cut at the same places: of many short ones each slice has some.
        """

        def cut(at: int, one: QueueRange, slice_number: int) -> int:
            shift = at * self.slices // len(self.ranges)
            return one.begin + (one.length * slice_number + shift) // self.slices

        parts = [
            replace(one, begin=cut(at, one, first), end=cut(at, one, end))
            for at, one in enumerate(self.ranges)
        ]
        return [part for part in parts if part.length > 0]

    def is_empty(self, number: int) -> bool:
        """Whether a slice is known to have nothing."""
        return self.asked.archive is None and not self.ranges_of(number, number + 1)

    def span_of(self, first: int, end: int) -> tuple[int, int]:
        return self.moments_ms[first], self.moments_ms[end]


def slice_messages(rate: int | None) -> int:
    """How many messages a slice has, about.

    >>> slice_messages(None), slice_messages(100), slice_messages(1)
    (100000, 3000, 100)
    """
    if rate is None:
        return int(REPLAY_SLICE_MESSAGES_MAX)
    return max(SLICE_MESSAGES_MIN, min(rate * SLICE_SECONDS, int(REPLAY_SLICE_MESSAGES_MAX)))


def slices_of_ranges(messages: int, rate: int | None) -> int:
    return max(1, min(-(-messages // slice_messages(rate)), int(REPLAY_SLICES_MAX)))


def moments_of(counts: Mapping[int, int], step_ms: int, rate: int | None) -> list[int]:
    """Where slices of an archive begin, and the last one ends.  `counts` has messages by the beginning of each step.

    >>> moments_of({0: 80_000, 60_000: 80_000, 120_000: 10, 600_000: 5}, 60_000, None)
    [0, 60000, 660000]
    """
    most, held = slice_messages(rate), 0
    moments: list[int] = []
    for at, count in sorted(counts.items()):
        if not moments or held + count > most:
            moments.append(at)
            held = 0
        held += count
    if moments:
        moments.append(max(counts) + step_ms)
    if len(moments) > REPLAY_SLICES_MAX:
        raise ConfigError(
            f"that would be a replay of more than {REPLAY_SLICES_MAX} slices: give a higher --rate,"
            " or replay one part after the other with --from and --until"
        )
    return moments


def tasks_of(rate: int | None, cores: int) -> int:
    """As many as there are cores, but with a rate no more than that needs: each has its share of it.

    >>> tasks_of(None, 8), tasks_of(100, 8), tasks_of(12_000, 8)
    (8, 1, 3)
    """
    most = max(1, min(cores, TASKS_MAX))
    return most if rate is None else min(most, -(-rate // TASK_RATE_MAX))


# ---- as a file --------------------------------------------------------------------------------------------------


def encode_replay(replay: Replay) -> str:
    ranges = [[*_names(one.queue), one.begin, one.end] for one in replay.ranges]
    marks = [mark and [mark.store_time_ms, mark.log_offset] for mark in replay.marks]
    tree = {"kind": KIND, "version": VERSION, **asdict(replay), "ranges": ranges, "marks": marks}
    return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"


def decode_replay(text: str, name: str) -> Replay:
    """`ConfigError` for a file that is something else, or was changed beyond recognition."""
    try:
        tree = json.loads(text)
        if (tree.pop("kind"), tree.pop("version")) != (KIND, VERSION):
            raise ValueError("it is of another kind or version")
        asked = tree.pop("asked")
        chosen = asked.pop("selection")
        selection = Selection(**{**chosen, "tags": tuple(chosen["tags"]), "keys": tuple(chosen["keys"])})
        ranges = tuple(
            QueueRange(MessageQueue(topic, broker, int(queue)), int(begin), int(end))
            for topic, broker, queue, begin, end in tree.pop("ranges")
        )
        marks = tuple(mark and Mark(*map(int, mark)) for mark in tree.pop("marks", ()))
        moments_ms = tuple(map(int, tree.pop("moments_ms")))
        asked = Asked(**{**asked, "topics": tuple(asked["topics"])}, selection=selection)
        return Replay(**tree, asked=asked, ranges=ranges, marks=marks, moments_ms=moments_ms)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name} cannot be read as a replay ({error}): give another --id") from error


def _names(queue: MessageQueue) -> Iterator[Any]:
    yield from (queue.topic, queue.broker_name, queue.queue_id)
