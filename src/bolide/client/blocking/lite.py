"""The blocking lite pull consumer: the one of `client/lite.py`, behind a thread."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, Unpack

from bolide.client import checks
from bolide.client import lite as polling
from bolide.client.handover import Waiter
from bolide.client.loop_thread import shared_loop
from bolide.client.queue_changes import QueuesListener
from bolide.client.start import LAST
from bolide.client.terms import ClientOptions
from bolide.model.errors import BolideError
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.record.stored import StoredMessage
from bolide.rules.allocate import AVERAGELY, Strategy

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")


class LitePullConsumer:
    """Gives messages out when it is asked for them, and fetches the next ones meanwhile.

    Example::

        consumer = LitePullConsumer("127.0.0.1:9876", group="billing")
        consumer.subscribe("orders", tags="paid || refunded")
        with consumer:
            while True:
                for message in consumer.poll(timeout_ms=1000):
                    print(message.topic, message.body)

    Or message by message: `for message in consumer: ...`.

    With `auto_commit` each message comes at least once, if one thread polls and works on what it got: the next poll, or
    the next step of the iteration, says that it is done.  Leaving `with` in order says so too; an error that leaves it,
    and a `close()` without it, do not, and the last messages come again.

    Args:
        nameserver: one or several addresses, `host:port;host:port`.
        group: the group; all its members must subscribe to the same topics and tags.
        strategy: how the members share the queues, the same for all of them: "averagely", or a function that takes all
            queues of a topic, the client ids of all members and the own one, and gives a list of the own queues.
        start_from: where a group begins that has no offsets yet: "last" (only new messages; on a queue that still has
            its first messages, those too), "first", or a moment (datetime, or milliseconds).
        auto_commit: whether the group's offsets are stored by themselves; if not, by `commit()` alone.
        commit_interval_ms: how often, with `auto_commit`.
        on_queues_changed: called in a thread with a topic, all its queues and those that belong to this member, when
            these have changed.
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
        commit_interval_ms: int = polling.COMMIT_INTERVAL_MS,
        on_queues_changed: QueuesListener | None = None,
        bad_bodies: str = checks.DELIVER,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._loop = shared_loop()
        self._core = polling.LitePullConsumer(
            nameserver,
            group=group,
            strategy=strategy,
            start_from=start_from,
            auto_commit=auto_commit,
            commit_interval_ms=commit_interval_ms,
            on_queues_changed=on_queues_changed,
            bad_bodies=bad_bodies,
            **options,
        )
        self._handout = self._core.handout

    def start(self) -> None:
        """Join the group and begin to fetch.  Called by `with`."""
        self._loop.run(self._core.start())

    def close(self) -> None:
        """Store the offsets and leave the group.  A poll or an iteration that waits elsewhere ends.

        With `auto_commit`, what the last poll gave out does not count as done: call `commit()` before, if it is.
        """
        self._loop.run(self._core.close())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.run(self._core.__aexit__(kind, error, trace))

    def subscribe(self, topic: str, tags: str = "*", sql: str | None = None) -> None:
        """Consume a topic too, as a member of the group, before or after the start.

        Args:
            topic: one that does not exist yet is consumed when it does; a warning says so.
            tags: `*` for all messages, or those of some tags: `A || B`.
            sql: instead of tags, an expression over the messages' properties: `price > 3 AND colour = 'red'`.

        Raises:
            SubscriptionConflict: the consumer has queues by `assign`.
        """
        self._loop.run(self._core.subscribe(topic, tags, sql))

    def unsubscribe(self, topic: str) -> None:
        """Consume a topic no more."""
        self._loop.run(self._core.unsubscribe(topic))

    def assign(self, queues: Iterable[MessageQueue], tags: str = "*", sql: str | None = None) -> None:
        """Read exactly these queues, instead of those that the group would give us; again for others.

        The consumer is no member of its group then: it takes no queues from anybody, and nobody from it.

        Args:
            queues: those of any topics; none to read nothing.
            tags: `*` for all messages, or those of some tags: `A || B`.
            sql: instead of tags, an expression over the messages' properties.

        Raises:
            SubscriptionConflict: the consumer subscribes to topics.
        """
        self._loop.run(self._core.assign(queues, tags, sql))

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that belong to this consumer now."""
        return self._core.queues

    @property
    def skipped(self) -> int:
        """How many messages were passed over: bad bodies, if they are to be, and what no broker could give whole."""
        return self._core.skipped

    def poll(
        self, timeout_ms: int = polling.POLL_TIMEOUT_MS, messages_max: int = polling.POLL_MESSAGES
    ) -> list[StoredMessage]:
        """The next messages, of one queue or several, each queue in its order; none when the time is up.

        With `auto_commit`, everything that was given out before counts as done.

        Args:
            timeout_ms: how long to wait for a first message; 0 not to wait.
            messages_max: how many at most; there may be fewer, even where there are more: what has been fetched is
                given out at once.
        """
        return self._polled(lambda: self._core.poll(timeout_ms, messages_max))

    def _polled(self, poll: Callable[[], Awaitable[T]]) -> T:
        """What a poll gives; if an exception of a signal handler comes between, the next poll gives it."""
        waiter = Waiter()
        try:
            return self._loop.run(self._core.handover.poll_for(waiter, poll))
        except BolideError:
            raise  # of the poll itself, which has taken nothing
        except BaseException:
            waiter.has_left = True
            self._loop.call_soon(self._core.handover.give_back, waiter)
            raise

    def poll_arrow(
        self,
        timeout_ms: int = polling.POLL_TIMEOUT_MS,
        messages_max: int = polling.POLL_ROWS,
        *,
        bytes_max: int = polling.POLL_ROWS_BYTES,
        columns: Sequence[str] | None = None,
    ) -> "pa.RecordBatch | None":
        """The next messages as columns, of one queue or several, each queue in its order; None when the time is up.

        Positions, commits, filters, pauses and seeks are those of `poll`.  The columns are those of the Spark source
        (docs/spark.md); packed bodies come unpacked.  A body that does not unpack comes as it is stored, and what is no
        message at all as its bytes, both with the reason in `bodyError`; with `bad_bodies="skip"` they are left out,
        and `skipped` counts them.  Needs `pip install 'bolide[arrow]'`.

        Example::

            batch = consumer.poll_arrow(columns=["queueOffset", "body"])
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
        return self._polled(
            lambda: self._core.poll_arrow(timeout_ms, messages_max, bytes_max=bytes_max, columns=columns)
        )

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StoredMessage:
        while (message := self._handout.next()) is None:
            if not self._loop.run(self._handout.refill()):
                raise StopIteration
        return message

    def seek(self, queue: MessageQueue, to: int | datetime | str) -> None:
        """Go on at another place of a queue: the next poll gives nothing from before.

        The group's offset follows as always: with the next poll, or by `commit()`.

        Args:
            queue: one of `queues`.
            to: an offset, a datetime (the first message stored then or later), "first" or "last".

        Raises:
            NotOurQueue: another member has the queue.
        """
        self._loop.run(self._core.seek(queue, to))

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Give nothing of these queues out until `resume`; what was fetched is kept as long as there is room.

        A queue that goes to another member and comes back is not paused any more.
        """
        self._loop.run(self._core.pause(queues))

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Go on with queues that were paused."""
        self._loop.run(self._core.resume(queues))

    def commit(self) -> None:
        """Store how far the group has come: behind everything that was given out, the message in hand included.

        Returns when the brokers have it, for the queues that are still ours.

        Raises:
            RemoteError, CallTimeout, ConnectionLost: a broker has not stored its offsets; the others have.
        """
        self._loop.run(self._core.commit())

    def committed(self, queue: MessageQueue) -> GroupOffset | None:
        """The group's offset in a queue, as its broker has it; None when it has none."""
        return self._loop.run(self._core.committed(queue))
