"""Bulk writes that are stored once: bolide's own code 30001."""

import dataclasses

from bolide.wire.schema import Header, Int, Long, wire


@dataclasses.dataclass(frozen=True)
class BeginWrite(Header):
    """A part of a writer's batch begins, or begins again, to write to a topic.

    `brokers` are those that the batch may write to, joined by commas; `delays` tells that some of its messages wait.
    """

    writer: str
    batch: Long
    partition: Int
    topic: str
    brokers: str
    delays: bool = wire("delays", default=False)


@dataclasses.dataclass(frozen=True)
class WriteBegun(Header):
    """Whether nothing of it can be stored yet; the body has the ranges where it would be."""

    fresh: bool
    brokers: str
