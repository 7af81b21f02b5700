"""Membership: how a consumer that pulls by itself comes to its queues.

As a member of its group it subscribes to topics, tells the brokers so in its heartbeats, and has a share of their
queues (`shares.py`).  Or somebody assigns queues to it: then it is nobody's member, and takes none from anybody.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Generic

from bolide.client import checks
from bolide.client.instance import ClientInstance
from bolide.client.pull_shares import H, Hold, PullShares, Read
from bolide.client.queue_calls import QueueCalls
from bolide.client.queue_changes import QueueChanges, QueuesListener
from bolide.client.rounds import Periodic, saying_if_slow
from bolide.client.routes import patiently
from bolide.client.start import LAST, group_start, told
from bolide.client.start import start_from as checked_start
from bolide.model.errors import BolideError, SubscriptionConflict
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import Subscription
from bolide.net.tasks import Tasks
from bolide.rules.allocate import Strategy
from bolide.wire.bodies.group import ConsumerData, ConsumeType

log = logging.getLogger(__name__)

REBALANCE_PERIOD_MS = 20_000
REBALANCE_GAP_MS = 200
"""Brokers say that members have changed as often as they like; the queues are shared out this often at most."""


class Membership(Generic[H]):
    """The queues of one consumer.  `hold` makes what holds one of them, `read` is what reads it, if anything does."""

    def __init__(
        self,
        instance: ClientInstance,
        calls: QueueCalls,
        group: str,
        hold: Hold[H],
        *,
        strategy: str | Strategy,
        read: Read[H] | None = None,
        start_from: str | int | datetime = LAST,
        on_queues_changed: QueuesListener | None = None,
    ) -> None:
        self._instance = instance
        self._calls = calls
        self._group = group
        self._start_from = checked_start(start_from)
        self._changes = QueueChanges(on_queues_changed, instance.surroundings)
        self._subscriptions: dict[str, Subscription] = {}
        self._assigned: list[MessageQueue] | None = None
        self._is_member = False
        self._shares = PullShares(
            *(instance, calls, lambda: self._subscriptions, checks.strategy(strategy), hold, read),
            chosen=lambda: self._assigned,
            on_change=self._changes.tell,
        )
        self._rebalances = Periodic(
            "sharing the queues", REBALANCE_PERIOD_MS, self._round, gap_ms=REBALANCE_GAP_MS
        )
        self._one_round = asyncio.Lock()
        self._tasks = Tasks()
        self._is_running = False
        self._is_sharing = False

    @property
    def held(self) -> Mapping[MessageQueue, H]:
        """The queues that are ours now."""
        return self._shares.held

    @property
    def subscriptions(self) -> Mapping[str, Subscription]:
        return self._subscriptions

    async def start_offset(self, queue: MessageQueue) -> GroupOffset:
        """Where the group reads on."""
        return await group_start(self._calls, queue, self._start_from)

    # ---- what is wanted ------------------------------------------------------------------------------------

    async def subscribe(self, topic: str, tags: str = "*", sql: str | None = None) -> None:
        """Have a share of a topic's queues; a consumer that runs has it when this returns."""
        self._instance.check_not_closed()
        subscription = self._subscription(topic, tags, sql)
        self._check_shares()
        if not self._is_member:
            self._instance.act_as_consumer(self._state, self._rebalances.soon)
            self._is_member = True
        self._subscriptions[topic] = subscription
        await self._changed()

    async def unsubscribe(self, topic: str) -> None:
        """Want nothing of a topic any more."""
        self._instance.check_not_closed()
        self._check_shares()
        if self._subscriptions.pop(checks.topic(topic), None) is not None:
            await self._changed()

    async def assign(self, queues: list[MessageQueue], tags: str = "*", sql: str | None = None) -> None:
        """Have these queues and no others, whoever has them beside us."""
        self._instance.check_not_closed()
        topics = sorted({queue.topic for queue in queues})
        subscriptions = {topic: self._subscription(topic, tags, sql) for topic in topics}
        if self._is_member:
            raise SubscriptionConflict(
                "this consumer shares the queues of its group by subscribe(), and is assigned none beside that: use"
                " another consumer for assign()"
            )
        self._assigned = queues
        self._subscriptions = subscriptions
        await self._changed()

    def _check_shares(self) -> None:
        if self._assigned is not None:
            raise SubscriptionConflict(
                "this consumer has its queues by assign(), and shares none with its group beside that: use another"
                " consumer for subscribe()"
            )

    def _subscription(self, topic: str, tags: str, sql: str | None) -> Subscription:
        known = self._subscriptions.get(checks.topic(topic))
        version = max(self._instance.clock.now_ms(), known.version + 1 if known else 0)
        return checks.subscription(topic, tags, sql, version)

    async def _changed(self) -> None:
        if self._is_running:
            if self._is_member:
                await self._instance.beat_now()
            try:
                await self._look()
            except BolideError as error:
                log.warning("sharing the queues failed, and is tried again: %s", error)
                self._rebalances.soon()

    async def _look(self) -> None:
        """A round now, and from now on again and again."""
        if not self._is_sharing:
            self._is_sharing = True
            self._tasks.start(self._rebalances.run(), "rebalance")
        if await self._round() is not None:
            self._rebalances.soon()

    def _state(self) -> ConsumerData:
        return ConsumerData(
            self._group,
            consume_type=ConsumeType.ACTIVELY,
            consume_from=told(self._start_from),
            subscriptions=tuple(self._subscriptions.values()),
        )

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """The first share is there when this returns, if the brokers answer."""
        self._is_running = True
        if self._subscriptions:
            await patiently(self._look)

    async def close(self) -> None:
        """Take nothing more, store the offsets and let everything go."""
        self._is_running = False
        await self._tasks.close()
        async with self._one_round:
            await self._shares.stop_reading()
            await saying_if_slow(
                self._shares.close(), lambda: f"the brokers to store the offsets of {self._group}"
            )
        await self._changes.close()

    async def persist(self) -> None:
        """Store the offsets that move by themselves, if they have."""
        await self._shares.persist()

    async def store(self, offset_of: Callable[[H], GroupOffset | None]) -> list[BaseException]:
        """Store these offsets, if they have moved; what went wrong."""
        return await self._shares.store(offset_of)

    async def _round(self) -> int | None:
        async with self._one_round:
            return await self._shares.rebalance() if self._is_running else None
