"""PushConsumer: a member of a group, whose listener gets every message of the group's share, on asyncio.

Delivery is at least once: the group's offset passes a message only after the listener has returned from it.  A message
whose listener raises comes again here, in this consumer, after a growing pause, or, with `max_reconsume_times`, is sent
back to its broker and comes by the group's retry topic, as with clients of other languages.

The parts: `assignment.py` (which queues), `reader.py` (pulls), `machines/consumer.py` (order, limits, offsets),
`delivery.py` (the listener).
"""

import dataclasses
import logging
from datetime import datetime
from types import TracebackType
from typing import Self

from bolide.client import checks
from bolide.client.assignment import FIRST, LAST, Assignment
from bolide.client.delivery import Delivery, Listener, SendBack
from bolide.client.instance import ClientInstance
from bolide.client.queue_calls import QueueCalls
from bolide.client.reader import PULL_MESSAGES, Reading
from bolide.client.rounds import Periodic, saying_if_slow
from bolide.client.signals import caught_on_loop
from bolide.model.errors import ConfigError
from bolide.model.message import Property, StoredMessage
from bolide.model.names import retry_topic
from bolide.model.numbers import INT32_MAX
from bolide.model.offsets import MessageQueue
from bolide.model.topic import Subscription
from bolide.net.surroundings import Surroundings
from bolide.net.tasks import Tasks
from bolide.rules.retry import next_level
from bolide.wire.bodies.group import ConsumeFrom, ConsumerData

log = logging.getLogger(__name__)

CONCURRENCY = 20
CONCURRENCY_MAX = 1000
CALL_MESSAGES_MAX = 1024
"""The original's bounds of consumeThreadMax and consumeMessageBatchMaxSize."""

REBALANCE_PERIOD_MS = 20_000
REBALANCE_GAP_MS = 200
"""Brokers say that members have changed as often as they like; the queues are shared out this often at most."""

PERSIST_PERIOD_MS = 5_000
CLOSE_TIMEOUT_MS = 30_000

