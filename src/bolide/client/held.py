"""HeldQueue: a queue that this consumer owns now, with the events that its reader and its workers exchange."""

import asyncio

from bolide.client.rounds import wait_at_most
from bolide.machines.consumer import ProcessQueue
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import Subscription
from bolide.net.link import Link
from bolide.wire.bodies.route import MASTER_ID


class HeldQueue:
    """One owned queue.  After `let_go` nothing is taken from it and its offset is not committed any more."""

    def __init__(
        self, queue: MessageQueue, subscription: Subscription, process: ProcessQueue, now_ms: int
    ) -> None:
        self.queue = queue
        self.subscription = subscription
        self.process = process
        self.broker_id = MASTER_ID  # where the broker says to pull
        self.committed: GroupOffset | None = None  # what was stored last
        self.pulled_ms = now_ms  # when its reader last looked after it
        self.consumed_ms = 0  # when its last call ended, by the clock on the wall
        self.progress = asyncio.Event()  # work has ended: there may be room to pull
        self.gone = asyncio.Event()
        self.is_leaving = False
        self.lock_link: Link | None = None  # the connection on which its lock was granted, if it needs one
        self.reader: asyncio.Task[None] | None = None
        self.retry_timer: asyncio.TimerHandle | None = None

    @property
    def is_gone(self) -> bool:
        return self.gone.is_set()

    @property
    def commit_offset(self) -> GroupOffset:
        """Everything before it is done."""
        return self.process.commit_offset

    @property
    def takes_work(self) -> bool:
        """Whether a call of the listener may begin."""
        return not self.is_gone and not self.is_leaving and self.is_locked

    @property
    def is_locked(self) -> bool:
        """Whether its broker has been there ever since it granted the lock, or none is needed."""
        return self.lock_link is None or self.lock_link.is_open

    def leave(self) -> None:
        """Begin nothing any more.  What runs may end, and still counts."""
        self.is_leaving = True
        if self.reader is not None:
            self.reader.cancel()
        if self.retry_timer is not None:
            self.retry_timer.cancel()

    def let_go(self) -> None:
        self.leave()
        self.gone.set()
        self.progress.set()
        self.process.let_go()

    async def wait_progress(self, timeout_ms: int | None = None) -> None:
        """Until some work on this queue has ended, or it is gone, or the time is up."""
        self.progress.clear()
        if not self.is_gone:
            await wait_at_most(self.progress, timeout_ms)
