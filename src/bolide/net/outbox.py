"""Outbox: what a connection writes goes to its socket, and that of one turn goes together.

A write to a socket costs more than many an answer.  So whoever serves what a connection has brought says `hold` before
and `release` behind it, and the answers between go out as one.  Nothing waits for longer than that, and never much.
"""

import asyncio

from bolide.net.budget import Account
from bolide.net.unread import Unread

HELD_BYTES_MAX = 64 * 1024
"""As much as this goes out at once: the other side may as well begin to read it."""

APART_BYTES = 1024 * 1024
"""A body of this length goes out after its head instead of with it: to be joined it would be copied."""


class Outbox:
    __slots__ = ("_held", "_held_bytes", "_holds", "transport", "unread")

    def __init__(self, account: Account) -> None:
        self.unread = Unread(account)
        self.transport: asyncio.Transport | None = None
        self._holds = False
        self._held: list[bytes] = []
        self._held_bytes = 0

    def hold(self) -> None:
        """Keep what is written until `release`."""
        self._holds = True

    def release(self) -> None:
        self._holds = False
        if self._held:
            self._write_held()

    def write(self, *parts: bytes) -> None:
        """Send parts of frames, one behind the other.  A connection that has closed swallows them."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        self._held += parts
        for part in parts:
            self._held_bytes += len(part)
        if not self._holds or self._held_bytes >= HELD_BYTES_MAX:
            self._write_held()

    def _write_held(self) -> None:
        held, size = self._held, self._held_bytes
        self._held, self._held_bytes = [], 0
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        large = held.pop() if len(held[-1]) >= APART_BYTES and len(held) > 1 else None
        if len(held) == 1:
            transport.write(held[0])
        else:
            transport.writelines(held)
        if large is not None:  # of bytes, what the socket does not take at once would be copied twice
            transport.write(memoryview(large))
        self.unread.wrote(size, transport.get_write_buffer_size())
