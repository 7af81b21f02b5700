"""Unread: how much is kept of the answers that a connection has not read.

What is written together is kept by whoever sends it until the last byte of it has gone.  So answers count whole, and
not as what is left of them; and nobody tells when that is.
"""

from bolide.model.limits import WRITE_BUFFER_BYTES_MAX
from bolide.net.budget import Account

MANY_BYTES = 2 * int(WRITE_BUFFER_BYTES_MAX)
"""More than this is counted anew at each write: who reads steadily may always have something left."""


class Unread:
    """`left` is always what the socket has not taken yet."""

    __slots__ = ("_account", "_kept", "_newer")

    def __init__(self, account: Account) -> None:
        self._account = account
        self._kept = 0
        self._newer = 0  # of these, what was written since they were counted anew

    def wrote(self, size: int, left: int) -> None:
        """So many bytes more were written."""
        before = self._kept
        if left <= size:  # all that was written before has gone
            self._kept = self._newer = size if left else 0
        else:
            self._kept += size
            self._newer += size
        if self._kept > before:
            self._account.charge(self._kept - before)
            if self._kept > MANY_BYTES:
                self.recount(left)
        elif self._kept < before:
            self._account.release(before - self._kept)

    def recount(self, left: int) -> None:
        """Release what has gone."""
        if left <= self._newer:  # all that was written before the last count
            before, self._kept = self._kept, self._newer if left else 0
            self._newer = 0
            self._account.release(before - self._kept)
