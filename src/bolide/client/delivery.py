"""Delivery: hands messages to the application's listener and sees to what comes of it.

This is what both ways of consuming have in common.  `Concurrently` (here) gives failed messages back to their broker
and goes on; `orderly.py` waits for them.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bolide.client.consumption import Consumption
from bolide.client.context import ConsumeContext
from bolide.client.held import HeldQueue
from bolide.client.listener import ListenerCalls
from bolide.client.returns import Fate, Returns
from bolide.client.turns import Turns
from bolide.model.clock import Clock
from bolide.model.errors import BolideError
from bolide.model.verdicts import Later, Suspend
from bolide.record.stored import StoredMessage

log = logging.getLogger(__name__)

TIMER_SLACK_S = 0.005
"""Event loops may fire a timer a moment early; a message that is not due then would be forgotten."""

OVERDUE_LEVEL = 3
"""The delay level of a message whose call takes too long."""


@dataclass(frozen=True)
class ListenerTerms:
    """How a listener is called.  `prepare` sees each message before it does."""

    calls: ListenerCalls
    clock: Clock
    consumption: Consumption
    messages_max: int
    prepare: Callable[[StoredMessage], StoredMessage]
    returns: Returns | None
    """None: nobody takes failed messages back, and they are dropped."""
    by_hand: bool = False


class Delivery(ABC):
    """Calls one listener, up to `concurrency` times at once."""

    def __init__(self, terms: ListenerTerms, concurrency: int) -> None:
        self._terms = terms
        self._clock = terms.clock
        self._turns = Turns(self, concurrency)

    # ---- what others ask for -------------------------------------------------------------------------------

    def offer(self, held: HeldQueue) -> None:
        """The queue has something for the listener."""
        self._turns.offer(held)

    def stop(self) -> None:
        """Begin no call."""
        self._turns.stop()

    def go_on(self) -> None:
        self._turns.go_on()

    @property
    def concurrency(self) -> int:
        return self._turns.concurrency

    def resize(self, concurrency: int) -> None:
        self._terms.calls.resize(concurrency)
        self._turns.resize(concurrency)

    def check_outside(self) -> None:
        """See `ListenerCalls.check_outside`."""
        self._terms.calls.check_outside()

    async def close(self, timeout_ms: int) -> None:
        """Begin no call; wait for those that run, but not longer than this; then cancel what can be cancelled."""
        await self._turns.close(timeout_ms)
        self._terms.calls.close()

    # ---- a turn --------------------------------------------------------------------------------------------

    def take(self, held: HeldQueue) -> list[StoredMessage]:
        now_ms = self._clock.monotonic_ms()
        messages = held.process.take(now_ms, self._terms.messages_max)
        self._arm(held, now_ms)
        return messages

    def has_more(self, held: HeldQueue) -> bool:
        return held.process.has_work(self._clock.monotonic_ms())

    async def work(self, held: HeldQueue, messages: list[StoredMessage]) -> None:
        terms = self._terms
        context = ConsumeContext(held.queue, by_hand=terms.by_hand)
        began_ms = self._clock.monotonic_ms()
        try:
            outcome = await terms.calls.outcome([terms.prepare(message) for message in messages], context)
            took_ms = self._clock.monotonic_ms() - began_ms
            good = done_of(messages, context, outcome)
            terms.consumption.handled(held.queue.topic, good=good, bad=len(messages) - good, took_ms=took_ms)
            held.consumed_ms = self._clock.now_ms()
            if not held.is_gone:  # else the next owner takes care
                await self.settle(held, messages, context, outcome)
        except Exception:  # messages that nobody sees to would be the end of their queue
            log.exception(
                "an unforeseen error with %d messages of %s from offset %d; they come again",
                *(len(messages), held.queue, messages[0].queue_offset),
            )
            held.process.unsettled(messages, self._clock.monotonic_ms())
        held.progress.set()
        self._arm(held, self._clock.monotonic_ms())
        if self.has_more(held):
            self._turns.offer(held)

    @abstractmethod
    async def settle(
        self,
        held: HeldQueue,
        messages: list[StoredMessage],
        context: ConsumeContext,
        outcome: Exception | None,
    ) -> None:
        """See to what has come of a call."""

    def _arm(self, held: HeldQueue, now_ms: int) -> None:
        """Offer the queue again when something is due that waits for its time."""
        if held.retry_timer is not None:
            held.retry_timer.cancel()
            held.retry_timer = None
        due_ms = held.process.retry_due_ms
        if due_ms is not None and due_ms > now_ms and held.takes_work:
            delay_s = (due_ms - now_ms) / 1000 + TIMER_SLACK_S
            held.retry_timer = asyncio.get_running_loop().call_later(delay_s, self.offer, held)


class Concurrently(Delivery):
    """Failed messages go back to their broker and hold up nothing."""

    async def settle(
        self,
        held: HeldQueue,
        messages: list[StoredMessage],
        context: ConsumeContext,
        outcome: Exception | None,
    ) -> None:
        good = done_of(messages, context, outcome)
        held.process.succeeded(messages[:good])
        failed = held.process.still_open(messages[good:])
        if not failed:
            return
        if self._terms.returns is None:
            held.process.succeeded(failed)
            _say(held, failed, outcome, "nobody brings them again, because all members get all messages")
            return
        level = outcome.delay_level if isinstance(outcome, Later) else 0
        left = await self._given_back(held, failed, level or context.delay_level_next, outcome)
        if left:
            held.process.failed(left, self._clock.monotonic_ms())
            _say(held, left, outcome, "no broker takes them back, so they come again here")

    async def _given_back(
        self, held: HeldQueue, messages: list[StoredMessage], level: int, outcome: Exception | None
    ) -> list[StoredMessage]:
        """Give failed messages back to a broker; those that none takes are left."""
        returns = self._terms.returns
        assert returns is not None
        fates = Counter[Fate]()
        for done, message in enumerate(messages):
            try:
                fates[await returns.give_back(held.queue, message, level)] += 1
            except BolideError as trouble:
                log.warning("cannot send a message of %s back to a broker: %s", held.queue, trouble)
                return messages[done:]
            held.process.succeeded([message])
            held.progress.set()
        _say(held, messages, outcome, _what_comes(fates))
        return []

    async def sweep(self, queues: Iterable[HeldQueue], timeout_ms: int) -> None:
        """Give up what the listener has had for too long."""
        for held in queues:
            late = held.process.overdue(self._clock.monotonic_ms(), timeout_ms)
            if late and self._terms.returns is not None:
                error = TimeoutError(f"the listener has had them for more than {timeout_ms / 1000:g} s")
                await self._given_back(held, late, OVERDUE_LEVEL, error)


def done_of(messages: list[StoredMessage], context: ConsumeContext, outcome: Exception | None) -> int:
    """How many of the messages, from the first on, are done."""
    if outcome is not None:
        return 0
    return len(messages) if context.ack_index is None else min(context.ack_index + 1, len(messages))


def _say(held: HeldQueue, messages: list[StoredMessage], outcome: Exception | None, what_comes: str) -> None:
    log.warning(
        "the listener %s %d messages of %s from offset %d; %s",
        *(what_it_did(outcome), len(messages), held.queue, messages[0].queue_offset, what_comes),
        exc_info=trace_of(outcome),
    )


def what_it_did(outcome: Exception | None) -> str:
    """`Later` and `Suspend` are answers of the listener, with their reason, and no accidents."""
    if outcome is None:
        return "acknowledged not all:"
    if not isinstance(outcome, Later | Suspend):
        return "failed for"
    return f"wants later ({outcome})" if str(outcome) else "wants later"


def trace_of(outcome: Exception | None) -> Exception | None:
    return None if isinstance(outcome, Later | Suspend) else outcome


def _what_comes(fates: Counter[Fate]) -> str:
    buried, passed = fates[Fate.BURIED], fates[Fate.PASSED_OVER]
    if not buried and not passed:
        return "their broker brings them again"
    if buried == fates.total():
        return "that was their last attempt, they are dead letters now"
    dead = [f"{buried} of them had their last attempt and are dead letters now"] * bool(buried)
    return "; ".join(
        [*dead, *[f"{passed} of them had their last attempt and are passed over"] * bool(passed)]
    )
