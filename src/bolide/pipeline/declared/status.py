"""How far a pipeline has come: what its checkpoint says, held against what its brokers have.

Works while the pipeline runs and when it does not; Spark is not needed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bolide.admin.connection import AdminConnection
from bolide.admin.many import of_each
from bolide.admin.progress import QueueLag, queue_lag
from bolide.admin.queues import Place, queues_of
from bolide.model.errors import BolideError
from bolide.model.offsets import MessageQueue
from bolide.pipeline.access import ClusterAccess, read_cluster
from bolide.pipeline.declared.checkpoint import Batch, Checkpoint
from bolide.pipeline.declared.definition import TOPIC_FORMAT, Definition
from bolide.pipeline.declared.offsets import queue_offsets
from bolide.pipeline.option_table import OptionTexts, Use


@dataclass(frozen=True)
class QueryStatus:
    name: str
    done: Batch | None
    """The last batch that is done."""
    in_hand: int | None
    lags: Sequence[QueueLag]
    unknown: BolideError | None = None
    """Why there are no lags, where brokers could not be asked."""

    @property
    def behind(self) -> int:
        return sum(lag.behind for lag in self.lags)

    def waits_ms(self, now_ms: int) -> int:
        return max((lag.waits_ms(now_ms) for lag in self.lags), default=0)


@dataclass(frozen=True)
class PipelineStatus:
    name: str
    state: str
    """running, stopped, finished, failed, killed (it could not say how it ended), or never run."""
    error: str | None
    started_ms: int | None
    ended_ms: int | None
    queries: Sequence[QueryStatus]

    @property
    def is_broken(self) -> bool:
        """It did not end in order, and nobody has run it since."""
        return self.state in ("failed", "killed")


async def pipeline_status(definition: Definition, checkpoint: Checkpoint) -> PipelineStatus:
    told = checkpoint.read_state()
    queries: list[QueryStatus] = []
    for name in checkpoint.queries():
        done = checkpoint.last_done(name)
        offsets = _queues_of(done)
        try:
            lags, unknown = await _lags(definition, offsets), None
        except BolideError as error:
            lags, unknown = [], error
        queries.append(QueryStatus(name, done, checkpoint.in_hand(name), lags, unknown))
    return PipelineStatus(
        name=definition.name,
        state=_state(checkpoint, str(told.get("state", ""))),
        error=told.get("error"),
        started_ms=told.get("started_ms"),
        ended_ms=told.get("ended_ms"),
        queries=queries,
    )


def _state(checkpoint: Checkpoint, told: str) -> str:
    """What the lock says counts more than what was written down."""
    if checkpoint.is_held():
        return "running"
    if not told:
        return "stopped" if checkpoint.queries() else "never run"
    return "killed" if told == "running" else told


def _queues_of(batch: Batch | None) -> Mapping[MessageQueue, int]:
    found: dict[MessageQueue, int] = {}
    for offsets in batch.offsets if batch is not None else ():
        found |= queue_offsets(offsets) or {}
    return found


async def _lags(definition: Definition, offsets: Mapping[MessageQueue, int]) -> list[QueueLag]:
    """Queues that came after the batch count from their beginning."""
    found: list[QueueLag] = []
    for cluster, topics in _topics_by_cluster(definition, offsets).items():
        async with cluster.admin() as servers:
            for topic in topics:
                ends = {one.place: one.bounds for one in await queues_of(servers, topic)}

                async def one(item: tuple[Place, int], servers: AdminConnection = servers) -> QueueLag:
                    place, end = item
                    return await queue_lag(servers, place, offsets.get(place.queue, 0), end)

                found += await of_each([(place, bounds.offset_max) for place, bounds in ends.items()], one)
    return sorted(found, key=lambda lag: lag.queue)


def _topics_by_cluster(
    definition: Definition, offsets: Mapping[MessageQueue, int]
) -> Mapping[ClusterAccess, Sequence[str]]:
    """A topic is asked about where the source that names it reads; one found by a pattern, where the first reads."""
    sources = [source.options for source in definition.sources.values() if source.format == TOPIC_FORMAT]
    found: dict[ClusterAccess, list[str]] = {}
    for topic in sorted({queue.topic for queue in offsets}):
        options = next(
            (one for one in sources if topic in one.get("subscribe", "").replace(" ", "").split(",")),
            sources[0] if sources else {},
        )
        if options:
            found.setdefault(read_cluster(OptionTexts(options, Use.READ)), []).append(topic)
    return found
