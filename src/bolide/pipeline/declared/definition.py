"""A pipeline as values: what is read, what is made of it, what is expected of it, and where it goes.

Nothing here knows of YAML or of Spark.  Every value has the line that it comes from, for errors.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from graphlib import TopologicalSorter
from pathlib import Path

DELTA = "delta"
"""As a sink, bolide's own (`delta_sink.py`); as a source it is Spark's, with its JAR."""

TOPIC_FORMAT = "rocketmq"
"""Of sources and sinks that are topics."""

AVAILABLE_NOW = "available-now"

UNITS_MS = {
    "milliseconds": 1,
    "seconds": 1000,
    "minutes": 60_000,
    "hours": 3_600_000,
    "days": 86_400_000,
}
"""Of spans, as Spark is told them."""

STORED = "storeTimestamp"
"""The column of a topic that tells time for steps that keep state, unless they name another."""


class Action(StrEnum):
    """What becomes of a row that is not as expected."""

    WARN = "warn"
    DROP = "drop"
    QUARANTINE = "quarantine"
    FAIL = "fail"


@dataclass(frozen=True)
class Expectation:
    """A condition in SQL that is true for good rows; a row for which it is null is not good."""

    name: str
    condition: str
    action: Action
    line: int


@dataclass(frozen=True)
class Watermark:
    """How late a row may come by a column of time."""

    column: str
    delay: str


@dataclass(frozen=True)
class Source:
    """A stream, or with `is_stream` false a table that is read once for each run."""

    name: str
    format: str
    options: Mapping[str, str]
    line: int
    schema: str | None = None
    is_stream: bool = True
    watermark: Watermark | None = None
    expectations: Sequence[Expectation] = ()


@dataclass(frozen=True)
class CodePlace:
    """Something of a Python file; without a file it is an object that the definition holds already."""

    name: str
    file: Path | None = None
    object: object = None

    def __str__(self) -> str:
        return self.name if self.file is None else f"{self.file}:{self.name}"


@dataclass(frozen=True)
class Sql:
    """A query over sources and steps, which it names as tables."""

    text: str
    line: int
    """Where the text begins."""


@dataclass(frozen=True)
class Function:
    """A Python function that takes frames and returns one."""

    code: CodePlace


@dataclass(frozen=True)
class Stateful:
    """A `StatefulProcessor` of Spark, for each key."""

    code: CodePlace
    key: Sequence[str]
    schema: str
    time_mode: str
    output_mode: str


class JoinType(StrEnum):
    """What becomes of a row of the left side without a match: with `left` it goes on alone."""

    INNER = "inner"
    LEFT = "left"


@dataclass(frozen=True)
class Dedup:
    """The first row of all that say the same; state of a row is kept for as long as another one may come."""

    by: str
    """`key`, `id`, `body` or an expression in SQL; a row for which it is null is like no other."""
    within: str
    late: str | None
    time: str

    @property
    def watermark(self) -> Watermark:
        """Spark drops duplicates for as long as rows may come late: there is one span for both."""
        return Watermark(self.time, longer(self.within, self.late or self.within))

    def __str__(self) -> str:
        return f"dedup by {self.by} within {self.within} of {self.time}{_late(self.late)}"


@dataclass(frozen=True)
class Join:
    """Pairs of rows of two streams that are no further apart in time than `within`."""

    on: str
    """`key`, a column that both have, or a condition in SQL."""
    within: str
    late: str | None
    times: tuple[str, str]
    """Of left and right."""
    type: JoinType
    select: str | None
    """In SQL; without it a row is two structs, named as the sides."""

    @property
    def watermarks(self) -> Sequence[Watermark]:
        return [Watermark(time, self.late or self.within) for time in self.times]

    def __str__(self) -> str:
        times = " and ".join(dict.fromkeys(self.times))
        return f"{self.type} join on {self.on} within {self.within} of {times}{_late(self.late)}"


def _late(late: str | None) -> str:
    return "" if late is None else f", at most {late} late"


def longer(span: str, other: str) -> str:
    return max(span, other, key=span_ms)


def span_ms(span: str) -> int:
    """Of a span as Spark is told it: `10 minutes`."""
    count, _, unit = span.partition(" ")
    return int(count) * UNITS_MS.get(unit, 0) if count.isdigit() else 0


Work = Sql | Function | Stateful | Dedup | Join


@dataclass(frozen=True)
class Step:
    name: str
    work: Work
    inputs: Sequence[str]
    """Sources and steps that it reads, in order."""
    line: int
    watermark: Watermark | None = None
    expectations: Sequence[Expectation] = ()


@dataclass(frozen=True)
class Sink:
    name: str
    input: str
    format: str
    options: Mapping[str, str]
    line: int
    output_mode: str = "append"
    partition_by: Sequence[str] = ()
    trigger: str | None = None
    """Its own, where it is not the pipeline's."""


@dataclass(frozen=True)
class Quarantine:
    """Where rows go that an expectation sends there: a folder per step, or one topic."""

    format: str
    options: Mapping[str, str]
    line: int


@dataclass(frozen=True)
class Definition:
    name: str
    file: Path
    sources: Mapping[str, Source]
    steps: Mapping[str, Step]
    sinks: Mapping[str, Sink]
    quarantine: Quarantine | None = None
    trigger: str = "1 second"
    checkpoint: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    is_named: bool = True
    """By its author, and not after its file."""

    def place(self, line: int) -> str:
        """Before what is said about a line; nothing for a definition that no file has."""
        return f"{self.file.name}:{line}: " if line else ""

    @property
    def folder(self) -> Path:
        return self.file.parent

    @property
    def parts(self) -> Sequence[Source | Step]:
        """What has rows: sources, then steps."""
        return [*self.sources.values(), *self.steps.values()]

    def part(self, name: str) -> Source | Step | None:
        """A source or step; case does not matter, as in SQL."""
        return self._parts.get(name.lower())

    @cached_property
    def _parts(self) -> Mapping[str, Source | Step]:
        return {one.name.lower(): one for one in self.parts}

    def expecting(self) -> Sequence[Source | Step]:
        """Sources and steps with expectations."""
        return [one for one in self.parts if one.expectations]

    def quarantining(self) -> Sequence[Source | Step]:
        return [
            one
            for one in self.expecting()
            if any(expected.action is Action.QUARANTINE for expected in one.expectations)
        ]

    def behind(self, name: str) -> "Iterator[Source | Step]":
        """A source or step and all that it reads, each once."""
        todo, seen = [name], set[str]()
        while todo:
            part = self.part(todo.pop())
            if part is not None and part.name not in seen:
                seen.add(part.name)
                yield part
                todo += part.inputs if isinstance(part, Step) else ()

    def in_order(self) -> Sequence[Source | Step]:
        """All parts, each behind those that it reads; `graphlib.CycleError` where there is no such order."""
        order = TopologicalSorter[str]()
        for step in self.steps.values():
            order.add(
                step.name, *(part.name for name in step.inputs if isinstance(part := self.part(name), Step))
            )
        return [*self.sources.values(), *(self.steps[name] for name in order.static_order())]


@dataclass(frozen=True, order=True)
class Problem:
    """Something about a file that is wrong, or with `is_warning` only odd."""

    line: int
    text: str
    is_warning: bool = False
