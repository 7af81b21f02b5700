"""Direct: a blocking send of a plain message by the very thread that wants it sent, without the event loop.

Handing a send to the loop's thread and its outcome back costs more than the send.  So who sends one message after the
other gets a connection to each broker beside the one of the loop, and waits on it.  What is not plain goes through the
loop: messages that keep an order or are compressed, clients that encrypt, sign, trace, have hooks or avoid slow
brokers; topics and brokers that are not known yet; and whatever other threads send at the same time.

The loop has the last word: a direct connection is used only while that of the loop to the same broker is well, a try
that failed goes on there, and where there is no way beside it, all do for a while.
"""

import asyncio
import threading
from typing import NamedTuple

from bolide.client.gather import SendReceipt
from bolide.client.loop_thread import LoopThread
from bolide.client.outgoing import Outgoing, prepare
from bolide.client.producer import Producer
from bolide.client.sending import Failed, may_try_another
from bolide.model.errors import (
    CallTimeout,
    ClientError,
    ConnectionLost,
    ProtocolError,
    RemoteError,
    RouteNotFound,
)
from bolide.model.message import Message
from bolide.net.link import Link
from bolide.net.thread_link import ThreadLink
from bolide.record.message_id import UniqueIds

SENDS_BEFORE = 8
"""Who sends fewer, one soon after the other, needs no connection for it."""

SOON_MS = 1_000
IDLE_MS = 5_000
"""No longer is a connection kept that nobody uses: it has no heartbeats, and what lies between may forget it."""

REST_MS = 10_000
"""So long everything goes through the loop where a connection cannot be made, or was lost."""

CONNECT_MS = 1_000
LEAVE_S = 5.0
"""Who was told of the end leaves at once; a close waits for no more than this."""


class _Unstored(NamedTuple):
    """What was tried here once and goes on through the loop."""

    outgoing: Outgoing
    failed: Failed


class Direct:
    """The direct connections of one producer, for one thread at a time."""

    def __init__(self, loop: LoopThread, core: Producer) -> None:
        self._loop = loop
        self._sending = core.sending
        self._preparation = core.preparation
        self._instance = core.instance
        self._clock = core.instance.clock
        self._turns: list[object] = []
        """Who is first has the connections.  No lock: an interrupt can come between its acquisition and the `try`."""

        self._left = threading.Event()
        self._ids: UniqueIds | None = None
        self._links: dict[Link, ThreadLink] = {}
        """By the connection of the loop to the same broker."""

        self._in_a_row = 0
        self._last_ms = 0
        self._not_before_ms = 0
        self._is_in_doubt = False
        """A connection may be dead, and that of the loop with it: the next send goes over a new one."""

        self._is_tended = False
        self._is_off = core.sees_each

    def send(self, message: Message, timeout_ms: int | None) -> SendReceipt | None:
        """The receipt; None, and nothing was sent, where it has to go through the loop."""
        if self._is_off or type(message) is not Message or message.sharding_key is not None:
            return None
        self._loop.check_caller()
        turn = object()
        try:
            self._turns.append(turn)
            if self._turns[0] is not turn:
                return None
            found = self._tried(message, timeout_ms)
        finally:
            self._turns.remove(turn)  # first, and here: a call of our own could be interrupted before it
            self._has_left()
        if not isinstance(found, _Unstored):
            return found
        (receipt,) = self._loop.run(self._sending.store(found.outgoing, timeout_ms, failed=found.failed))
        return receipt

    def _has_left(self) -> None:
        if self._is_off and not self._turns:
            self._left.set()

    def _tried(self, message: Message, timeout_ms: int | None) -> SendReceipt | _Unstored | None:
        began_ms = self._clock.monotonic_ms()
        if not self._is_worth_it(began_ms) or not self._instance.is_running:
            return None
        if self._ids is None:
            self._ids = self._instance.more_ids()
        outgoing = prepare(message, self._ids.next())
        if outgoing.sharding_key is not None or len(outgoing.body) >= self._preparation.pack_from_bytes:
            return None
        timeout_ms = self._sending.time(timeout_ms)
        queue = self._sending.next_at_hand(outgoing.topic)
        if queue is None:
            return None
        try:
            address = self._instance.routes.address(queue.broker_name)
        except RouteNotFound:  # the loop is just learning another route
            return None
        link = self._link(address, timeout_ms)
        if link is None or self._is_off:
            return None
        left_ms = max(1, began_ms + timeout_ms - self._clock.monotonic_ms())
        trouble: ClientError | ProtocolError
        try:
            answer = link.call(self._sending.request(outgoing, queue), left_ms)
            stored = self._sending.read(answer, outgoing, queue, address, began_ms)
        except RemoteError as error:
            if not may_try_another(error):
                raise
            trouble = error
        except CallTimeout as error:
            self._drop_all()
            self._is_in_doubt = True
            trouble = error
        except (ConnectionLost, ProtocolError) as error:
            self._rest()
            trouble = error
        except BaseException:  # an interrupt: a frame may be half sent, or half read
            self._drop_all()
            raise
        else:
            return stored.receipts()[0]
        return _Unstored(outgoing, Failed(queue.broker_name, trouble, began_ms + timeout_ms))

    def _is_worth_it(self, now_ms: int) -> bool:
        """Whether sends follow each other; one that is alone would pay for a connection."""
        if now_ms < self._not_before_ms:
            return False
        self._in_a_row = self._in_a_row + 1 if now_ms - self._last_ms < SOON_MS else 1
        self._last_ms = now_ms
        return self._in_a_row > SENDS_BEFORE or bool(self._links) or self._is_in_doubt

    def _link(self, address: str, timeout_ms: int) -> ThreadLink | None:
        beside = self._instance.plain_link(address)
        if beside is None:
            return None
        link = self._links.get(beside)
        if link is not None and not link.is_clean:  # an interrupt came before anybody could drop it
            link.close()
            link = None
        if link is None:
            self._is_in_doubt = False
            try:
                link = self._links[beside] = ThreadLink(
                    beside.remote, self._clock, min(CONNECT_MS, timeout_ms)
                )
            except ConnectionLost:
                self._rest()
                return None
            if not self._is_tended:
                self._is_tended = True
                self._loop.call_soon(Direct._tend, self)
        return link

    def _rest(self) -> None:
        self._not_before_ms = self._clock.monotonic_ms() + REST_MS
        self._drop_all()

    def _drop_all(self) -> None:
        links, self._links = self._links, {}
        for link in links.values():
            link.close()

    # ---- on the loop, and at the end -----------------------------------------------------------------------

    def _tend(self) -> None:
        """Close what is not used, now and then."""
        goes_on = not self._is_off
        turn = object()
        self._turns.append(turn)
        try:
            if self._turns[0] is turn:
                now_ms = self._clock.monotonic_ms()
                for beside, link in list(self._links.items()):
                    if now_ms - link.used_ms >= IDLE_MS or not beside.is_open:
                        del self._links[beside]
                        link.close()
                self._is_tended = goes_on = bool(self._links)
        finally:
            self._turns.remove(turn)
            self._has_left()
        if goes_on:
            asyncio.get_running_loop().call_later(IDLE_MS / 1000, self._tend)

    def close(self) -> None:
        """At the end of the producer: a send that waits for its answer is told that there will be none."""
        self._is_off = True
        for link in list(self._links.values()):
            link.wake()
        if self._turns:
            self._left.wait(LEAVE_S)
        self._drop_all()
