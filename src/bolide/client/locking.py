"""Locking: asks brokers for the queues that this member consumes in order (41), and gives them back (42).

What a lock is worth, and for how long, `machines/orderly.py` knows.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from bolide.client.instance import ClientInstance, raise_for
from bolide.model.clock import Clock
from bolide.model.errors import BolideError, ProtocolError, RequestError
from bolide.model.limits import LOCK_QUEUES_MAX
from bolide.model.offsets import MessageQueue
from bolide.net.link import Link
from bolide.wire.bodies.lock import LockRequest, decode_locked
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command

log = logging.getLogger(__name__)

LOCK_TIMEOUT_MS = 3_000


class Lock(NamedTuple):
    """When it was asked for, and on which connection.  Brokers keep locks in memory: one that has gone away may have
    forgotten them, and given them to others by the time we find it again."""

    asked_ms: int
    link: Link


class Locking:
    """Locks of one group's member."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._clock: Clock = instance.clock
        self._group = group

    async def lock_one(self, queue: MessageQueue) -> Lock | None:
        """None while another member has it."""
        return (await self._lock([queue])).get(queue)

    async def renew(self, queues: Iterable[MessageQueue]) -> dict[MessageQueue, Lock | None]:
        """For each queue whose broker answers: its lock, or None where it is not ours."""
        by_broker: defaultdict[str, list[MessageQueue]] = defaultdict(list)
        for queue in queues:
            by_broker[queue.broker_name].append(queue)
        told: dict[MessageQueue, Lock | None] = {}
        for some in await asyncio.gather(
            *(self._renew_some(some) for all_ in by_broker.values() for some in _pieces(all_))
        ):
            told.update(some)
        return told

    async def unlock(self, queue: MessageQueue) -> None:
        """Give it back; one that cannot be given back is free after a minute."""
        try:
            await self._ask(RequestCode.UNLOCK_BATCH_MQ, [queue])
        except BolideError as error:
            log.warning("the lock of %s was not given back, and ends by itself: %s", queue, error)

    async def _renew_some(self, queues: list[MessageQueue]) -> dict[MessageQueue, Lock | None]:
        try:
            ours = await self._lock(queues)
        except BolideError as error:
            log.warning("locks of %s are not renewed now: %s", queues[0].broker_name, error)
            return {}
        return {queue: ours.get(queue) for queue in queues}

    async def _lock(self, queues: list[MessageQueue]) -> dict[MessageQueue, Lock]:
        asked_ms = self._clock.monotonic_ms()
        link, answer = await self._ask(RequestCode.LOCK_BATCH_MQ, queues)
        try:
            return dict.fromkeys(decode_locked(answer.body), Lock(asked_ms, link))
        except RequestError as error:
            raise ProtocolError(f"locks that cannot be read: {error}") from error

    async def _ask(self, code: RequestCode, queues: list[MessageQueue]) -> tuple[Link, Command]:
        """All queues are of one broker."""
        link = await self._instance.link(await self._instance.queue_address(queues[0]))
        body = LockRequest(self._group, self._instance.client_id, tuple(queues)).encode()
        return link, raise_for(await link.call(Command(code, body=body), LOCK_TIMEOUT_MS))


def _pieces(queues: list[MessageQueue]) -> Iterator[list[MessageQueue]]:
    """As many as a broker takes in one request."""
    rest = iter(queues)
    while some := list(islice(rest, LOCK_QUEUES_MAX)):
        yield some
