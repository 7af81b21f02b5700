"""Stored = archived = consumed?  Asks brokers, manifest, files and a group, and says for every queue where they differ.

Changes nothing.  The ends of queues are asked first: what comes while an audit runs is not in it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bolide.admin.cluster import listed
from bolide.admin.connection import AdminConnection
from bolide.admin.many import of_each
from bolide.admin.queues import Place as QueuePlace
from bolide.admin.queues import group_offset, queues_of
from bolide.admin.topics import topic_route
from bolide.model.errors import NoBroker, RouteNotFound
from bolide.model.offsets import MessageQueue
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.archive.compare import Audit, Kind, QueueAudit, compare_archived, compare_consumed
from bolide.pipeline.archive.manifest import State
from bolide.pipeline.archive.place import Place
from bolide.pipeline.archive.spans import Span, common, without

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass
class Stored:
    """What brokers say."""

    ends: dict[MessageQueue, Span] = field(default_factory=dict)
    consumed: dict[MessageQueue, int | None] = field(default_factory=dict)


async def ask_stored(
    cluster: ClusterAccess, topics: Collection[str], group: str | None, *, archived: Collection[str] = ()
) -> Stored:
    """The ends of all queues, and where the group is; only of a topic that is archived none need be there."""
    found = Stored()
    async with cluster.admin() as servers:
        for topic in sorted(topics):
            try:
                await _check_masters(servers, topic)
                queues = await queues_of(servers, topic)
            except NoBroker:
                raise
            except RouteNotFound:
                if topic in archived:
                    continue
                raise
            for one in queues:
                bounds = one.bounds
                found.ends[one.place.queue] = Span(bounds.offset_min, bounds.offset_max)
            if group is not None:

                async def offset(place: QueuePlace) -> int | None:
                    return await group_offset(servers, place, group)

                places = [one.place for one in queues]
                offsets = await of_each(places, offset)
                found.consumed |= {place.queue: at for place, at in zip(places, offsets, strict=True)}
    return found


async def _check_masters(servers: AdminConnection, topic: str) -> None:
    """The queues of a broker of which only slaves are up are asked of nobody, and so would not be missed."""
    route = await topic_route(servers, topic)
    if away := [one.broker_name for one in route.brokers if one.master is None]:
        raise NoBroker(
            f"the topic {topic!r} cannot be compared: no master of {listed(away)} is up; start it and audit again"
        )


def compared(
    stored: Stored,
    state: State | None,
    topics: Collection[str],
    *,
    has_group: bool,
    deleted: Collection[str] = (),
) -> dict[MessageQueue, QueueAudit]:
    """Every queue that brokers or manifest have, as far as offsets tell."""
    archived = {} if state is None else {queue: state.spans(queue) for queue in state.ranges}
    gone = {*deleted} - {queue.topic for queue in stored.ends}
    found: dict[MessageQueue, QueueAudit] = {}
    for queue in sorted({*stored.ends, *(queue for queue in archived if queue.topic in topics)}):
        one = QueueAudit(
            queue,
            stored.ends.get(queue),
            archived.get(queue, ()),
            stored.consumed.get(queue),
            is_deleted=queue.topic in gone,
        )
        if state is not None:
            compare_archived(one)
        if has_group:
            compare_consumed(one)
        found[queue] = one
    return found


def prove(
    spark: "SparkSession",
    place: Place,
    state: State,
    queues: Mapping[MessageQueue, QueueAudit],
    *,
    topics: Collection[str] | None,
    deep: Stored | None = None,
    cluster: ClusterAccess,
) -> Audit:
    """The same with the files themselves, and with `deep` with the messages that brokers still have."""
    from bolide.pipeline.archive.proof import Files, prove_files, prove_stored

    found: dict[MessageQueue, QueueAudit] = dict(queues)

    def add(queue: MessageQueue, kind: Kind, spans: Sequence[Span]) -> None:
        one = found.setdefault(queue, QueueAudit(queue))
        if kind is Kind.DIFFERS:  # what is missing is said already
            spans = without(spans, [known.span for known in one.findings if known.kind is Kind.MISSING])
        one.add(kind, spans)

    files = Files(spark, place, state, topics)
    ranges = {
        queue: ranges for queue, ranges in state.ranges.items() if topics is None or queue.topic in topics
    }
    prove_files(files, ranges, add)
    if deep is not None:
        prove_stored(files.frame, cluster, deep.ends, _windows(deep, state, queues), add)
    return Audit([found[queue] for queue in sorted(found)], files.problems)


def _windows(
    stored: Stored, state: State, queues: Mapping[MessageQueue, QueueAudit]
) -> dict[MessageQueue, list[Span]]:
    """Where brokers and archive both have messages."""
    both = {
        queue: common([stored.ends[queue]], state.spans(queue)) for queue in queues if queue in stored.ends
    }
    return {queue: spans for queue, spans in both.items() if spans}
