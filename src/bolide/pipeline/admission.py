"""How much of what is there a batch of a stream takes.  Pure: is told what there is, and the time.

The limits are Kafka's, and one of ours: bytes.  A limit is shared out by how much each queue has waiting, so that all
of them get done at about the same time; it is never exceeded, and no queue waits for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bolide.model.offsets import MessageQueue
from bolide.pipeline.options import Admission


@dataclass(frozen=True)
class Backlog:
    """What waits in one queue.  `age` orders queues by how long ago each was last read: the smallest goes first."""

    begin: int
    end: int
    size_bytes: float = 1.0
    age: int = 0

    @property
    def length(self) -> int:
        return max(0, self.end - self.begin)


Waiting = Mapping[MessageQueue, Backlog]


def admit(waiting: Waiting, limits: Admission, rows_max: int | None = None) -> dict[MessageQueue, int]:
    """Where the batch ends in each queue."""
    most = [limit for limit in (limits.offsets_max, rows_max) if limit is not None]
    counts = {queue: one.length for queue, one in waiting.items()}
    if limits.bytes_max is not None:
        weights = {queue: one.length * one.size_bytes for queue, one in waiting.items()}
        if (total := sum(weights.values())) > limits.bytes_max:
            most.append(max(1, int(sum(counts.values()) * (limits.bytes_max / total))))
    if most:
        counts = share(waiting, min(most))
    return {queue: one.begin + counts[queue] for queue, one in waiting.items()}


def share(waiting: Waiting, limit: int) -> dict[MessageQueue, int]:
    """Share a number of messages out: one for each queue, those first that were read longest ago, and the rest in
    proportion to what waits."""
    counts = {queue: one.length for queue, one in waiting.items()}
    total = sum(counts.values())
    if total <= limit:
        return counts
    in_turn = sorted(
        (queue for queue in counts if counts[queue]), key=lambda queue: (waiting[queue].age, queue)
    )
    shares = dict.fromkeys(counts, 0) | dict.fromkeys(in_turn[:limit], 1)
    rest = limit - len(in_turn)
    if rest > 0:
        for queue in in_turn:
            shares[queue] += (counts[queue] - 1) * rest // (total - len(in_turn))
    left = limit - sum(shares.values())
    for queue in in_turn:
        if left > 0 and shares[queue] < counts[queue]:
            shares[queue] += 1
            left -= 1
    return shares


def is_enough(waiting: Waiting, limits: Admission, waited_ms: int) -> bool:
    """Whether a batch is worth its while, or has been put off for long enough."""
    if limits.offsets_min is None:
        return True
    there = sum(one.length for one in waiting.values())
    return there >= limits.offsets_min or waited_ms >= limits.delay_max_ms
