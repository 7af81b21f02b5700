"""LitePullConsumer: fetches messages ahead and gives them out when it is polled, on asyncio.

At least once: the group's offset passes a message only when the application has come back for more.  What a poll has
given out counts as done when the next poll begins; an iteration over the consumer comes back with every message.

The parts: `membership.py` (which queues), `lite_queue.py` (pulls), `machines/fetched.py` (what was fetched, limits,
positions), `giving.py` (what a poll gets), `handout.py` (iteration),
`handover.py` (threads that wait for polls).
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack

from bolide.arrow.requirement import check_pyarrow
from bolide.client import checks
from bolide.client.giving import Giving
from bolide.client.handout import HANDOUT_MESSAGES, Handout, first_of
from bolide.client.handover import Handover
from bolide.client.instance import ClientInstance
from bolide.client.lite_queue import LiteQueue, LiteReading, read_ahead
from bolide.client.membership import Membership
from bolide.client.queue_calls import QueueCalls
from bolide.client.queue_changes import QueuesListener
from bolide.client.rounds import Periodic
from bolide.client.start import FIRST, LAST
from bolide.client.terms import ClientOptions
from bolide.machines.consumer import Cache
from bolide.model.errors import InvalidRequest, NotOurQueue
from bolide.model.limit import KIB, MIB
from bolide.model.limits import POLL_CACHE_BYTES_MAX
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import Subscription
from bolide.net.surroundings import Surroundings
from bolide.net.tasks import Tasks
from bolide.record.stored import StoredMessage
from bolide.rules.allocate import AVERAGELY, Strategy

if TYPE_CHECKING:
    import pyarrow as pa

    from bolide.client.table_giving import TableGiving

log = logging.getLogger(__name__)

T = TypeVar("T")

COMMIT_INTERVAL_MS = 5_000
COMMIT_INTERVAL_MS_MIN = 100
POLL_TIMEOUT_MS = 5_000
POLL_MESSAGES = 500
POLL_MESSAGES_MAX = 32_768
POLL_ROWS = 65_536
POLL_ROWS_MAX = 1 << 20
POLL_ROWS_BYTES = 8 * MIB
POLL_ROWS_BYTES_MAX = 256 * MIB

PULL_BYTES_MIN = 64 * KIB
PULL_BYTES_MAX = MIB
"""What one pull asks for: less where many queues share what may wait for polls."""


class LitePullConsumer:
    """Gives messages out when it is asked for them, and fetches the next ones meanwhile.

    Example::

        consumer = LitePullConsumer("127.0.0.1:9876", group="billing")
        await consumer.subscribe("orders", tags="paid || refunded")
        async with consumer:
            while True:
                for message in await consumer.poll(timeout_ms=1000):
                    print(message.topic, message.body)

    Or message by message: `async for message in consumer: ...`.

    With `auto_commit` each message comes at least once, if one task polls and works on what it got: the next poll, or
    the next step of the iteration, says that it is done.  Leaving `async with` in order says so too; an error that
    leaves it, and a `close()` without it, do not, and the last messages come again.

    Args:
        nameserver: one or several addresses, `host:port;host:port`.
        group: the group; all its members must subscribe to the same topics and tags.
        strategy: how the members share the queues, the same for all of them: "averagely", or a function that takes all
            queues of a topic, the client ids of all members and the own one, and gives a list of the own queues.
        start_from: where a group begins that has no offsets yet: "last" (only new messages; on a queue that still has
            its first messages, those too), "first", or a moment (datetime, or milliseconds).
        auto_commit: whether the group's offsets are stored by themselves; if not, by `commit()` alone.
        commit_interval_ms: how often, with `auto_commit`.
        on_queues_changed: called with a topic, all its queues and those that belong to this member, when these have
            changed; a plain function runs in a thread, a coroutine function on the event loop.
        bad_bodies: what becomes of messages whose body does not unpack: "deliver" (the body as it is stored, and
            `body_error` says why) or "skip" (`skipped` counts them, and the log tells of some).
        options: what every client takes: see `ClientOptions`.
    """

    def __init__(
        self,
        nameserver: str,
        *,
        group: str,
        strategy: str | Strategy = AVERAGELY,
        start_from: str | int | datetime = LAST,
        auto_commit: bool = True,
        commit_interval_ms: int = COMMIT_INTERVAL_MS,
        on_queues_changed: QueuesListener | None = None,
        bad_bodies: str = checks.DELIVER,
        surroundings: Surroundings | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._auto_commit = checks.flag("auto_commit", auto_commit)
        self._instance = ClientInstance(checks.nameserver(nameserver), surroundings, **options)
        self._clock = self._instance.clock
        self._calls = QueueCalls(self._instance, checks.group(group))
        self._cache = Cache(POLL_CACHE_BYTES_MAX)
        self._giving = Giving(
            self._clock, self._instance.hooks, skips_bad_bodies=checks.bad_bodies(bad_bodies)
        )
        self.handout = Handout(self._poll_for_iteration)
        reading = LiteReading(
            self._calls,
            self._clock,
            on_fetched=self._giving.offer,
            on_crowded=self._make_room,
            on_trouble=self._instance.refresh_routes_soon,
            pull_bytes=self._pull_bytes,
        )
        self._member: Membership[LiteQueue] = Membership(
            *(self._instance, self._calls, group, self._hold),
            read=lambda held: read_ahead(held, reading),
            strategy=strategy,
            start_from=start_from,
            on_queues_changed=on_queues_changed,
        )
        interval_ms = checks.number(
            "commit_interval_ms", commit_interval_ms, COMMIT_INTERVAL_MS_MIN, checks.DAY_MS
        )
        self._commits = Periodic("storing offsets", interval_ms, self._persist)
        self.handover = Handover(self._giving, self.handout, self._member.held)
        self._paused: dict[MessageQueue, LiteQueue] = {}
        self._bad_bodies = bad_bodies
        self._tables: tuple[object, TableGiving] | None = None
        self._tasks = Tasks()
        self._is_running = self._is_closed = False

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the group and begin to fetch.  Called by `async with`."""
        await self._instance.start()
        if not self._member.subscriptions:
            log.warning("the consumer has no queues yet: call subscribe(topic) or assign(queues)")
        try:
            await self._member.start()
        except BaseException:
            await self.close()
            raise
        self._is_running = True
        if self._auto_commit:
            self._tasks.start(self._commits.run(), "offsets")

    async def close(self) -> None:
        """Store the offsets and leave the group.  A poll or an iteration that waits elsewhere ends.

        With `auto_commit`, what the last poll gave out does not count as done: call `commit()` before, if it is.
        """
        await self._close(is_done=False)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close(is_done=error is None)

    async def _close(self, *, is_done: bool) -> None:
        self._instance.check_place()
        self._is_running, self._is_closed = False, True
        self._giving.arrived.set()
        await self._tasks.close()
        if is_done or self.handout.is_in_use:
            self._settle(with_that_in_hand=is_done)
        await self._member.close()
        await self._instance.close()

    # ---- which queues --------------------------------------------------------------------------------------

    async def subscribe(self, topic: str, tags: str = "*", sql: str | None = None) -> None:
        """Consume a topic too, as a member of the group, before or after the start.

        Args:
            topic: one that does not exist yet is consumed when it does; a warning says so.
            tags: `*` for all messages, or those of some tags: `A || B`.
            sql: instead of tags, an expression over the messages' properties: `price > 3 AND colour = 'red'`.

        Raises:
            SubscriptionConflict: the consumer has queues by `assign`.
        """
        await self._member.subscribe(topic, tags, sql)

    async def unsubscribe(self, topic: str) -> None:
        """Consume a topic no more."""
        await self._member.unsubscribe(topic)

    async def assign(self, queues: Iterable[MessageQueue], tags: str = "*", sql: str | None = None) -> None:
        """Read exactly these queues, instead of those that the group would give us; again for others.

        The consumer is no member of its group then: it takes no queues from anybody, and nobody from it.

        Args:
            queues: those of any topics; none to read nothing.
            tags: `*` for all messages, or those of some tags: `A || B`.
            sql: instead of tags, an expression over the messages' properties.

        Raises:
            SubscriptionConflict: the consumer subscribes to topics.
        """
        await self._member.assign(checks.queues(queues), tags, sql)

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that belong to this consumer now."""
        return sorted(self._member.held)

    @property
    def skipped(self) -> int:
        """How many messages were passed over: bad bodies, if they are to be, and what no broker could give whole."""
        return self._giving.skipped

    async def _hold(self, queue: MessageQueue, subscription: Subscription) -> LiteQueue:
        start = await self._member.start_offset(queue)
        return LiteQueue(
            queue, subscription, start, self._cache, commits=self._auto_commit, on_gone=self._gone
        )

    def _gone(self, held: LiteQueue) -> None:
        self._paused.pop(held.queue, None)
        self.handout.drop(held.queue)
        self._stir_all()

    def _held(self, queue: MessageQueue) -> LiteQueue:
        held = self._member.held.get(checks.queue(queue))
        if held is None:
            raise NotOurQueue(f"{queue} is none of this consumer's queues now; consumer.queues has them")
        return held

    # ---- messages ------------------------------------------------------------------------------------------

    async def poll(
        self, timeout_ms: int = POLL_TIMEOUT_MS, messages_max: int = POLL_MESSAGES
    ) -> list[StoredMessage]:
        """The next messages, of one queue or several, each queue in its order; none when the time is up.

        With `auto_commit`, everything that was given out before counts as done.

        Args:
            timeout_ms: how long to wait for a first message; 0 not to wait.
            messages_max: how many at most; there may be fewer, even where there are more: what has been fetched is
                given out at once.
        """
        self._instance.check_running()
        left_ms = checks.number("timeout_ms", timeout_ms, 0, checks.DAY_MS, InvalidRequest)
        count_max = checks.number("messages_max", messages_max, 1, POLL_MESSAGES_MAX, InvalidRequest)
        if self._auto_commit:
            self._settle(with_that_in_hand=True)
        if rest := self.handout.take(count_max):
            self._giving.begun = first_of(rest)
            return rest
        return await self._first(left_ms, lambda: self._giving.take(count_max))

    async def poll_arrow(
        self,
        timeout_ms: int = POLL_TIMEOUT_MS,
        messages_max: int = POLL_ROWS,
        *,
        bytes_max: int = POLL_ROWS_BYTES,
        columns: Sequence[str] | None = None,
    ) -> "pa.RecordBatch | None":
        """The next messages as columns, of one queue or several, each queue in its order; None when the time is up.

        Positions, commits, filters, pauses and seeks are those of `poll`.  The columns are those of the Spark source
        (docs/spark.md); packed bodies come unpacked.  A body that does not unpack comes as it is stored, and what is no
        message at all as its bytes, both with the reason in `bodyError`; with `bad_bodies="skip"` they are left out,
        and `skipped` counts them.  Needs `pip install 'bolide[arrow]'`.

        Example::

            batch = await consumer.poll_arrow(columns=["queueOffset", "body"])
            if batch is not None:
                print(batch.num_rows, batch.column("body").to_pylist())

        Args:
            timeout_ms: how long to wait for a first message; 0 not to wait.
            messages_max: how many at most; there may be fewer, even where there are more: what has been fetched is
                given out at once.
            bytes_max: of so many bytes of messages no further one is added to a batch.
            columns: those that are wanted, in this order; all if None, and each one costs.

        Raises:
            InvalidRequest: there is no such column; the error names the nearest one.
            RequirementMissing: pyarrow is not installed.
        """
        self._instance.check_running()
        left_ms = checks.number("timeout_ms", timeout_ms, 0, checks.DAY_MS, InvalidRequest)
        tables = self._table_giving(
            None if columns is None else checks.column_names(columns),
            checks.number("messages_max", messages_max, 1, POLL_ROWS_MAX, InvalidRequest),
            checks.number("bytes_max", bytes_max, 1, POLL_ROWS_BYTES_MAX, InvalidRequest),
        )
        if self._auto_commit:
            self._settle(with_that_in_hand=True)
        await self._take_back(self.handout.still_open(with_that_in_hand=False) or {})
        return await self._first(left_ms, tables.take)

    def _table_giving(self, columns: Sequence[str] | None, rows_max: int, bytes_max: int) -> "TableGiving":
        """With memory for what comes as long as the same is asked for."""
        if self._instance.hooks.filters:
            raise InvalidRequest(
                "a filter hook looks at messages one by one, and poll_arrow makes none: use poll, or filter the columns"
            )
        wanted = columns, rows_max, bytes_max
        if self._tables is None or self._tables[0] != wanted:
            check_pyarrow("poll_arrow")
            from bolide.client.table_giving import TableGiving

            self._tables = wanted, TableGiving(self._giving, *wanted, self._bad_bodies)
        return self._tables[1]

    async def _first(self, left_ms: int, take: Callable[[], T]) -> T:
        """What `take` finds, as soon as it finds anything, or when the time is up."""
        end_ms = self._clock.monotonic_ms() + left_ms
        while not (taken := self._take(take)) and left_ms > 0 and self._is_running:
            await self._giving.wait(left_ms)
            left_ms = end_ms - self._clock.monotonic_ms()
        return taken

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StoredMessage:
        while (message := self.handout.next()) is None:
            if not await self.handout.refill():
                raise StopAsyncIteration
        return message

    async def _poll_for_iteration(self) -> list[StoredMessage] | None:
        messages = [] if self._is_closed else await self.poll(messages_max=HANDOUT_MESSAGES)
        return None if self._is_closed else messages

    def _take(self, take: Callable[[], T]) -> T:
        was_full = self._cache.is_full
        self._giving.begun = {}
        taken = take()
        if was_full:
            self._stir_all()
        return taken

    def _stir_all(self) -> None:
        """There may be room for more."""
        if not self._cache.is_full:
            for held in self._member.held.values():
                held.stir()

    def _make_room(self) -> None:
        """Others wait, and what was fetched of paused queues helps nobody now."""
        for held in self._paused.values():
            held.fetched.rewind()
        if self._paused:
            self._stir_all()

    def _pull_bytes(self) -> int:
        share = POLL_CACHE_BYTES_MAX // 2 // max(1, len(self._member.held))
        return max(PULL_BYTES_MIN, min(PULL_BYTES_MAX, share))

    # ---- places --------------------------------------------------------------------------------------------

    async def seek(self, queue: MessageQueue, to: int | datetime | str) -> None:
        """Go on at another place of a queue: the next poll gives nothing from before.

        The group's offset follows as always: with the next poll, or by `commit()`.

        Args:
            queue: one of `queues`.
            to: an offset, a datetime (the first message stored then or later), "first" or "last".

        Raises:
            NotOurQueue: another member has the queue.
        """
        self._instance.check_running()
        self._held(queue)
        offset = await self._place(queue, to)
        held = self._held(queue)  # it may have gone meanwhile
        self.handout.drop(queue)
        await held.seek(offset)
        self._giving.touch(held)

    async def _place(self, queue: MessageQueue, to: int | datetime | str) -> GroupOffset:
        if isinstance(to, datetime):
            return GroupOffset(await self._calls.offset_at(queue, checks.moment_ms("to", to)))
        if to == FIRST:
            return GroupOffset(await self._calls.min_offset(queue))
        if to == LAST:
            return GroupOffset(await self._calls.max_offset(queue))
        if isinstance(to, str):
            raise InvalidRequest(
                f'to is an offset, a datetime, "{FIRST}" or "{LAST}", not {checks.described(to)}'
            )
        return checks.offset(to)

    async def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Give nothing of these queues out until `resume`; what was fetched is kept as long as there is room.

        A queue that goes to another member and comes back is not paused any more.
        """
        self._instance.check_running()
        not_handed_over = self.handout.still_open(with_that_in_hand=False) or {}
        paused = [self._held(queue) for queue in checks.queues(queues)]
        for held in paused:
            held.fetched.is_paused = True
            self._paused[held.queue] = held
        ours = {held.queue for held in paused}
        await self._take_back({queue: first for queue, first in not_handed_over.items() if queue in ours})

    async def _take_back(self, not_handed_over: Mapping[MessageQueue, GroupOffset]) -> None:
        """What an iteration has of these queues goes back, to be given out again."""
        for queue, first in not_handed_over.items():
            self.handout.drop(queue)
            if (held := self._member.held.get(queue)) is not None:
                await held.seek(first)

    async def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Go on with queues that were paused."""
        self._instance.check_running()
        for held in [self._held(queue) for queue in checks.queues(queues)]:
            held.fetched.is_paused = False
            self._paused.pop(held.queue, None)
            held.stir()
            self._giving.offer(held)

    # ---- offsets -------------------------------------------------------------------------------------------

    async def commit(self) -> None:
        """Store how far the group has come: behind everything that was given out, the message in hand included.

        Returns when the brokers have it, for the queues that are still ours.

        Raises:
            RemoteError, CallTimeout, ConnectionLost: a broker has not stored its offsets; the others have.
        """
        self._instance.check_running()
        self._settle(with_that_in_hand=True)
        if errors := await self._member.store(lambda held: held.fetched.done):
            raise errors[0]

    async def committed(self, queue: MessageQueue) -> GroupOffset | None:
        """The group's offset in a queue, as its broker has it; None when it has none."""
        return await self._calls.committed_offset(checks.queue(queue))

    async def _persist(self) -> None:
        if self.handout.is_in_use:
            self._settle(with_that_in_hand=False)
        await self._member.persist()

    def _settle(self, *, with_that_in_hand: bool) -> None:
        """What was given out is done, but for what an iteration has not handed over yet."""
        still_open = self.handout.still_open(with_that_in_hand=not with_that_in_hand)
        if still_open is None:
            return  # another thread is just at it; the next time will do
        for held in self._giving.touched():
            held.fetched.done = still_open.get(held.queue, held.fetched.given)
            if held.queue in still_open:
                self._giving.touch(held)
