"""PushConsumer: a member of a group, whose listener gets every message of the group's share, on asyncio.

Delivery is at least once: the group's offset passes a message only after the listener has returned from it, or its
broker has it again.  A message whose listener fails goes back to its broker, which brings it again later, to any member
of the group, and keeps it as a dead letter in the end; `orderly` consumers wait for it instead.

The parts: `assignment.py` (which queues), `reader.py` (pulls), `machines/consumer.py` and `machines/orderly.py` (order,
limits, offsets), `offsets.py` (where they are kept), `locking.py` (queues that are consumed in order), `delivery.py`
and `orderly.py` (the listener), `returns.py` (failed messages), `operators.py` (answers to those who run the cluster).
"""

import logging
import os
from datetime import datetime
from types import TracebackType
from typing import Self, Unpack

from bolide.client import checks
from bolide.client.assignment import Assignment
from bolide.client.consumption import Consumption
from bolide.client.delivery import Concurrently, ListenerTerms
from bolide.client.instance import ClientInstance
from bolide.client.listener import TAKES as LISTENER_TAKES
from bolide.client.listener import Listener, ListenerCalls
from bolide.client.manner import Manner
from bolide.client.operators import Consumer, Operators
from bolide.client.queue_calls import QueueCalls
from bolide.client.reader import Reading
from bolide.client.rounds import Periodic, saying_if_slow
from bolide.client.routes import patiently
from bolide.client.signals import caught_on_loop
from bolide.client.start import LAST
from bolide.client.terms import ClientOptions
from bolide.machines.statistics import SAMPLE_MS
from bolide.model.message import Property
from bolide.model.names import retry_topic
from bolide.model.offsets import MessageQueue
from bolide.model.topic import Subscription
from bolide.net.surroundings import Surroundings
from bolide.net.tasks import Tasks
from bolide.record.stored import StoredMessage
from bolide.rules.allocate import AVERAGELY, Strategy
from bolide.wire.bodies.group import ConsumerData

log = logging.getLogger(__name__)

CONCURRENCY = 20
CONCURRENCY_MAX = 1000
CALL_MESSAGES = 1
CALL_MESSAGES_MAX = 1024
"""The original's bounds of consumeThreadMax and consumeMessageBatchMaxSize."""

CONSUME_TIMEOUT_MS = 15 * 60 * 1000
CONSUME_TIMEOUT_MS_MIN = 1_000
SWEEP_PERIOD_MS = 60_000
PULL_INTERVAL_MS_MAX = 60_000

REBALANCE_PERIOD_MS = 20_000
REBALANCE_GAP_MS = 200
"""Brokers say that members have changed as often as they like; the queues are shared out this often at most."""

LOCK_PERIOD_MS = 20_000
LOCK_AGAIN_MS = 3_000
LOCK_GAP_MS = 500
PERSIST_PERIOD_MS = 5_000
CLOSE_TIMEOUT_MS = 30_000


