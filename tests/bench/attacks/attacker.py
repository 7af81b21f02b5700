"""Fifty connections that attack until they are told to stop: a process of its own, at the lowest priority.

On this machine it shares two cores with whom it attacks; real attackers bring their own.  `python -m
tests.bench.attacks.attacker KIND ADDRESS TOPIC COUNT` says "ready" when all are connected, and ends with its input.
"""

import os
import selectors
import socket
import sys
import time
from collections.abc import Iterator

from tests.bench.attacks.kinds import ATTACKS, PAUSE, Attack, Attacker

READ_BYTES = 1024 * 1024
AGAIN_SECONDS = 0.1
"""Who is thrown out comes back after that."""


class Stranger:
    """One connection; what it has to say waits in `left`."""

    def __init__(self, attack: Attack, who: Attacker, address: tuple[str, int]) -> None:
        self._attack = attack
        self._who = who
        self._address = address
        self._words: Iterator[bytes] = iter(())
        self._left = memoryview(b"")
        self._silent = False
        self.back_at = 0.0
        self.socket: socket.socket | None = None

    def connect(self) -> None:
        self.socket = socket.create_connection(self._address, 10)
        self.socket.setblocking(False)
        self._words = self._attack.says(self._who)
        self._left, self._silent = memoryview(b""), False

    @property
    def events(self) -> int:
        wants_to_read = selectors.EVENT_READ if self._attack.reads or self._silent else 0
        return wants_to_read | (0 if self._silent else selectors.EVENT_WRITE)

    def act(self, events: int) -> None:
        """Say and hear what goes now; OSError when it was thrown out."""
        assert self.socket is not None
        if events & selectors.EVENT_READ and not self.socket.recv(READ_BYTES):
            raise ConnectionResetError
        if events & selectors.EVENT_WRITE:
            if not self._left:
                words = next(self._words, PAUSE)
                self._silent = words == PAUSE
                self._left = memoryview(words)
            self._left = self._left[self.socket.send(self._left) :]


def main(kind: str, address: str, topic: str, count: int) -> None:
    os.nice(19)
    host, _, port = address.rpartition(":")
    strangers = [
        Stranger(ATTACKS[kind], Attacker(number, topic), (host, int(port))) for number in range(count)
    ]
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    for stranger in strangers:
        _enter(stranger, selector)
    print("ready", flush=True)
    while True:
        for key, events in selector.select(AGAIN_SECONDS):
            if key.data is None:
                return
            _act(key.data, events, selector)
        now = time.monotonic()
        for stranger in strangers:
            if stranger.socket is None and stranger.back_at <= now:
                _enter(stranger, selector)


def _enter(stranger: Stranger, selector: selectors.BaseSelector) -> None:
    try:
        stranger.connect()
    except OSError:
        stranger.socket, stranger.back_at = None, time.monotonic() + AGAIN_SECONDS
        return
    assert stranger.socket is not None
    selector.register(stranger.socket, stranger.events, stranger)


def _act(stranger: Stranger, events: int, selector: selectors.BaseSelector) -> None:
    place = stranger.socket
    assert place is not None
    try:
        stranger.act(events)
        if stranger.events:
            selector.modify(place, stranger.events, stranger)
    except BlockingIOError:
        return
    except OSError:
        selector.unregister(place)
        place.close()
        stranger.socket, stranger.back_at = None, time.monotonic() + AGAIN_SECONDS


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