_CONSUME_FROM = {FIRST: ConsumeFrom.FIRST_OFFSET, LAST: ConsumeFrom.LAST_OFFSET}


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
        listener: called with a list of messages of one queue; a plain function runs in a thread, a coroutine
            function on the event loop.  When it raises, the messages come again, each alone, after 1 s, 2 s, 5 s …
            up to a minute; `reconsume_times` counts.  Until it succeeds, the group's offset stays before it.
        start_from: where a group begins that has no offsets yet: "last" (only new messages; on a queue that still has
            its first messages, those too), "first", or a moment (datetime, or milliseconds).
        concurrency: how many calls of the listener may run at once.  No number of them promises an order: messages are
            handed out as they lie in their queue, but one that failed comes again later than those behind it.
        messages_max: how many messages one call of the listener gets at most.
        close_timeout_ms: how long `close` waits for calls of the listener that still run.
        bad_bodies: what becomes of messages whose body does not unpack: "deliver" (the body as it is stored, and
            `body_error` says why) or "skip" (`skipped` counts them, and the log tells of some).
        max_reconsume_times: None: a message that fails comes again here, until it succeeds.  A number: it is sent back
            to its broker, which brings it again later, to any member of the group, so many times at most, and then
            keeps it as a dead letter.  A listener that raises `RetryLater` chooses the delay.
    """

    def __init__(
        self,
        nameserver: str,
        *,
        group: str,
        listener: Listener,
        start_from: str | int | datetime = LAST,
        concurrency: int = CONCURRENCY,
        messages_max: int = PULL_MESSAGES,
        close_timeout_ms: int = CLOSE_TIMEOUT_MS,
        bad_bodies: str = checks.DELIVER,
        max_reconsume_times: int | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self._group = checks.group(group)
        self._start_from = _start_from(start_from)
        self._close_timeout_ms = checks.number("close_timeout_ms", close_timeout_ms, 0, checks.DAY_MS)
        self._retry_topic = retry_topic(group)
        self._subscriptions = {self._retry_topic: Subscription.parse(self._retry_topic, "*")}
        self._instance = ClientInstance(checks.nameserver(nameserver), surroundings)
        self._rebalances = Periodic(
            "sharing the queues", REBALANCE_PERIOD_MS, self._rebalance, gap_ms=REBALANCE_GAP_MS
        )
        self._instance.act_as_consumer(self._state, self._rebalances.soon)
        calls = QueueCalls(self._instance, group)
        self._delivery = Delivery(
            _listener(listener),
            self._instance.surroundings,
            concurrency=checks.number("concurrency", concurrency, 1, CONCURRENCY_MAX),
            messages_max=checks.number("messages_max", messages_max, 1, CALL_MESSAGES_MAX),
            prepare=self._with_real_topic,
            send_back=_sender_back(calls, max_reconsume_times),
        )
        reading = Reading(
            calls,
            self._instance.clock,
            on_messages=self._delivery.offer,
            on_trouble=self._instance.refresh_routes_soon,
            on_skipped=self._count_skipped,
            skips_bad_bodies=checks.bad_bodies(bad_bodies),
        )
        self._assignment = Assignment(
            self._instance, calls, reading, lambda: self._subscriptions, self._start_from
        )
        self._persists = Periodic("storing offsets", PERSIST_PERIOD_MS, self._assignment.persist)
        self._tasks = Tasks()
        self._running = False
        self._skipped = 0

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the group and begin to consume.  Called by `async with`, and by `run`."""
        await self._instance.start()
        if len(self._subscriptions) == 1:  # the group's retry topic, which nobody asks for
            log.warning("the consumer of %s has no topic yet: call subscribe(topic)", self._group)
        try:
            pause_ms = await self._assignment.rebalance()
        except BaseException:
            await self.close()
            raise
        self._running = True
        self._tasks.start(self._rebalances.run(), "rebalance")
        self._tasks.start(self._persists.run(), "offsets")
        if pause_ms is not None:
            self._rebalances.soon()

    async def close(self) -> None:
        """Stop pulling, let the listener finish, store the offsets, leave the group."""
        self._running = False
        await self._tasks.close()
        await self._assignment.stop_reading()
        await self._delivery.close(self._close_timeout_ms)
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

    # ---- what to consume -----------------------------------------------------------------------------------

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

    def _state(self) -> ConsumerData:
        return ConsumerData(
            self._group,
            consume_from=_CONSUME_FROM.get(str(self._start_from), ConsumeFrom.TIMESTAMP),
            subscriptions=tuple(self._subscriptions.values()),
        )

    def _with_real_topic(self, message: StoredMessage) -> StoredMessage:
        """A message from the group's retry topic shows the topic it was first sent to."""
        original = message.properties.get(Property.RETRY_TOPIC)
        if original is None or message.topic != self._retry_topic:
            return message
        return dataclasses.replace(message, topic=original)


def _sender_back(calls: QueueCalls, max_reconsume_times: int | None) -> SendBack | None:
    if max_reconsume_times is None:
        return None
    limit = checks.number("max_reconsume_times", max_reconsume_times, 0, INT32_MAX)

    async def send_back(queue: MessageQueue, message: StoredMessage, level: int) -> bool:
        await calls.send_back(queue, message, level, limit)
        return next_level(level, message.reconsume_times, limit) is None

    return send_back


def _listener(value: Listener) -> Listener:
    takes = "a list of messages"
    checks.can_take("listener", checks.function("listener", value, takes), 1, takes)
    return value


def _start_from(value: str | int | datetime) -> str | int:
    if value in (FIRST, LAST):
        return str(value)
    if isinstance(value, str):
        raise ConfigError(f'start_from is "{FIRST}", "{LAST}" or a moment, not {checks.described(value)}')
    return checks.moment_ms("start_from", value, ConfigError)
