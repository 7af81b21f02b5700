"""Handout: the messages of a poll, handed over one by one to who iterates over a consumer, in whatever thread that is.

It knows which of them have not been handed over yet, and which one is in hand, so that the group's offset passes a
message only when the next one is asked for.

All but `next` happens on the event loop.  A thread may make its steps meanwhile, which only shorten the list at its
end: the loop changes that list in place and message by message, so that none is with both of them, or with neither.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.record.stored import StoredMessage

HANDOUT_MESSAGES = 500


class Handout:
    """`more` polls once more; None when the consumer is closed."""

    def __init__(self, more: Callable[[], Awaitable[list[StoredMessage] | None]]) -> None:
        self._more = more
        self._rest: list[StoredMessage] = []  # the next one last
        self._in_hand: StoredMessage | None = None
        self._begun = self._ended = 0  # steps of the iteration; they differ while another thread makes one

    def next(self) -> StoredMessage | None:
        """The next message, if it is there."""
        self._begun += 1
        try:
            self._in_hand = self._rest[-1] if self._rest else None
            if self._in_hand is not None:
                del self._rest[-1]  # no call, so no signal comes between: a message is in hand, or still here
        finally:  # or a Ctrl-C in this step would end all commits
            self._ended = self._begun
        return self._in_hand

    async def refill(self) -> bool:
        """Wait for more, a while; False when there will be none."""
        messages = await self._more()
        if messages is None:
            return False
        self._rest = messages[::-1]
        return True

    def take(self, count_max: int) -> list[StoredMessage]:
        """What is left, for a poll: nothing is in hand any more."""
        rest, taken = self._rest, list[StoredMessage]()
        self._in_hand = None
        with suppress(IndexError):  # there are no more
            while len(taken) < count_max:
                taken.append(rest.pop())
        return taken

    @property
    def is_in_use(self) -> bool:
        """Whether somebody iterates, so that what was handed over before the one in hand is done."""
        return self._in_hand is not None or bool(self._rest)

    def still_open(self, *, with_that_in_hand: bool) -> dict[MessageQueue, GroupOffset] | None:
        """By queue, the first message that was not handed over, or is in hand; None while that changes."""
        begun = self._begun
        if begun != self._ended:
            return None
        messages, in_hand = self._rest[:], self._in_hand
        if begun != self._begun:
            return None
        if with_that_in_hand and in_hand is not None:
            messages.append(in_hand)
        return first_of(messages[::-1])

    def drop(self, queue: MessageQueue) -> None:
        """Hand over nothing of this queue any more."""
        rest, at = self._rest, 0
        with suppress(IndexError):  # the end, wherever a thread has moved it to
            while True:
                if queue_of(rest[at]) == queue:
                    del rest[at]
                else:
                    at += 1


def first_of(messages: list[StoredMessage]) -> dict[MessageQueue, GroupOffset]:
    """By queue, the first one's offset."""
    return {queue_of(message): GroupOffset(message.queue_offset) for message in reversed(messages)}


def queue_of(message: StoredMessage) -> MessageQueue:
    return MessageQueue(message.topic, message.broker_name, message.queue_id)
