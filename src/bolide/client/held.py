"""HeldQueue: a queue that this consumer owns now, with the events that its reader and its workers exchange."""

import asyncio

from bolide.client.rounds import wait_at_most
from bolide.machines.consumer import Cache, ProcessQueue
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import Subscription
from bolide.wire.bodies.route import MASTER_ID


class HeldQueue:
    """One owned queue.  After `let_go` nothing is taken from it and its offset is not committed any more."""

    def __init__(
        self, queue: MessageQueue, subscription: Subscription, start: GroupOffset, cache: Cache
    ) -> None:
        self.queue = queue
        self.subscription = subscription
        self.process = ProcessQueue(start, cache)
        self.broker_id = MASTER_ID  # where the broker says to pull
        self.committed: GroupOffset | None = None  # what the broker was told last
        self.progress = asyncio.Event()  # work has ended: there may be room to pull
        self.gone = asyncio.Event()
        self.reader: asyncio.Task[None] | None = None
        self.retry_timer: asyncio.TimerHandle | None = None

    @property
    def is_gone(self) -> bool:
        return self.gone.is_set()

    def let_go(self) -> None:
        self.gone.set()
        self.progress.set()
        self.process.let_go()
        if self.reader is not None:
            self.reader.cancel()
        if self.retry_timer is not None:
            self.retry_timer.cancel()

    async def wait_progress(self, timeout_ms: int | None = None) -> None:
        """Until some work on this queue has ended, or it is gone, or the time is up."""
        self.progress.clear()
        if not self.is_gone:
            await wait_at_most(self.progress, timeout_ms)
