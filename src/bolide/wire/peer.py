"""Peer: one end of a connection, without the connection.

The protocol is symmetric: a broker also calls its clients.  So the peer does not know which side it is on.  It
cuts received bytes into commands, keeps the calls that wait for an answer by their opaque, and knows when each is
too late.  A shell moves the bytes and owns the clock.
"""

import heapq
from typing import Any

from bolide.model.errors import ProtocolError
from bolide.model.limits import CALLS_MAX, FRAME_BYTES_MAX, HEADER_BYTES_MAX
from bolide.wire.command import FLAG_ONE_WAY, Command, encode_frame
from bolide.wire.frame import FrameReader, Intake
from bolide.wire.pull_frame import PullFrame
from bolide.wire.send_run import SendRun

ANSWERED_MAX = 1024
"""Deadlines of answered calls that are kept before they are looked through."""

_OPAQUE_MASK = 0x7FFF_FFFF


class Answer:
    """A response together with whatever the caller left when it made the call; None when nobody waits for it."""

    __slots__ = ("command", "token")

    def __init__(self, command: Command, token: Any) -> None:
        self.command = command
        self.token = token


class Peer:
    """Bytes in, items out; calls out, answers in.

    `silent_since_ms` is when the first of those calls was sent that have expired since anything was heard, whatever it
    was; None while there is none.  Calls are numbered, and the number says which of them are younger than the last
    thing heard: two moments of one millisecond could not.
    """

    __slots__ = ("_deadlines", "_heard", "_number", "_pending", "reader", "silent_since_ms")

    def __init__(
        self,
        intake: Intake,
        *,
        hot: bool = False,
        frame_bytes_max: int = FRAME_BYTES_MAX,
        header_bytes_max: int = HEADER_BYTES_MAX,
    ) -> None:
        self.reader = FrameReader(
            intake, hot=hot, size_bytes_max=frame_bytes_max, header_bytes_max=header_bytes_max
        )
        self._pending: dict[int, Any] = {}
        self._deadlines: list[tuple[int, int, int]] = []  # deadline, number of the call, when it was sent
        self._number = 0
        self._heard = 0
        self.silent_since_ms: int | None = None

    def next(self) -> Command | Answer | SendRun | PullFrame | None:
        """The next request, answer, run of sends or pull; None when more bytes are needed."""
        item = self.reader.next()
        if type(item) is Command and item.is_response:
            return Answer(item, self._pending.pop(item.opaque, None))
        return item

    def heard(self) -> None:
        """Something has come, if only a part of an answer: the other side is there."""
        self._heard = self._number
        self.silent_since_ms = None

    def call(self, command: Command, deadline_ms: int, token: Any, now_ms: int = 0) -> bytes:
        """The frame to send; its answer will come back from `next` with `token`."""
        if len(self._pending) >= CALLS_MAX:  # a caller that never waits
            raise ProtocolError(f"{CALLS_MAX} calls are already waiting on this connection")
        self._number += 1
        opaque = command.opaque = self._number & _OPAQUE_MASK
        self._pending[opaque] = token
        heapq.heappush(self._deadlines, (deadline_ms, self._number, now_ms))
        if len(self._deadlines) > 2 * len(self._pending) + ANSWERED_MAX:
            self._forget_answered()
        return encode_frame(command)

    def _forget_answered(self) -> None:
        """Calls are answered long before their deadlines, which must not pile up until then."""
        self._deadlines = [item for item in self._deadlines if item[1] & _OPAQUE_MASK in self._pending]
        heapq.heapify(self._deadlines)

    def notify(self, command: Command) -> bytes:
        """The frame of a one-way request."""
        self._number += 1
        command.opaque = self._number & _OPAQUE_MASK
        command.flag |= FLAG_ONE_WAY
        return encode_frame(command)

    def expire(self, now_ms: int) -> list[tuple[Any, int]]:
        """Tokens of the calls whose deadline has passed, and how long each was given; they are forgotten."""
        late: list[tuple[Any, int]] = []
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            deadline_ms, number, sent_ms = heapq.heappop(self._deadlines)
            token = self._pending.pop(number & _OPAQUE_MASK, None)
            if token is not None:
                late.append((token, deadline_ms - sent_ms))
                if number > self._heard and (self.silent_since_ms is None or sent_ms < self.silent_since_ms):
                    self.silent_since_ms = sent_ms
        return late

    def next_deadline_ms(self) -> int | None:
        """When `expire` has something to do, or None."""
        while self._deadlines and self._deadlines[0][1] & _OPAQUE_MASK not in self._pending:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def lost(self) -> list[Any]:
        """The connection is gone: tokens of all calls that wait."""
        tokens = list(self._pending.values())
        self._pending.clear()
        self._deadlines.clear()
        return tokens
