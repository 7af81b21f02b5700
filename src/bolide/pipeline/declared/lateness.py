"""How late rows may come that a step gets: what sources and steps behind it say.

Spark takes one word on that for every row that goes through a query, and refuses a second one.  So a step that keeps
state says it only where nothing behind it has.
"""

from collections.abc import Iterator

from bolide.pipeline.declared.definition import (
    Dedup,
    Definition,
    Join,
    Source,
    Step,
    Watermark,
    span_ms,
)


def said_behind(definition: Definition, name: str) -> Iterator[tuple[Source | Step, Watermark]]:
    """All that a source or step and those that it reads say, the nearest first."""
    for part in definition.behind(name):
        if part.watermark is not None:
            yield part, part.watermark
        elif isinstance(part, Step) and isinstance(part.work, Dedup):
            yield part, part.work.watermark


def wanted_of(work: Dedup | Join) -> list[Watermark]:
    """What a step would say itself about each of its inputs."""
    return [work.watermark] if isinstance(work, Dedup) else list(work.watermarks)


def is_same(work: Dedup | Join, wanted: Watermark, said: Watermark) -> bool:
    """Whether a step can do with what was said; a join that does not say how late takes what it gets."""
    takes_any_delay = isinstance(work, Join) and work.late is None
    return wanted.column.lower() == said.column.lower() and (
        takes_any_delay or span_ms(wanted.delay) == span_ms(said.delay)
    )
