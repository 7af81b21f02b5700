"""A stream's driver side, without Spark: where it begins, how far each batch goes, which ranges that is.

`Follower` keeps between two batches only what may be forgotten: connections, what was fixed for `AvailableNow`, when
the last batch was.  How far the stream has come is Spark's to keep (`places.py`).
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from bolide.model.clock import Clock
from bolide.model.offsets import MessageQueue
from bolide.pipeline.admission import Backlog, admit, is_enough
from bolide.pipeline.cluster import Cluster, listed
from bolide.pipeline.errors import DataLost, LogRolledBack, QueueRecreated
from bolide.pipeline.options import Admission, ReadOptions
from bolide.pipeline.places import Place, Places, Verdict, judge
from bolide.pipeline.plan import resolve
from bolide.pipeline.ranges import Ends, QueueRange, expired, fit_range, report_loss, split_ranges

log = logging.getLogger(__name__)

EndsByQueue = Mapping[MessageQueue, Ends]


@dataclass(frozen=True)
class Checked:
    """Places that were held against their queues, and where reading really goes on in each."""

    places: Places
    begins: Mapping[MessageQueue, int]


class Follower:
    def __init__(self, cluster: Cluster, options: ReadOptions, clock: Clock) -> None:
        self._cluster = cluster
        self._options = options
        self._clock = clock
        self._checked: Checked | None = None
        self._target: dict[MessageQueue, int] | None = None
        self._batch_ms: int | None = None
        self._absent: list[MessageQueue] = []
        self._shown: dict[MessageQueue, int] = {}
        self.latest: dict[MessageQueue, Place] = {}
        """Where the queues ended when they were last asked."""

    async def begin(self) -> Places:
        """Where a new stream begins."""
        ends = await self._ends()
        begins = await resolve(self._cluster, self._options.start, ends, self._options)
        fail = self._options.fail_on_data_loss
        places = {
            queue: fit_range(QueueRange(queue, at, at), ends[queue], fail=fail)
            for queue, at in begins.items()
        }
        return await self._marked({queue: one.begin for queue, one in places.items()}, {})

    async def fix_target(self) -> None:
        """`AvailableNow`: nothing that comes from now on is read."""
        self._target = {queue: one.last for queue, one in (await self._ends()).items()}

    async def advance(self, start: Places, rows_max: int | None, *, limited: bool) -> Places:
        """Where the next batch ends; the start itself when there is nothing to do.

        Spark asks when the batch before is done, and says so itself only when there is another one.
        """
        await self.done(start)
        ends = await self._ends()
        begins = await self._begins(start, ends)
        waiting = {
            queue: Backlog(at, self._end_of(queue, at, ends[queue]), age=_age(start.get(queue)))
            for queue, at in begins.items()
        }
        limits = self._options.admission if limited else Admission()
        if self._target is None and not self._is_time(waiting, limits):
            self._checked = None  # what is true now need not be when it is time
            return start
        if limits.bytes_max is not None:
            sizes = await self._cluster.sizes(
                QueueRange(queue, one.begin, one.end) for queue, one in waiting.items()
            )
            waiting = {
                queue: Backlog(one.begin, one.end, sizes.get(queue, 1.0), one.age)
                for queue, one in waiting.items()
            }
        stops = admit(waiting, limits, rows_max)
        if any(stops[queue] > one.begin for queue, one in waiting.items()):
            self._batch_ms = self._clock.monotonic_ms()
        return {**start, **await self._marked(stops, start)}

    async def ranges(self, start: Places, end: Places) -> list[QueueRange]:
        """What the batch between two places reads, cut into tasks."""
        moved = [queue for queue, place in end.items() if start.get(queue) != place]
        if not moved:
            return []
        ends = await self._cluster.ends(moved)
        begins = await self._begins({queue: start[queue] for queue in moved if queue in start}, ends)
        fail = self._options.fail_on_data_loss
        ranges = [
            fit_range(
                QueueRange(queue, begins[queue], max(begins[queue], end[queue].offset)),
                ends[queue],
                fail=fail,
            )
            for queue in moved
        ]
        sizes = None if self._options.cutting.bytes_max is None else await self._cluster.sizes(ranges)
        return split_ranges(ranges, self._options.cutting, sizes)

    async def done(self, end: Places) -> None:
        """All before this place was processed."""
        if not self._options.commits:
            return
        moved = {
            queue: place.offset for queue, place in end.items() if self._shown.get(queue) != place.offset
        }
        await self._cluster.commit(moved)
        self._shown |= moved

    # ---- what there is -------------------------------------------------------------------------------------

    async def _ends(self) -> dict[MessageQueue, Ends]:
        ends = await self._cluster.ends(await self._cluster.queues())
        self.latest = {queue: Place(one.last) for queue, one in ends.items()}
        return ends

    def _end_of(self, queue: MessageQueue, begin: int, ends: Ends) -> int:
        if self._target is None:
            return ends.last
        return max(begin, min(ends.last, self._target.get(queue, begin)))

    def _is_time(self, waiting: Mapping[MessageQueue, Backlog], limits: Admission) -> bool:
        if self._batch_ms is None:
            return True  # a stream that has just begun does not wait, as with Kafka
        return is_enough(waiting, limits, self._clock.monotonic_ms() - self._batch_ms)

    async def _marked(self, offsets: Mapping[MessageQueue, int], known: Places) -> dict[MessageQueue, Place]:
        """Places at these offsets.  One that has not moved is the one it was, to the letter."""
        moved = {
            queue: at - 1 for queue, at in offsets.items() if queue not in known or known[queue].offset != at
        }
        marks = await self._cluster.marks({queue: at for queue, at in moved.items() if at >= 0})
        return {
            queue: Place(at, marks.get(queue)) if queue in moved else known[queue]
            for queue, at in offsets.items()
        }

    # ---- whether it is still what it was -------------------------------------------------------------------

    async def _begins(self, start: Places, ends: EndsByQueue) -> dict[MessageQueue, int]:
        """Where to go on in each queue that is there.  A queue that is new begins at its beginning."""
        self._say_absent(start, ends)
        known = {queue: place for queue, place in start.items() if queue in ends}
        fresh = [
            queue
            for queue, place in known.items()
            if place.offset != ends[queue].last and not self._was_checked(queue, place)
        ]
        begins = {queue: place.offset for queue, place in known.items()}
        if fresh:
            begins |= await self._check({queue: known[queue] for queue in fresh}, ends)
        begins |= {queue: one.first for queue, one in ends.items() if queue not in start and not one.is_empty}
        self._checked = Checked(start, begins)
        return begins

    def _was_checked(self, queue: MessageQueue, place: Place) -> bool:
        """Plans are made twice for the same places; the queues are asked once."""
        checked = self._checked
        return (
            checked is not None
            and checked.places.get(queue) == place
            and checked.begins.get(queue) == place.offset
        )

    async def _check(self, places: Places, ends: EndsByQueue) -> dict[MessageQueue, int]:
        before = await self._cluster.marks({queue: place.offset - 1 for queue, place in places.items()})
        begins: dict[MessageQueue, int] = {}
        for queue, place in places.items():
            first = None
            if before[queue] != place.mark and not ends[queue].is_empty:
                first = (await self._cluster.marks({queue: ends[queue].first}))[queue]
            verdict = judge(place, ends[queue], before[queue], first)
            begins[queue] = place.offset
            if verdict is not Verdict.SAME:
                begins[queue] = await self._resume(queue, place, ends[queue], verdict)
        return begins

    async def _resume(self, queue: MessageQueue, place: Place, ends: Ends, verdict: Verdict) -> int:
        """Where to go on in a queue that has lost something: behind the last message that was read."""
        if verdict is Verdict.EXPIRED:
            at = ends.first
        elif place.mark is None:
            at = ends.last if place.offset > ends.last else ends.first
        else:
            found = await self._cluster.offsets_at({queue: place.mark.store_time_ms + 1})
            at = ends.clamp(found[queue])
        report_loss(_loss(queue, place, ends, verdict, at), fail=self._options.fail_on_data_loss)
        return at

    def _say_absent(self, start: Places, ends: EndsByQueue) -> None:
        """A broker that is down takes its queues along.  They are read when it is back."""
        absent = sorted(queue for queue in start if queue not in ends)
        if absent != self._absent and absent:
            log.warning("these queues are not there now, and are read when they are back: %s", listed(absent))
        self._absent = absent


def _age(place: Place | None) -> int:
    return 0 if place is None or place.mark is None else place.mark.store_time_ms


def _loss(queue: MessageQueue, place: Place, ends: Ends, verdict: Verdict, resume: int) -> DataLost:
    if verdict is Verdict.EXPIRED:
        return expired(queue, place.offset, ends.first)
    if verdict is Verdict.RECREATED:
        return QueueRecreated(
            f"{queue} is not the queue that was read up to offset {place.offset}: all that it has is newer. The topic"
            " was deleted and made again. Begin with another checkpointLocation and startingOffsets=earliest;"
            f" failOnDataLoss=false goes on in the new one at {resume}"
        )
    return LogRolledBack(
        f"{queue} was read up to offset {place.offset}, and the last message read is not there any more, while older"
        " ones are: the broker has lost the end of its log (a crash before it was synced, or an older copy of the"
        " store). What was lost has been read, but new messages get the same offsets: failOnDataLoss=false goes on with"
        f" what was stored later, at {resume}"
    )
