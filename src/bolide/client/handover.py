"""Handover: what a poll has taken, on its way to a thread that may not wait for it any more.

An exception of a signal handler can end the waiting at any moment, also when the poll is through.  Nobody gets its
messages then, and the next poll must not count them as done.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from bolide.client.giving import Giving
from bolide.client.handout import Handout
from bolide.client.lite_queue import LiteQueue
from bolide.model.offsets import GroupOffset, MessageQueue

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Waiter:
    """A thread that waits for a poll."""

    taken: dict[MessageQueue, GroupOffset] = field(default_factory=dict)
    """Where the queues stood of which it was given something, before that."""
    has_left: bool = False


class Handover:
    """The polls of one consumer.  `held` are its queues."""

    def __init__(self, giving: Giving, handout: Handout, held: Mapping[MessageQueue, LiteQueue]) -> None:
        self._giving = giving
        self._handout = handout
        self._held = held

    async def poll_for(self, waiter: Waiter, poll: Callable[[], Awaitable[T]]) -> T:
        """A poll on the loop, for a thread."""
        polled = await poll()
        waiter.taken = self._giving.begun  # by this poll: it took in the very step that brought us here
        if waiter.has_left:
            self.give_back(waiter)
        return polled

    def give_back(self, waiter: Waiter) -> None:
        """What it was to have is given out again, and nothing of it counts as done."""
        for queue, first in waiter.taken.items():
            self._handout.drop(queue)
            if (held := self._held.get(queue)) is not None:
                held.fetched.seek(first)
                held.stir()
        waiter.taken = {}
