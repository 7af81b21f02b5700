"""DedupCalls: which messages of a call go on to the listener, and which are remembered afterwards.

A copy of a message that another call works on waits for the end of that call: then it is left out, or worked on if the
other has failed.  Nobody waits while others wait for him, so calls cannot hold each other up.

What happens is written once, as a generator of steps; a thread and an event loop each have their own way to take them.
"""

import asyncio
import functools
import inspect
import logging
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures import wait as wait_in_thread
from dataclasses import dataclass
from typing import Any, Protocol

from bolide.model.errors import DedupFailed
from bolide.model.verdicts import RetryLater
from bolide.net.surroundings import Surroundings
from bolide.record.stored import StoredMessage

log = logging.getLogger(__name__)

BUSY_S = 60.0
"""How long a copy waits for a call that works on the same message, before it comes again later."""

Numbered = list[tuple[int, bytes | None]]
"""Messages by their place in a call, with their keys."""


class SeenStore(Protocol):
    """Where keys are remembered; safe with several threads."""

    waits_for_disk: bool

    def __len__(self) -> int: ...
    def known(self, keys: Sequence[bytes]) -> set[bytes]: ...
    def add(self, keys: Sequence[bytes]) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Ask:
    """A step: something that may wait for the disk."""

    work: Callable[[], object]


@dataclass(frozen=True, slots=True)
class _Wait:
    """A step: another call works on the same message."""

    until: "Future[None]"


_Step = _Ask | _Wait | list[StoredMessage]
"""A list is what the listener is called with."""

_Steps = Generator[_Step, Any, object]


class DedupCalls:
    """Calls listeners with what was not done before."""

    def __init__(
        self,
        store: SeenStore,
        key_of: Callable[[StoredMessage], bytes | None],
        surroundings: Surroundings,
    ) -> None:
        self._store = store
        self._key_of = key_of
        self._surroundings = surroundings
        self._threads: Executor | None = None
        self._lock = threading.Lock()
        self._at_work: dict[bytes, Future[None]] = {}
        self.left_out = 0

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()

    def call(
        self, listener: Callable[..., Any], messages: list[StoredMessage], rest: tuple[Any, ...]
    ) -> object:
        """In a thread.  What a listener gives to be awaited is awaited by who has called us, and so is the rest."""
        steps = self._steps(messages, rest)
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._taken(step, listener, rest)
                except BaseException as error:
                    step = steps.throw(error)
                    continue
                if inspect.isawaitable(answer):
                    return self._go_on(steps, listener, rest, answer)
                step = steps.send(answer)
        except StopIteration as end:
            return end.value

    async def call_on_loop(
        self, listener: Callable[..., Any], messages: list[StoredMessage], rest: tuple[Any, ...]
    ) -> object:
        return await self._go_on(self._steps(messages, rest), listener, rest)

    # ---- what happens --------------------------------------------------------------------------------------

    def _steps(self, messages: list[StoredMessage], rest: tuple[Any, ...]) -> _Steps:
        """Those that nobody else works on first, and then what others did not finish."""
        context = rest[0] if rest and hasattr(rest[0], "ack_index") else None
        left: Numbered = [(place, self._key_of(message)) for place, message in enumerate(messages)]
        while left:
            mine, left = self._claim(left)
            if not mine:
                yield _Wait(self._end_of_work_on(left[0][1]))
                continue
            try:
                known = yield _Ask(functools.partial(self._store.known, _keys(mine)))
                fresh = [one for one in mine if one[1] not in known]
                self._count_left_out(len(mine) - len(fresh))
                outcome = (yield [messages[place] for place, _ in fresh]) if fresh else None
                good = _successes(outcome, context, len(fresh))
                yield _Ask(functools.partial(self._remember, _keys(fresh[:good])))
            finally:
                self._release(mine)
            failed = fresh[good:]
            if context is not None:  # it was told of the fresh ones, and is asked about all
                context.ack_index = min(place for place, _ in [*failed, *left]) - 1 if failed else None
            if failed:
                return outcome
        return None

    def _claim(self, wanted: Numbered) -> tuple[Numbered, Numbered]:
        """What we work on from now on; and what others work on, or we ourselves under another number."""
        mine: Numbered = []
        others: Numbered = []
        end: Future[None] = Future()
        with self._lock:
            for one in wanted:
                key = one[1]
                if key is not None and key in self._at_work:
                    others.append(one)
                    continue
                mine.append(one)
                if key is not None:
                    self._at_work[key] = end
        return mine, others

    def _end_of_work_on(self, key: bytes | None) -> "Future[None]":
        assert key is not None  # nobody else can work on a message without a key
        with self._lock:
            end = self._at_work.get(key)
        if end is None:  # it has ended meanwhile
            end = Future()
            end.set_result(None)
        return end

    def _release(self, mine: Numbered) -> None:
        with self._lock:
            ends = {self._at_work.pop(key) for key in _keys(mine)}
        for end in ends:
            end.set_result(None)

    def _count_left_out(self, count: int) -> None:
        if count:
            with self._lock:
                self.left_out += count

    def _remember(self, keys: list[bytes]) -> None:
        """The work is done, whether that can be noted or not: to fail here would repeat it for certain."""
        try:
            self._store.add(keys)
        except DedupFailed as error:
            log.warning("%d messages are done and cannot be remembered: %s", len(keys), error)

    # ---- how steps are taken -------------------------------------------------------------------------------

    def _taken(self, step: _Step, listener: Callable[..., Any], rest: tuple[Any, ...]) -> object:
        if isinstance(step, _Wait):
            _check_ended(bool(wait_in_thread([step.until], BUSY_S).done))
            return None
        return step.work() if isinstance(step, _Ask) else listener(step, *rest)

    async def _go_on(
        self, steps: _Steps, listener: Callable[..., Any], rest: tuple[Any, ...], begun: Any = None
    ) -> object:
        """On the event loop, from the beginning or from where a call has `begun`."""
        try:
            step = next(steps) if begun is None else None
            while True:
                try:
                    answer = await begun if step is None else await self._taken_on_loop(step, listener, rest)
                except BaseException as error:
                    step = steps.throw(error)
                    continue
                step = steps.send(answer)
        except StopIteration as end:
            return end.value

    async def _taken_on_loop(
        self, step: _Step, listener: Callable[..., Any], rest: tuple[Any, ...]
    ) -> object:
        if isinstance(step, _Wait):
            ended, _ = await asyncio.wait([asyncio.wrap_future(step.until)], timeout=BUSY_S)
            _check_ended(bool(ended))
            return None
        if isinstance(step, _Ask):
            if not self._store.waits_for_disk:
                return step.work()
            if self._threads is None:
                self._threads = self._surroundings.threads("bolide-dedup", for_application=True)
            return await asyncio.get_running_loop().run_in_executor(self._threads, step.work)
        outcome = listener(step, *rest)
        return await outcome if inspect.isawaitable(outcome) else outcome


def _keys(some: Numbered) -> list[bytes]:
    return [key for _, key in some if key is not None]


def _successes(outcome: object, context: Any, count: int) -> int:
    """How many of the messages that the listener got are done, the first ones.

    Whatever is returned says that they are not; a context may say how far the listener came.
    """
    if outcome is not None:
        return 0
    index = None if context is None else context.ack_index
    return count if index is None else min(index + 1, count)


def _check_ended(ended: bool) -> None:
    if not ended:
        raise RetryLater(f"another call has worked on a copy of the same message for {BUSY_S:g} s")
