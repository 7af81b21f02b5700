"""What a run of an archive is asked to do; known without Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bolide.admin.queues import queues_of
from bolide.model.offsets import MessageQueue
from bolide.pipeline.access import ClusterAccess
from bolide.wire.bodies.topic import QueueBounds

Ends = Mapping[MessageQueue, QueueBounds]


@dataclass(frozen=True)
class Wanted:
    """What a run is asked to do."""

    topics: Sequence[str]
    cluster: ClusterAccess
    trigger: str
    once: bool = False
    allow_gaps: bool = False
    """Go on when messages have expired before they were archived."""
    batch_bytes: int | None = None
    target_bytes: int | None = None
    """Compact, to files of this size."""

    async def ends(self) -> Ends:
        """Of all queues that can be asked about; `RouteNotFound` for a topic that is not there."""
        async with self.cluster.admin() as servers:
            return {
                one.place.queue: one.bounds
                for topic in self.topics
                for one in await queues_of(servers, topic)
            }
