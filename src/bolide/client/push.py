"""PushConsumer: a member of a group, whose listener gets every message of the group's share, on asyncio.

Delivery is at least once: the group's offset passes a message only after the listener has returned from it.  A message
whose listener raises comes again here, in this consumer, after a growing pause; it is not sent back to the broker's
retry topic.  Messages that clients of other languages put into the group's retry topic are consumed too.

The parts: `assignment.py` (which queues), `reader.py` (pulls), `machines/consumer.py` (order, limits, offsets),
`delivery.py` (the listener).
"""

import dataclasses
from datetime import datetime
from types import TracebackType
from typing import Self

from bolide.client.assignment import FIRST, LAST, Assignment
from bolide.client.delivery import Delivery, Listener
from bolide.client.instance import ClientInstance
from bolide.client.pull import to_ms
from bolide.client.queue_calls import QueueCalls
from bolide.client.reader import PULL_MESSAGES, Reading
from bolide.client.rounds import Round
from bolide.model.errors import ConfigError
from bolide.model.message import Property, StoredMessage
from bolide.model.names import check_group, check_topic, retry_topic
from bolide.model.offsets import MessageQueue
from bolide.model.topic import Subscription
from bolide.net.surroundings import Surroundings
from bolide.net.tasks import Tasks
from bolide.wire.bodies.group import ConsumeFrom, ConsumerData

CONCURRENCY = 20
REBALANCE_PERIOD_MS = 20_000
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
        async with consumer:
            await stop.wait()

    Args:
        nameserver: one or several addresses, `host:port;host:port`.
        group: the group; all its members must subscribe to the same topics and tags.
        listener: called with a list of messages of one queue; a plain function runs in a thread, a coroutine
            function on the event loop.  When it raises, the messages come again, each alone, after 1 s, 2 s, 5 s …
            up to a minute; `reconsume_times` counts.  Until it succeeds, the group's offset stays before it.
        start_from: where a group begins that has no offsets yet: "last" (only new messages; on a queue that still has
            its first messages, those too), "first", or a moment (datetime, or milliseconds).
        concurrency: how many calls of the listener may run at once.  With 1, the messages of a queue come in order.
        messages_max: how many messages one call of the listener gets at most.
        close_timeout_ms: how long `close` waits for calls of the listener that still run.
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
        surroundings: Surroundings | None = None,
    ) -> None:
        self._group = check_group(group)
        self._start_from = _start_from(start_from)
        if concurrency < 1 or messages_max < 1:
            raise ConfigError("concurrency and messages_max are at least 1")
        self._close_timeout_ms = close_timeout_ms
        self._retry_topic = retry_topic(group)
        self._subscriptions = {self._retry_topic: Subscription.parse(self._retry_topic, "*")}
        self._instance = ClientInstance(nameserver, surroundings)
        self._rebalances = Round("sharing the queues", REBALANCE_PERIOD_MS, self._rebalance)
        self._instance.act_as_consumer(self._state, self._rebalances.soon)
        self._delivery = Delivery(
            listener,
            self._instance.surroundings,
            concurrency=concurrency,
            messages_max=messages_max,
            prepare=self._with_real_topic,
        )
        calls = QueueCalls(self._instance, group)
        reading = Reading(calls, self._delivery.offer, self._instance.refresh_routes_soon)
        self._assignment = Assignment(
            self._instance, calls, reading, lambda: self._subscriptions, self._start_from
        )
        self._persists = Round("storing offsets", PERSIST_PERIOD_MS, self._assignment.persist)
        self._tasks = Tasks()
        self._running = False

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the group and begin to consume.  Called by `async with`."""
        await self._instance.start()
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
        await self._assignment.close()
        await self._instance.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # ---- what to consume -----------------------------------------------------------------------------------

    async def subscribe(self, topic: str, tags: str = "*") -> None:
        """Consume a topic too, before or after the start; `tags` is `*` or `A || B`."""
        check_topic(topic)
        known = self._subscriptions.get(topic)
        version = max(self._instance.clock.now_ms(), known.version + 1 if known else 0)
        self._subscriptions[topic] = Subscription.parse(topic, tags, version)
        if self._running:
            await self._instance.beat_now()
            self._rebalances.soon()

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that belong to this member now."""
        return self._assignment.queues

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


def _start_from(value: str | int | datetime) -> str | int:
    if isinstance(value, str):
        if value not in (FIRST, LAST):
            raise ConfigError(f'start_from is "first", "last" or a moment, not {value!r}')
        return value
    return to_ms(value)
