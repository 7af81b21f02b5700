"""Shares: which queues are a consumer's own, kept in step with members and routes.

Each round asks for the members, shares the queues out as every member does (`rules/allocate.py`), lets go what is not
ours any more and takes what is new.  What it is to take a queue, and to let it go, is not decided here.

Topics and brokers are asked side by side, and a broker that does not answer is asked no more in the same round: it
keeps nobody from the queues of the others.
"""

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from bolide.client.by_broker import each_broker
from bolide.client.instance import ClientInstance
from bolide.client.queue_calls import QueueCalls
from bolide.model.errors import BolideError, NoNameServer, RouteNotFound
from bolide.model.limits import CONSUMER_QUEUES_MAX
from bolide.model.names import RETRY_PREFIX
from bolide.model.offsets import MessageQueue
from bolide.model.topic import Subscription
from bolide.rules.allocate import Strategy

log = logging.getLogger(__name__)

UNSETTLED_PAUSE_MS = 1_000


class Held(Protocol):
    """A queue that is ours now."""

    queue: MessageQueue
    subscription: Subscription


H = TypeVar("H", bound=Held)

Changed = Callable[[str, Sequence[MessageQueue], Sequence[MessageQueue]], None]
"""Is told, for a topic, all its queues and those that are ours, when these have changed."""


def nobody(topic: str, queues: Sequence[MessageQueue], ours: Sequence[MessageQueue]) -> None:
    """Who is told when there is nobody to tell."""


def everything(queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> Sequence[MessageQueue]:
    """The strategy of who shares nothing."""
    return queues


class Shares(ABC, Generic[H]):
    """The queues held now.

    `chosen` gives those that somebody has chosen, and None where the group shares them.
    """

    def __init__(
        self,
        instance: ClientInstance,
        calls: QueueCalls,
        subscriptions: Callable[[], Mapping[str, Subscription]],
        strategy: Strategy,
        *,
        chosen: Callable[[], Iterable[MessageQueue] | None] = lambda: None,
        on_change: Changed = nobody,
    ) -> None:
        self._instance = instance
        self._calls = calls
        self._subscriptions = subscriptions
        self._strategy = strategy
        self._chosen = chosen
        self._on_change = on_change
        self._held: dict[MessageQueue, H] = {}
        self._missing: set[str] = set()  # topics that nobody has, as far as was said
        self._has_too_many = False
        self._is_forgotten = False

    @property
    def queues(self) -> list[MessageQueue]:
        return sorted(self._held)

    @abstractmethod
    async def _take(self, queue: MessageQueue, subscription: Subscription) -> bool:
        """Begin with a queue; False when that is to be tried again soon."""

    @abstractmethod
    async def _let_go(self, held: H) -> None:
        """It is not ours any more."""

    async def rebalance(self) -> int | None:
        """One round; a short pause until the next if something was missing, None if all is settled."""
        subscriptions = dict(self._subscriptions())  # more may be added while this waits; they come next
        asked_for = await self._with_routes(subscriptions)
        await self._instance.greet_all()  # brokers must know us before they are asked for members
        self._is_forgotten = False
        await self._leave_others(subscriptions)
        settled = await asyncio.gather(*(self._settle(*one) for one in asked_for.items()))
        if self._is_forgotten:
            await self._instance.beat_now()
        return None if all(settled) and len(settled) == len(subscriptions) else UNSETTLED_PAUSE_MS

    async def _with_routes(self, subscriptions: Mapping[str, Subscription]) -> Mapping[str, Subscription]:
        """Those whose routes were asked for.  While no name server answers, those whose routes are known: they are
        shared on, and only where there are none that is an error."""
        routes = self._instance.routes
        try:
            for topic in subscriptions:
                with contextlib.suppress(RouteNotFound):
                    await routes.route(topic)
        except NoNameServer as error:
            known = {topic: one for topic, one in subscriptions.items() if routes.known(topic) is not None}
            if not known:
                raise
            for topic in subscriptions:
                if topic not in known:
                    self._say_missing(topic, error)
            return known
        return subscriptions

    async def _settle(self, topic: str, subscription: Subscription) -> bool:
        try:
            return await self._rebalance_topic(topic, subscription)
        except RouteNotFound as error:
            self._say_missing(topic, error)
        except BolideError as error:
            log.warning("sharing the queues of %s: %s", topic, error)
        return False

    async def _rebalance_topic(self, topic: str, subscription: Subscription) -> bool:
        queues = (await self._instance.routes.route(topic)).readable(topic)
        self._say_found(topic)
        ours = await self._share_of(topic, queues)
        if ours is None:
            return False
        mine_before = [held for held in self._held.values() if held.queue.topic == topic]
        await asyncio.gather(*(self._let_go(held) for held in mine_before if held.queue not in ours))
        for held in mine_before:
            held.subscription = subscription
        new = sorted(ours - self._held.keys())
        went_well = await each_broker(new, _broker_of, lambda queue: self._take(queue, subscription))
        held_now = self._of(topic)
        if held_now != sorted(held.queue for held in mine_before):
            self._on_change(topic, queues, held_now)
        return went_well

    async def _share_of(self, topic: str, queues: list[MessageQueue]) -> set[MessageQueue] | None:
        """Which of them are ours; None when that cannot be told, and everything stays as it is."""
        chosen = self._chosen()
        if chosen is not None:
            return {queue for queue in chosen if queue.topic == topic}
        members = await self._calls.members(topic)
        if self._instance.client_id not in members:
            self._is_forgotten = True  # the broker has lost us: tell it again, keep what we have
            return None
        return set(self._strategy(queues, members, self._instance.client_id))

    async def _leave_others(self, topics: Iterable[str]) -> None:
        """Topics that nobody subscribes to any more."""
        for topic in sorted({queue.topic for queue in self._held}.difference(topics)):
            await asyncio.gather(*(self._let_go(self._held[queue]) for queue in self._of(topic)))
            self._on_change(topic, [], [])

    def _of(self, topic: str) -> list[MessageQueue]:
        return sorted(queue for queue in self._held if queue.topic == topic)

    # ---- what is said --------------------------------------------------------------------------------------

    def _say_missing(self, topic: str, error: RouteNotFound | NoNameServer) -> None:
        if not topic.startswith(RETRY_PREFIX) and topic not in self._missing:
            self._missing.add(topic)
            log.warning("nothing to consume yet: %s", error)

    def _say_found(self, topic: str) -> None:
        """Where the warning went, so that whoever saw it sees its end too."""
        if topic in self._missing:
            self._missing.discard(topic)
            log.warning("the topic %r is there now, and is consumed", topic)

    def _has_room(self) -> bool:
        """Whether one more queue may be held; if not, that is said once."""
        if len(self._held) < CONSUMER_QUEUES_MAX:
            return True
        if not self._has_too_many:
            self._has_too_many = True
            log.warning(
                "more queues than the %d that one consumer reads would be its own: the group needs more members",
                CONSUMER_QUEUES_MAX,
            )
        return False


def _broker_of(queue: MessageQueue) -> str:
    return queue.broker_name
