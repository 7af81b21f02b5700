"""The blocking push consumer: the one of `client/push.py`, behind a thread."""

import os
from datetime import datetime
from types import TracebackType
from typing import Self, Unpack

from bolide.client import checks
from bolide.client import push as pushing
from bolide.client.listener import Listener
from bolide.client.loop_thread import shared_loop
from bolide.client.signals import caught
from bolide.client.start import LAST
from bolide.client.terms import ClientOptions
from bolide.model.offsets import MessageQueue
from bolide.rules.allocate import AVERAGELY, Strategy


class PushConsumer:
    """Consumes topics as a member of a group: the members share the queues, each message goes to one of them.

    Example::

        def handle(messages: list[StoredMessage]) -> None:
            for message in messages:
                print(message.topic, message.body)

        consumer = PushConsumer("127.0.0.1:9876", group="billing", listener=handle)
        consumer.subscribe("orders", tags="paid || refunded")
        consumer.run()  # until Ctrl-C or SIGTERM

    Without `run`: `with consumer: ...`.  Each message comes at least once: the group's offset passes it only after the
    listener has returned from it, or its broker has it again.

    Args:
        nameserver: one or several addresses, `host:port;host:port`.
        group: the group; all its members must subscribe to the same topics and tags.
        listener: called with a list of messages of one queue, and with a `ConsumeContext` if it takes two arguments,
            or one that is named `context`; in threads, up to `concurrency` at once.
            When it returns, they are done.  When it raises, or returns `Later`, they come again: their broker brings
            them to some member of the group, after 10 s, 30 s, a minute and so on; `reconsume_times` counts.
        orderly: messages of a queue come one call after the other, in their order, and no other member has the queue
            meanwhile.  One that fails comes again after a second, or as `Suspend` says, and those behind it wait.
        broadcasting: every member gets all messages.  Offsets are kept in a file here, and failed messages are dropped
            with a line in the log.
        strategy: how members share the queues: a name such as "averagely", which all members must have in common, or a
            function of queues, client ids and one's own id that gives one's own queues.
        start_from: where a group begins that has no offsets yet: "last" (only new messages; on a queue that still has
            its first messages, those too), "first", or a moment (datetime, or milliseconds).
        concurrency: how many calls of the listener may run at once; `resize` changes it.  Unless it is `orderly`, no
            number of them promises an order.
        messages_max: how many messages one call of the listener gets at most.
        attempts_max: how often a failed message comes again before it is a dead letter; 16, and without an end when
            the consumer is `orderly`.
        auto_commit: False for an `orderly` listener that says itself what is done, by `context.commit()` and
            `context.rollback()`.
        consume_timeout_ms: after so long in the listener a message counts as failed; not for `orderly` ones.
        pull_interval_ms: how long to wait between two pulls of a queue.
        close_timeout_ms: how long `close` waits for calls of the listener that still run.
        bad_bodies: what becomes of messages whose body does not unpack: "deliver" (the body as it is stored, and
            `body_error` says why) or "skip" (`skipped` counts them, and the log tells of some).
        offsets_dir: where broadcasting keeps its offsets; `.rocketmq_offsets` in the home directory by default.
        options: what every client takes: see `ClientOptions`.  In broadcasting the instance name is "DEFAULT" where
            none is given: it must stay the same for a restarted process to find its offsets.
    """

    def __init__(
        self,
        nameserver: str,
        *,
        group: str,
        listener: Listener,
        orderly: bool = False,
        broadcasting: bool = False,
        strategy: str | Strategy = AVERAGELY,
        start_from: str | int | datetime = LAST,
        concurrency: int = pushing.CONCURRENCY,
        messages_max: int = pushing.CALL_MESSAGES,
        attempts_max: int | None = None,
        auto_commit: bool = True,
        consume_timeout_ms: int = pushing.CONSUME_TIMEOUT_MS,
        pull_interval_ms: int = 0,
        close_timeout_ms: int = pushing.CLOSE_TIMEOUT_MS,
        bad_bodies: str = checks.DELIVER,
        offsets_dir: str | os.PathLike[str] | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._loop = shared_loop()
        self._core = pushing.PushConsumer(
            nameserver,
            group=group,
            listener=listener,
            orderly=orderly,
            broadcasting=broadcasting,
            strategy=strategy,
            start_from=start_from,
            concurrency=concurrency,
            messages_max=messages_max,
            attempts_max=attempts_max,
            auto_commit=auto_commit,
            consume_timeout_ms=consume_timeout_ms,
            pull_interval_ms=pull_interval_ms,
            close_timeout_ms=close_timeout_ms,
            bad_bodies=bad_bodies,
            offsets_dir=offsets_dir,
            **options,
        )

    def start(self) -> None:
        """Join the group and begin to consume.  Called by `with`, and by `run`."""
        self._loop.run(self._core.start())

    def close(self) -> None:
        """Stop pulling, let the listener finish, store the offsets, leave the group."""
        self._core.delivery.check_outside()
        self._loop.run(self._core.close())

    def run(self) -> None:
        """Start, and consume until SIGINT (Ctrl-C) or SIGTERM; returns after a close in order.

        A second signal does not wait for that.  Only for the main thread, which gets the signals.
        """
        with caught() as came:
            self.start()
            try:
                came.get()
            except BaseException:
                self.close()
                raise
        self.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def subscribe(self, topic: str, tags: str = "*", sql: str | None = None) -> None:
        """Consume a topic too, before or after the start.

        Args:
            topic: one that does not exist yet is consumed when it does; a warning says so.
            tags: `*` for all messages, or those of some tags: `A || B`.
            sql: instead of tags, an expression over the messages' properties: `price > 3 AND colour = 'red'`.
        """
        self._loop.run(self._core.subscribe(topic, tags, sql))

    def suspend(self) -> None:
        """Pull nothing and begin no call of the listener, until `resume`.  Calls that run go on; queues are kept."""
        self._loop.run(self._core.suspend())

    def resume(self) -> None:
        """Go on after `suspend`."""
        self._loop.run(self._core.resume())

    def resize(self, concurrency: int) -> None:
        """From now on so many calls of the listener may run at once.  Those that run end as they are."""
        self._loop.run(self._core.resize(concurrency))

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that belong to this member now."""
        return self._core.queues

    @property
    def skipped(self) -> int:
        """How many messages were passed over: bad bodies, if they are to be, and what no broker could give whole."""
        return self._core.skipped
