"""Delivery: hands messages to the application's listener and learns how it went.

Up to `concurrency` calls run at once, taking turns between the queues.  A plain function is called in threads of its
own, a coroutine function on the event loop.  An exception means: not done, bring it again.  The
message goes back to its broker if that was asked for and the broker takes it, and else stays here for another try.
"""

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor

from bolide.client.held import HeldQueue
from bolide.client.rounds import saying_if_slow, wait_at_most
from bolide.model.errors import BolideError, RetryLater
from bolide.model.message import StoredMessage
from bolide.model.offsets import MessageQueue
from bolide.net.surroundings import Surroundings
from bolide.net.tasks import Tasks

log = logging.getLogger(__name__)

TIMER_SLACK_S = 0.005
"""Event loops may fire a timer a moment early; a message that is not due then would be forgotten."""

Listener = Callable[[list[StoredMessage]], Awaitable[None] | None]


SendBack = Callable[[MessageQueue, StoredMessage, int], Awaitable[bool]]
"""Has the broker bring a message again after a delay level; whether that was its last attempt, so that it is a dead
letter now."""


class Delivery:
    """Calls one listener.  `prepare` sees each message before the listener does."""

    def __init__(
        self,
        listener: Listener,
        surroundings: Surroundings,
        *,
        concurrency: int,
        messages_max: int,
        prepare: Callable[[StoredMessage], StoredMessage],
        send_back: SendBack | None = None,
    ) -> None:
        self._listener = listener
        self._on_loop = inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(
            getattr(listener, "__call__", None)  # noqa: B004 - an object may be called with `async def`
        )
        self._surroundings = surroundings
        self._clock = surroundings.clock
        self._concurrency = concurrency
        self._messages_max = messages_max
        self._prepare = prepare
        self._send_back = send_back
        self._threads: Executor | None = None
        self._tasks = Tasks()
        self._running = 0
        self._closing = False
        self._turns: deque[HeldQueue] = deque()
        self._in_turn: set[HeldQueue] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def offer(self, held: HeldQueue) -> None:
        """The queue has something for the listener."""
        if not held.is_gone and held not in self._in_turn:
            self._in_turn.add(held)
            self._turns.append(held)
        self._serve()

    async def close(self, timeout_ms: int) -> None:
        """Begin no call; wait for those that run, but not longer than this; then cancel what can be cancelled."""
        self._closing = True
        may_end = wait_at_most(self._idle, timeout_ms)
        if not await saying_if_slow(may_end, lambda: self._what_runs(timeout_ms)):
            log.warning(
                "%d calls of the listener still run after %g s; their messages will come again",
                *(self._running, timeout_ms / 1000),
            )
        await self._tasks.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _what_runs(self, timeout_ms: int) -> str:
        return f"{self._running} calls of the listener to end, for {timeout_ms / 1000:g} s at most"

    def _serve(self) -> None:
        while self._running < self._concurrency and self._turns and not self._closing:
            held = self._turns.popleft()
            self._in_turn.discard(held)
            now_ms = self._clock.monotonic_ms()
            if held.is_gone or not (messages := held.process.take(now_ms, self._messages_max)):
                continue
            if held.process.has_work(now_ms):
                self._in_turn.add(held)
                self._turns.append(held)
            self._arm_retry(held, now_ms)
            self._running += 1
            self._idle.clear()
            self._tasks.start(self._deliver(held, messages), f"listener of {held.queue}")

    async def _deliver(self, held: HeldQueue, messages: list[StoredMessage]) -> None:
        try:
            await self._call([self._prepare(message) for message in messages])
        except Exception as error:
            left = await self._sent_back(held, messages, error)
            if left:
                self._failed(held, left, error)
        else:
            held.process.succeeded(messages)
            held.progress.set()
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()
            self._serve()

    async def _call(self, messages: list[StoredMessage]) -> None:
        if self._on_loop:
            outcome = self._listener(messages)
            assert outcome is not None
            await outcome
            return
        if self._threads is None:
            self._threads = self._surroundings.threads("bolide-listener", self._concurrency)
        loop = asyncio.get_running_loop()
        outcome = await loop.run_in_executor(self._threads, self._listener, messages)
        if inspect.isawaitable(outcome):
            await outcome

    async def _sent_back(
        self, held: HeldQueue, messages: list[StoredMessage], error: Exception
    ) -> list[StoredMessage]:
        """Give failed messages back to their broker; those that it does not take are left."""
        if self._send_back is None or held.is_gone:  # of a queue that is gone the next owner takes care
            return messages
        level = error.delay_level if isinstance(error, RetryLater) else 0
        buried = 0
        for done, message in enumerate(messages):
            try:
                buried += await self._send_back(held.queue, message, level)
            except BolideError as trouble:
                log.warning("cannot send a message of %s back to its broker: %s", held.queue, trouble)
                return messages[done:]
            held.process.succeeded([message])
            held.progress.set()
        log.warning(
            "the listener %s %d messages of %s from offset %d; %s",
            *(_what_it_did(error), len(messages), held.queue, messages[0].queue_offset),
            _what_comes(len(messages), buried),
            exc_info=_trace(error),
        )
        return []

    def _failed(self, held: HeldQueue, messages: list[StoredMessage], error: Exception) -> None:
        now_ms = self._clock.monotonic_ms()
        pause_ms = held.process.failed(messages, now_ms)
        log.warning(
            "the listener %s %d messages of %s from offset %d; they come again in %g s",
            *(_what_it_did(error), len(messages), held.queue, messages[0].queue_offset, pause_ms / 1000),
            exc_info=_trace(error),
        )
        self._arm_retry(held, now_ms)

    def _arm_retry(self, held: HeldQueue, now_ms: int) -> None:
        """Offer the queue again when its next failed message is due."""
        if held.retry_timer is not None:
            held.retry_timer.cancel()
            held.retry_timer = None
        due_ms = held.process.retry_due_ms
        if due_ms is not None and due_ms > now_ms and not held.is_gone:
            delay_s = (due_ms - now_ms) / 1000 + TIMER_SLACK_S
            held.retry_timer = asyncio.get_running_loop().call_later(delay_s, self.offer, held)


def _what_it_did(error: Exception) -> str:
    """`RetryLater` is an answer of the listener, with its reason, and no accident."""
    if not isinstance(error, RetryLater):
        return "failed for"
    return f"wants later ({error})" if str(error) else "wants later"


def _trace(error: Exception) -> Exception | None:
    return None if isinstance(error, RetryLater) else error


def _what_comes(count: int, buried: int) -> str:
    if not buried:
        return "their broker brings them again"
    last = "that was their last attempt, they are dead letters now"
    return last if buried == count else f"{buried} of them had their last attempt and are dead letters now"
