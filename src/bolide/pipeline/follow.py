"""A stream's driver side, without Spark: where it begins, how far each batch goes, which ranges that is.

`Follower` keeps between two batches only what may be forgotten: connections, what was fixed for `AvailableNow`, when
the last batch was.  How far the stream has come is Spark's to keep (`places.py`).
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from bolide.model.clock import Clock
from bolide.model.errors import ConfigError
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
        self._begun: Places | None = None
        self._planned: Places = {}
        self._target: dict[MessageQueue, Ends] | None = None
        self._batch_ms: int | None = None
        self._absent: list[MessageQueue] = []
        self._shown: dict[MessageQueue, int] = {}
        self.latest: dict[MessageQueue, Place] = {}
        """Where the queues ended when they were last asked."""

    async def begin(self) -> Places:
        """Where a new stream begins.

        Spark asks for it when it plans the first batch, and again whenever it runs that, and keeps no answer.  The one
        that counts is that to the plan: `advance` writes it into the end of the batch.
        """
        ends = await self._ends()
        try:
            begins = await resolve(self._cluster, self._options.start, ends, self._options)
        except ConfigError as error:  # nobody can tell here whether the batch is planned or run again
            raise ConfigError(
                f"{error}. Where the checkpoint has a first batch already, startingOffsets=earliest in place of"
                f" {self._options.start.name} goes on with that batch as it was planned"
            ) from error
        fail = self._options.fail_on_data_loss
        for queue, at in begins.items():
            if at < ends[queue].first:  # an offset that was given: words and times are within the ends
                report_loss(expired(queue, at, ends[queue].first), fail=fail)
        places = {
            queue: fit_range(QueueRange(queue, at, at), ends[queue], fail=fail)
            for queue, at in begins.items()
        }
        self._begun = await self._marked({queue: one.begin for queue, one in places.items()}, {})
        return self._begun

    async def fix_target(self) -> None:
        """`AvailableNow`: nothing that comes from now on is read.

        Queues of a broker that the name servers have forgotten have no part in it, though the checkpoint has them:
        nobody can tell them from those of one that was taken out of service for good, without which a run must be able
        to end.
        """
        self._target = await self._ends()

    async def advance(self, start: Places, rows_max: int | None, *, limited: bool) -> Places:
        """Where the next batch ends; the start itself when there is nothing to do.

        Spark asks when the batch before is done, and says so itself only when there is another one.
        """
        await self.done(start)
        ends = await self._ends_there(start)
        self._say_absent(start, ends)
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
        # A queue that is another one since is at a new place also where the offset is the same.
        going_on = {queue: place for queue, place in start.items() if begins.get(queue) == place.offset}
        end = {**start, **await self._marked(stops, going_on)}
        is_first = start == self._begun
        if is_first or end != start:  # also a first batch without messages says where it begins
            end = _with_begins(end, start, begins, is_first=is_first)
        self._planned = end
        return self._planned

    async def ranges(self, start: Places, end: Places) -> list[QueueRange]:
        """What the batch between two places reads, cut into tasks.

        A batch that is planned again has as many tasks in the same order, though some of them may find nothing any
        more: by their numbers a sink knows what each of them has written.  So it is the batch as it was meant that is
        cut, and then what the queues have of it.
        """
        moved = {
            queue: place
            for queue, place in end.items()
            if start.get(queue) != place and place.begin != place.offset
        }
        if not moved:
            return []
        ends = await self._cluster.ends(moved)
        begins = await self._begins_as_planned(start, moved, ends)
        stops = await self._stops(moved, ends)
        fail = self._options.fail_on_data_loss
        meant: list[QueueRange] = []
        there: dict[MessageQueue, QueueRange] = {}
        for queue in moved:
            stop = stops[queue]
            # The batch has nothing of a queue that has become another one further back.
            wanted = QueueRange(queue, min(begins.get(queue, ends[queue].first), stop), stop)
            there[queue] = fit_range(wanted, ends[queue], fail=fail)
            meant.append(_as_meant(wanted, start.get(queue), end[queue]))
        sizes = None
        if self._options.cutting.bytes_max is not None:
            sizes = await self._cluster.sizes(there.values())
        parts = split_ranges(meant, self._options.cutting, sizes, keep_empty=True)
        return [part.within(there[part.queue]) for part in parts]

    async def done(self, end: Places) -> None:
        """All before this place was processed."""
        if not self._options.commits:
            return
        moved = {
            queue: place.offset for queue, place in end.items() if self._shown.get(queue) != place.offset
        }
        told = await self._cluster.commit(moved)
        self._shown |= {queue: moved[queue] for queue in told}

    # ---- what there is -------------------------------------------------------------------------------------

    async def _ends(self) -> dict[MessageQueue, Ends]:
        """Where a stream begins no queue may be left out."""
        ends = await self._cluster.ends(await self._cluster.queues())
        self._keep_latest(ends)
        return ends

    async def _ends_there(self, start: Places) -> dict[MessageQueue, Ends]:
        """Later those of a broker that does not answer are left out.

        But not while something of them is to be read before `AvailableNow` ends: it would end as if all were done.
        Queues that have come since that began are the next run's, with all that is to be said of them.
        """
        ends = await self._cluster.ends_there(await self._cluster.queues(start))
        ends |= await self._cluster.ends([queue for queue in self._unfinished(start) if queue not in ends])
        self._keep_latest(ends)
        return {
            queue: one
            for queue, one in ends.items()
            if self._target is None or queue in self._target or queue in start
        }

    def _keep_latest(self, ends: EndsByQueue) -> None:
        self.latest = {queue: Place(one.last) for queue, one in ends.items()}

    def _unfinished(self, start: Places) -> list[MessageQueue]:
        """Queues that are not where `AvailableNow` leaves them."""
        target = self._target or {}
        return [
            queue
            for queue, one in target.items()
            if (start[queue].offset if queue in start else one.first) != one.last
        ]

    def _end_of(self, queue: MessageQueue, begin: int, ends: Ends) -> int:
        if self._target is None:
            return ends.last
        target = self._target.get(queue)
        return begin if target is None else max(begin, min(ends.last, target.last))

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
        known = {queue: place for queue, place in start.items() if queue in ends}
        fresh = [
            queue
            for queue, place in known.items()
            if place.offset != ends[queue].last and not self._was_checked(queue, place)
        ]
        begins = {queue: place.offset for queue, place in known.items()}
        if fresh:
            begins |= await self._check({queue: known[queue] for queue in fresh}, ends)
        begins |= self._begins_anew(start, ends)
        self._checked = Checked(start, begins)
        return begins

    def _begins_anew(self, start: Places, ends: EndsByQueue) -> dict[MessageQueue, int]:
        """Queues that the stream does not know yet: all of them that ever had a message.

        What they lost before is told, as by Kafka's source: the stream may have been down since they were made.
        """
        begins = {queue: one.first for queue, one in ends.items() if queue not in start and one.last > 0}
        for queue, first in begins.items():
            if first > 0:
                report_loss(expired(queue, 0, first), fail=self._options.fail_on_data_loss)
        return begins

    async def _begins_as_planned(
        self, start: Places, end: Places, ends: EndsByQueue
    ) -> dict[MessageQueue, int]:
        """Where a batch begins in each of its queues.  What its end says of that was held against the queue then."""
        planned = {queue: place.begin for queue, place in end.items() if place.begin is not None}
        others = [queue for queue in end if queue not in planned]
        return planned | await self._begins(
            {queue: start[queue] for queue in others if queue in start},
            {queue: ends[queue] for queue in others},
        )

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

    async def _stops(self, end: Places, ends: EndsByQueue) -> dict[MessageQueue, int]:
        """Where a batch ends in each queue.

        A queue may have become another one since the batch was planned: before a restart, or it was planned by
        another.  Then the batch ends where the next one will begin, so that nothing is in both of them.
        """
        stops = {queue: place.offset for queue, place in end.items()}
        unknown = {
            queue: place
            for queue, place in end.items()
            if self._planned.get(queue) != place and place.offset >= ends[queue].first
        }
        if not unknown:
            return stops
        following = await self._check(unknown, ends)
        return stops | {queue: min(stops[queue], at) for queue, at in following.items()}

    async def _resume(self, queue: MessageQueue, place: Place, ends: Ends, verdict: Verdict) -> int:
        """Where to go on in a queue that has lost something: behind the last message that was read."""
        if verdict is Verdict.EXPIRED:
            at = ends.first
        elif place.mark is None:
            at = ends.first  # all of it is newer, as far as anybody knows
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


def _with_begins(
    end: Places, start: Places, begins: Mapping[MessageQueue, int], *, is_first: bool
) -> dict[MessageQueue, Place]:
    """Write down where a batch begins in each queue, unless its start will say so whenever the batch is run."""
    starts = {queue: place.offset for queue, place in start.items()}
    said = {} if is_first else starts
    begins = {**starts, **begins}
    return {
        queue: place if begins[queue] == said.get(queue) else replace(place, begin=begins[queue])
        for queue, place in end.items()
    }


def _as_meant(wanted: QueueRange, start: Place | None, end: Place) -> QueueRange:
    """What a batch has of a queue as it was planned first, whatever the queue has of that now."""
    if end.begin is not None:
        begin = end.begin
    else:  # as the start says, or as an earlier version wrote it
        begin = wanted.begin if start is None else start.offset
        if wanted.length > 0:
            begin = min(begin, wanted.begin)  # it went on further back: the queue had lost something before
    return QueueRange(wanted.queue, begin, max(begin, end.offset))


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