class PushConsumer:
    """Consumes topics as a member of a group: the members share the queues, each message goes to one of them.

    Example::

        async def handle(messages: list[StoredMessage]) -> None:
            for message in messages:
                print(message.topic, message.body)

        consumer = PushConsumer("127.0.0.1:9876", group="billing", listener=handle)
        await consumer.subscribe("orders", tags="paid || refunded")
        await consumer.run()  # until Ctrl-C or SIGTERM

    Without `run`: `async with consumer: ...`.

    Args:
        nameserver: one or several addresses, `host:port;host:port`.
        group: the group; all its members must subscribe to the same topics and tags.
        listener: called with a list of messages of one queue, and with a `ConsumeContext` if it takes two arguments,
            or one that is named `context`; a plain function runs in a thread, a coroutine function on the event loop.
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
        concurrency: int = CONCURRENCY,
        messages_max: int = CALL_MESSAGES,
        attempts_max: int | None = None,
        auto_commit: bool = True,
        consume_timeout_ms: int = CONSUME_TIMEOUT_MS,
        pull_interval_ms: int = 0,
        close_timeout_ms: int = CLOSE_TIMEOUT_MS,
        bad_bodies: str = checks.DELIVER,
        offsets_dir: str | os.PathLike[str] | None = None,
        surroundings: Surroundings | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._group = checks.group(group)
        self._manner = manner = Manner.checked(
            orderly=orderly,
            broadcasting=broadcasting,
            auto_commit=auto_commit,
            attempts_max=attempts_max,
            start_from=start_from,
        )
        self._close_timeout_ms = checks.number("close_timeout_ms", close_timeout_ms, 0, checks.DAY_MS)
        self._consume_timeout_ms = checks.number(
            "consume_timeout_ms", consume_timeout_ms, CONSUME_TIMEOUT_MS_MIN, checks.DAY_MS
        )
        threads = checks.number("concurrency", concurrency, 1, CONCURRENCY_MAX)
        self._retry_topic = retry_topic(group)
        self._subscriptions: dict[str, Subscription] = {}
        if not broadcasting:
            self._subscriptions[self._retry_topic] = Subscription.parse(self._retry_topic, "*")
        options["instance_name"] = manner.instance_name(options.get("instance_name"))
        self._instance = instance = ClientInstance(checks.nameserver(nameserver), surroundings, **options)
        self._consumption = Consumption(instance.clock)
        calls = QueueCalls(instance, group)
        around = instance.hooks.around_listener(group, checks.function("listener", listener, LISTENER_TAKES))
        terms = ListenerTerms(
            ListenerCalls(around, instance.surroundings, threads),
            instance.clock,
            self._consumption,
            checks.number("messages_max", messages_max, 1, CALL_MESSAGES_MAX),
            self._with_real_topic,
            manner.returns(instance, calls, group),
            by_hand=not auto_commit,
        )
        self.delivery = manner.delivery(terms, threads)
        self._reading = self._make_reading(calls, pull_interval_ms, bad_bodies)
        if offsets_dir is not None:
            offsets_dir = checks.path("offsets_dir", offsets_dir, "path of a folder")
        self._offsets = manner.offsets(instance, calls, group, offsets_dir)
        sharing = manner.sharing(instance, group, self._offsets, checks.strategy(strategy))
        self._assignment = Assignment(instance, calls, self._reading, lambda: self._subscriptions, sharing)
        self._rebalances, self._rounds = self._make_rounds()
        self._operators = self._make_operators(nameserver, terms)
        self._tasks = Tasks()
        self._running = False
        self._skipped = 0
        instance.act_as_consumer(self._state, self._rebalances.soon, self._operators.serves())

    # ---- what it consists of -------------------------------------------------------------------------------

    def _make_reading(self, calls: QueueCalls, pull_interval_ms: int, bad_bodies: str) -> Reading:
        return Reading(
            calls,
            self._instance.clock,
            self._consumption,
            on_messages=self.delivery.offer,
            on_trouble=self._on_trouble,
            on_skipped=self._count_skipped,
            offsets_go_along=not self._manner.broadcasting and not self._manner.orderly,
            skips_bad_bodies=checks.bad_bodies(bad_bodies),
            pull_interval_ms=checks.number("pull_interval_ms", pull_interval_ms, 0, PULL_INTERVAL_MS_MAX),
        )

    def _make_operators(self, nameserver: str, terms: ListenerTerms) -> Operators:
        return Operators(
            Consumer(
                self._group,
                nameserver,
                self._manner.orderly,
                terms,
                self._assignment,
                self.delivery,
                subscriptions=self._subscriptions.values,
                on_moved=self._rebalances.soon,
            )
        )

    def _make_rounds(self) -> tuple[Periodic, dict[str, Periodic]]:
        """The one that shares the queues, and all of them."""
        rebalances = Periodic(
            "sharing the queues", REBALANCE_PERIOD_MS, self._rebalance, gap_ms=REBALANCE_GAP_MS
        )
        rounds = {
            "rebalance": rebalances,
            "offsets": Periodic("storing offsets", PERSIST_PERIOD_MS, self._assignment.persist),
            "statistics": Periodic("counting", SAMPLE_MS, self._consumption.sample),
        }
        if self._manner.locks:
            rounds["locks"] = Periodic(
                "renewing locks", LOCK_PERIOD_MS, self._renew_locks, gap_ms=LOCK_GAP_MS
            )
        if not self._manner.orderly:
            period_ms = min(self._consume_timeout_ms, SWEEP_PERIOD_MS)
            rounds["overdue"] = Periodic("looking for slow calls", period_ms, self._sweep)
        return rebalances, rounds

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the group and begin to consume.  Called by `async with`, and by `run`."""
        await self._instance.start()
        self._operators.started_ms = self._instance.clock.now_ms()
        if self._subscriptions.keys() <= {self._retry_topic}:  # which nobody asks for
            log.warning("the consumer of %s has no topic yet: call subscribe(topic)", self._group)
        try:
            await self._offsets.open(self._instance.client_id)
            pause_ms = await patiently(self._assignment.rebalance)
        except BaseException:
            await self.close()
            raise
        self._running = True
        for name, round_ in self._rounds.items():
            self._tasks.start(round_.run(), name)
        if pause_ms is not None:
            self._rebalances.soon()

    async def close(self) -> None:
        """Stop pulling, let the listener finish, store the offsets, leave the group."""
        self._instance.check_place()
        self.delivery.check_outside()
        self._running = False
        await self._tasks.close()
        await self._assignment.stop_reading()
        await self.delivery.close(self._close_timeout_ms)
        await saying_if_slow(
            self._assignment.close(), lambda: f"the brokers to store the offsets of {self._group}"
        )
        await self._instance.close()

    async def run(self) -> None:
        """Start, and consume until SIGINT (Ctrl-C) or SIGTERM; returns after a close in order.

        A second signal does not wait for that.  Only for the main thread, which gets the signals.
        """
        async with caught_on_loop() as stop:
            await self.start()
            try:
                await stop.wait()
            except BaseException:
                await self.close()
                raise
        await self.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- what to consume, and how ----------------------------------------------------------------------------

    async def subscribe(self, topic: str, tags: str = "*", sql: str | None = None) -> None:
        """Consume a topic too, before or after the start.

        Args:
            topic: one that does not exist yet is consumed when it does; a warning says so.
            tags: `*` for all messages, or those of some tags: `A || B`.
            sql: instead of tags, an expression over the messages' properties: `price > 3 AND colour = 'red'`.
        """
        self._instance.check_not_closed()
        checks.topic(topic)
        known = self._subscriptions.get(topic)
        version = max(self._instance.clock.now_ms(), known.version + 1 if known else 0)
        self._subscriptions[topic] = checks.subscription(topic, tags, sql, version)
        if self._running:
            await self._instance.beat_now()
            self._rebalances.soon()

    async def suspend(self) -> None:
        """Pull nothing and begin no call of the listener, until `resume`.  Calls that run go on; queues are kept."""
        self._instance.check_not_closed()
        self._reading.may_pull.clear()
        self.delivery.stop()

    async def resume(self) -> None:
        """Go on after `suspend`."""
        self._instance.check_not_closed()
        self._reading.may_pull.set()
        self.delivery.go_on()

    async def resize(self, concurrency: int) -> None:
        """From now on so many calls of the listener may run at once.  Those that run end as they are."""
        self._instance.check_not_closed()
        self.delivery.resize(checks.number("concurrency", concurrency, 1, CONCURRENCY_MAX))

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that belong to this member now."""
        return self._assignment.queues

    @property
    def skipped(self) -> int:
        """How many messages were passed over: bad bodies, if they are to be, and what no broker could give whole."""
        return self._skipped

    def _count_skipped(self, count: int) -> None:
        self._skipped += count

    async def _rebalance(self) -> int | None:
        return await self._assignment.rebalance()

    async def _renew_locks(self) -> int | None:
        if await self._assignment.renew_locks():
            return None
        self._rebalances.soon()
        return LOCK_AGAIN_MS

    def _on_trouble(self) -> None:
        """A queue cannot be read: its route may have changed, and its broker may have forgotten who has it."""
        self._instance.refresh_routes_soon()
        if "locks" in self._rounds:
            self._rounds["locks"].soon()

    async def _sweep(self) -> None:
        assert isinstance(self.delivery, Concurrently)
        await self.delivery.sweep(self._assignment.held, self._consume_timeout_ms)

    def _state(self) -> ConsumerData:
        return ConsumerData(
            self._group,
            message_model=self._manner.message_model,
            consume_from=self._manner.consume_from,
            subscriptions=tuple(self._subscriptions.values()),
        )

    def _with_real_topic(self, message: StoredMessage) -> StoredMessage:
        """A message from the group's retry topic shows the topic it was first sent to."""
        original = message.properties.get(Property.RETRY_TOPIC)
        if original is None or message.topic != self._retry_topic:
            return message
        return message.replaced(topic=original)
