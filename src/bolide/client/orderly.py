"""Orderly: hands the messages of a queue to the listener in their order, one call at a time.

A failed call is repeated after a pause, and what lies behind waits.  Where attempts are limited, a message that has had
them all becomes a dead letter, and the queue goes on.
"""

import logging

from bolide.client.context import ConsumeContext
from bolide.client.delivery import Delivery, trace_of, what_it_did
from bolide.client.held import HeldQueue
from bolide.machines.orderly import OrderedQueue
from bolide.model.errors import BolideError
from bolide.model.verdicts import Suspend
from bolide.record.stored import StoredMessage

log = logging.getLogger(__name__)

SUSPEND_MS = 1_000
"""The original's suspendCurrentQueueTimeMillis."""


class Orderly(Delivery):
    async def settle(
        self,
        held: HeldQueue,
        messages: list[StoredMessage],
        context: ConsumeContext,
        outcome: Exception | None,
    ) -> None:
        process = held.process
        assert isinstance(process, OrderedQueue)
        if outcome is None:
            if context.verdict is False:
                process.rolled_back(self._clock.monotonic_ms(), SUSPEND_MS)
            else:
                process.done(commit=not self._terms.by_hand or context.verdict is True)
            return
        pause_ms = outcome.pause_ms if isinstance(outcome, Suspend) else SUSPEND_MS
        buried, passed = await self._give_up_some(held, process, messages)
        left = len(messages) - buried - passed
        if left:
            process.suspended(self._clock.monotonic_ms(), pause_ms)
        else:
            process.done(commit=False)
        log.warning(
            "the listener %s %d messages of %s from offset %d; %s",
            *(what_it_did(outcome), len(messages), held.queue, messages[0].queue_offset),
            _what_comes(left, buried, passed, pause_ms),
            exc_info=trace_of(outcome),
        )

    async def _give_up_some(
        self, held: HeldQueue, process: OrderedQueue, messages: list[StoredMessage]
    ) -> tuple[int, int]:
        """Those that have had all their attempts; how many are dead letters, and how many are passed over."""
        returns, buried, passed = self._terms.returns, 0, 0
        for message in messages:
            if returns is None or not returns.is_over(message):
                continue
            try:
                is_buried = await returns.give_up(held.queue, message)
            except BolideError as trouble:
                log.warning("cannot make a dead letter of a message of %s: %s", held.queue, trouble)
                continue
            process.given_away(message)
            buried += is_buried
            passed += not is_buried
        return buried, passed


def _what_comes(left: int, buried: int, passed: int, pause_ms: int) -> str:
    dead = f"{buried} had their last attempt and are dead letters now"
    over = f"{passed} had their last attempt and are passed over"
    again = f"{left} come again in {pause_ms / 1000:g} s, and those behind wait"
    return "; ".join([dead] * bool(buried) + [over] * bool(passed) + [again] * bool(left))
