"""The budget of bytes that a server keeps for its connections: who is given up when there are too many."""

import pytest

from bolide.net.budget import Account, Budget


class Holder:
    """A connection that is told to go, and finds out what it has only when asked."""

    def __init__(self, budget: Budget, kept: int = 0, *, busy: bool = False) -> None:
        self.remote = f"10.0.0.1:{len(budget.accounts)}"
        self.is_busy = busy
        self.is_gone = False
        self.unseen = 0
        self.account: Account = budget.open(self)
        self.account.charge(kept)

    def recount(self) -> None:
        self.account.charge(self.unseen)
        self.unseen = 0

    def abort(self) -> None:
        self.is_gone = True


def gone(*holders: Holder) -> list[bool]:
    return [holder.is_gone for holder in holders]


def test_what_is_charged_and_released_is_what_is_kept() -> None:
    budget = Budget(1000)
    one, other = Holder(budget, 100), Holder(budget, 50)
    assert (budget.kept, one.account.kept, other.account.kept) == (150, 100, 50)
    one.account.release(30)
    assert (budget.kept, one.account.kept) == (120, 70)


def test_the_one_with_most_is_given_up_until_a_quarter_is_free(caplog: pytest.LogCaptureFixture) -> None:
    budget = Budget(1000)
    holders = [Holder(budget, size) for size in (200, 300, 100, 250, 150)]
    assert gone(*holders) == [False] * 5
    holders[2].account.charge(1)
    assert gone(*holders) == [False, True, False, False, False]
    assert budget.kept == 701
    assert "closing 1 of them, first that of 10.0.0.1:1 with 300" in caplog.text


def test_who_brings_requests_goes_after_who_does_not() -> None:
    budget = Budget(1000)
    busy, idle, small = Holder(budget, 600, busy=True), Holder(budget, 350), Holder(budget, 40)
    small.account.charge(20)
    assert gone(busy, idle, small) == [False, True, False]
    small.is_busy = True
    small.account.charge(350)
    assert gone(busy, idle, small) == [True, True, False]


def test_who_keeps_nothing_is_never_given_up_and_who_keeps_little_comes_last() -> None:
    budget = Budget(1000)
    idle = [Holder(budget) for _ in range(10)]
    little = Holder(budget, 20)
    busy = [Holder(budget, 240, busy=True) for _ in range(4)]
    little.account.charge(30)
    assert gone(*idle, little) == [False] * 11
    assert sum(gone(*busy)) == 2


def test_nobody_is_given_up_for_what_is_gone_already() -> None:
    budget = Budget(1000)
    slow, other = Holder(budget, 700), Holder(budget, 200)
    slow.unseen = -600  # it has read its answers meanwhile
    other.account.charge(150)
    assert gone(slow, other) == [False, False]
    assert budget.kept == 450


def test_counting_again_may_find_more() -> None:
    budget = Budget(1000)
    one, other = Holder(budget, 700), Holder(budget, 200)
    other.unseen = 900
    one.account.charge(200)
    assert gone(one, other) == [True, True]
    assert budget.kept == 0


def test_a_settled_account_has_nothing_and_takes_nothing() -> None:
    """What was charged to a connection is often released after it has closed."""
    budget = Budget(1000)
    holder = Holder(budget, 400)
    holder.account.settle()
    assert budget.kept == 0
    holder.account.release(400)
    holder.account.charge(5000)
    holder.account.settle()
    assert (budget.kept, len(budget.accounts)) == (0, 0)
