"""What Spark's filters leave of a read: which topics, brokers, queues, offsets, times and tags.

Only the value.  How it is found in filters is in `filters.py`, which needs a Spark that has them.
"""

from dataclasses import dataclass

from bolide.model.offsets import MessageQueue


@dataclass(frozen=True)
class Pushed:
    """What all filters together leave; None leaves everything."""

    topic: frozenset[str] | None = None
    broker: frozenset[str] | None = None
    queue: frozenset[int] | None = None
    tags: frozenset[str] | None = None
    offset_min: int | None = None
    offset_max: int | None = None
    time_min_ms: int | None = None
    time_max_ms: int | None = None

    def has(self, queue: MessageQueue) -> bool:
        return (
            (self.topic is None or queue.topic in self.topic)
            and (self.broker is None or queue.broker_name in self.broker)
            and (self.queue is None or queue.queue_id in self.queue)
        )


EVERYTHING = Pushed()
