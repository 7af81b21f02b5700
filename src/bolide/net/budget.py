"""Budget: how many bytes a server keeps for all of its connections together, and for which of them.

Whatever is kept because of a connection is charged to its account: the beginning of a frame, answers that it has not
read, requests that wait for something.  Charging refuses nothing, so whoever charges need not know what to do then:

    link.account.charge(size)      from now on so many bytes more are kept for this connection
    link.account.release(size)     they are gone; as many as were charged

The account of a connection that has closed is settled: nothing of it counts any more, and both calls do nothing.

While half of it is used, whoever answers with much asks `link.account.is_crowded`, and answers with less: so readers of
whole topics get smaller pieces, and do not crowd each other out.

When more than the budget is kept, connections are given up until a quarter of it is free: first those that have
brought no whole request for a while, of these the one with the most.  An honest connection has little, and is busy.
Who has less than the average comes after all who have more, and who has nothing is left alone: that frees nothing.
"""

import logging
from typing import Protocol

from bolide.model.limits import KEPT_BYTES_MAX

log = logging.getLogger(__name__)

ASKS_PER_COUNT = 64


class Holder(Protocol):
    """A connection, as much of it as an account needs."""

    @property
    def remote(self) -> str:
        """Who is at the other end."""

    @property
    def is_busy(self) -> bool:
        """Whether it has brought a whole frame lately."""

    def recount(self) -> None:
        """Charge and release what has changed unseen: nobody tells when answers are read."""

    def abort(self) -> None: ...


class Account:
    """What is kept for one connection."""

    __slots__ = ("_budget", "holder", "is_settled", "kept")

    def __init__(self, budget: "Budget", holder: Holder) -> None:
        self._budget = budget
        self.holder = holder
        self.is_settled = False
        self.kept = 0

    def charge(self, size: int) -> None:
        if not self.is_settled:
            self.kept += size
            self._budget.add(size)

    def release(self, size: int) -> None:
        if not self.is_settled:
            self.kept -= size
            self._budget.kept -= size

    @property
    def is_crowded(self) -> bool:
        """Whether all together have so much that who asks for much should get less of it at a time."""
        return self._budget.is_crowded

    def settle(self) -> None:
        """The connection is gone, and what was kept for it."""
        self.release(self.kept)
        self.is_settled = True
        self._budget.accounts.pop(self, None)


class Budget:
    """`kept` is what all accounts have together."""

    def __init__(self, bytes_max: int = KEPT_BYTES_MAX) -> None:
        self._bytes_max = int(bytes_max)
        self._makes_room = False
        self._asked = 0
        self.kept = 0
        self.accounts: dict[Account, None] = {}  # in the order in which they were opened

    @property
    def is_crowded(self) -> bool:
        """Half of it is used.  Answers may have been read since they were counted; that is looked up now and then."""
        if self.kept <= self._bytes_max // 2:
            return False
        self._asked += 1
        if self._asked % ASKS_PER_COUNT == 0:
            self.recount()
        return self.kept > self._bytes_max // 2

    def open(self, holder: Holder) -> Account:
        account = Account(self, holder)
        self.accounts[account] = None
        return account

    def add(self, size: int) -> None:
        self.kept += size
        if self.kept > self._bytes_max and not self._makes_room:
            self._makes_room = True  # counting again charges, too
            try:
                self._make_room()
            finally:
                self._makes_room = False

    def recount(self) -> int:
        """What is kept at this moment: answers were read of which nobody has told."""
        for account in self.accounts:
            account.holder.recount()
        return self.kept

    def _make_room(self) -> None:
        """A quarter of the budget at once: to find out whom to give up costs a look at all connections."""
        self.recount()
        given_up: list[Account] = []
        left = self.kept
        average = self.kept / max(1, len(self.accounts))
        for account in sorted(
            (one for one in self.accounts if one.kept > 0),
            key=lambda one: (one.kept < average, one.holder.is_busy, -one.kept),
        ):
            if left <= self._bytes_max // 4 * 3:
                break
            left -= account.kept
            given_up.append(account)
        if given_up:
            worst = given_up[0]
            log.warning(
                "%d bytes are kept for connections, %d are allowed: closing %d of them, first that of %s with %d",
                self.kept,
                self._bytes_max,
                len(given_up),
                worst.holder.remote,
                worst.kept,
            )
        for account in given_up:
            account.settle()
            account.holder.abort()
