"""Large frames: room for those that do not fit the shared memory that connections receive into.

A large frame gets its room before more than its beginning is received.  So as many as there is room for arrive whole,
and the others are not read from until their turn comes: the shorter first, every fourth time who has waited longest.
Frames as long as messages may be have a room of their own: they do not wait for the few that are longer.

While some wait, a frame that has room must come at a pace at which it is whole in some seconds, or its connection is
given up: the larger it is, the more it has to bring, and whoever brings less keeps nobody out for more than two looks.
Who cannot bring more because others have their turn is not given up for it; who cannot because of what it asked for
before has some seconds.
"""

import asyncio
import logging
from collections import defaultdict
from typing import Protocol

from bolide.model.limits import LARGE_FRAME_S_MAX, LARGE_FRAMES_BYTES_MAX, ORDINARY_FRAME_BYTES_MAX
from bolide.net.provoked import Provoked

log = logging.getLogger(__name__)

LOOK_S = 0.25
LOOKS_PER_FRAME_MAX = int(LARGE_FRAME_S_MAX / LOOK_S)
"""In so many looks a frame with room would have to be whole while others wait; at each one its part is due."""

STOPPED_LOOKS_MAX = 20
"""For so many looks a connection may be stopped by answers that it does not read, or by its requests under way."""


class Receiver(Protocol):
    """A connection, as much of it as a frame needs."""

    @property
    def remote(self) -> str:
        """Who is at the other end."""

    @property
    def received_bytes(self) -> int:
        """How much of the large frame has come."""

    @property
    def waits_for_others(self) -> bool:
        """Whether it is not served because others have their turn."""

    @property
    def is_stopped(self) -> bool:
        """Whether it is not served at the moment, for whatever reason."""

    def has_room(self) -> None:
        """The frame that waited can be received."""

    def abort(self) -> None: ...


class LargeFrames:
    """At most one frame of each connection is here."""

    def __init__(self, provoked: Provoked, bytes_max: int = LARGE_FRAMES_BYTES_MAX) -> None:
        quarter = int(bytes_max) // 4
        self._ordinary = Room(3 * quarter, provoked)
        self._larger = Room(quarter, provoked)

    @property
    def kept(self) -> int:
        return self._ordinary.kept + self._larger.kept

    def ask(self, receiver: Receiver, size: int) -> bool:
        """Whether there is room for a frame at once; if not, its connection hears when there is."""
        room = self._ordinary if size <= ORDINARY_FRAME_BYTES_MAX else self._larger
        return room.ask(receiver, size)

    def leave(self, receiver: Receiver) -> None:
        """The frame is whole, or nobody will bring the rest of it."""
        self._ordinary.leave(receiver)
        self._larger.leave(receiver)

    def close(self) -> None:
        self._ordinary.close()
        self._larger.close()


class Room:
    """For frames that wait for each other.  An empty one takes any frame."""

    def __init__(self, bytes_max: int, provoked: Provoked) -> None:
        self._bytes_max = bytes_max
        self._provoked = provoked
        self._sizes: dict[Receiver, int] = {}  # of those that have room
        self._waiting: dict[Receiver, int] = {}  # who has waited longest first
        self._by_class: defaultdict[int, dict[Receiver, None]] = defaultdict(dict)  # the same, by their size
        self._admitted = 0
        self._seen: dict[Receiver, int] = {}  # how much had come at the last look
        self._stopped: dict[Receiver, int] = {}  # for how many looks in a row
        self._next_look: asyncio.TimerHandle | None = None
        self.kept = 0

    def ask(self, receiver: Receiver, size: int) -> bool:
        if not self._waiting and self._fits(size):
            self._take(receiver, size)
            return True
        self._waiting[receiver] = size
        self._by_class[size.bit_length()][receiver] = None
        if self._next_look is None:
            self._look_later()
        return False

    def leave(self, receiver: Receiver) -> None:
        self.kept -= self._sizes.pop(receiver, 0)
        self._seen.pop(receiver, None)
        self._stopped.pop(receiver, None)
        self._wait_no_more(receiver)
        while self._waiting:
            chosen = self._next()
            size = self._waiting[chosen]
            if not self._fits(size):
                break
            self._wait_no_more(chosen)
            self._admitted += 1
            self._take(chosen, size)
            chosen.has_room()

    def _next(self) -> Receiver:
        """Who has a short frame, for it is soon through; every fourth time who has waited longest."""
        if self._admitted % 4 == 3:
            return next(iter(self._waiting))
        return next(iter(self._by_class[min(self._by_class)]))

    def _wait_no_more(self, receiver: Receiver) -> None:
        size = self._waiting.pop(receiver, None)
        if size is not None:
            like = self._by_class[size.bit_length()]
            del like[receiver]
            if not like:
                del self._by_class[size.bit_length()]

    def close(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()

    def _fits(self, size: int) -> bool:
        return self.kept + size <= self._bytes_max or not self._sizes

    def _take(self, receiver: Receiver, size: int) -> None:
        self._sizes[receiver] = size
        self.kept += size

    def _look_later(self) -> None:
        self._next_look = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._next_look = None
        if not self._waiting:
            self._seen.clear()
            self._stopped.clear()
            return
        for receiver, size in list(self._sizes.items()):
            if self._is_excused(receiver):
                self._seen.pop(receiver, None)  # it begins anew when it is served again
                continue
            received = receiver.received_bytes
            due = size // LOOKS_PER_FRAME_MAX
            if received < self._seen.get(receiver, -due) + due:
                self._provoked.say(
                    log,
                    logging.WARNING,
                    receiver.remote,
                    "closing the connection of %s: %d bytes of a frame have come, too slowly while others wait",
                    receiver.remote,
                    received,
                )
                receiver.abort()
                self.leave(receiver)
            else:
                self._seen[receiver] = received
        self._look_later()

    def _is_excused(self, receiver: Receiver) -> bool:
        """Whether it could not bring more, and that is not for too long its own doing."""
        if not receiver.is_stopped:
            self._stopped.pop(receiver, None)
            return False
        if receiver.waits_for_others:
            return True
        looks = self._stopped[receiver] = self._stopped.get(receiver, 0) + 1
        return looks <= STOPPED_LOOKS_MAX
