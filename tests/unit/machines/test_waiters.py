"""Waiters: everybody is told once, in the order of the numbers, or that it took too long."""

from bolide.machines.waiters import Tell, Waiters


class Told:
    def __init__(self) -> None:
        self.words: list[tuple[str, bool]] = []

    def of(self, name: str) -> Tell:
        return lambda reached: self.words.append((name, reached))


def test_those_whose_number_is_reached_are_told_in_its_order_whenever_they_came() -> None:
    waiters, told = Waiters(), Told()
    for number in (5, 9, 7, 7, 12):
        waiters.add(number, 100, told.of(str(number)))
    assert not waiters.reached(4, 10)
    assert told.words == []
    assert not waiters.reached(9, 10)
    assert told.words == [("5", True), ("7", True), ("7", True), ("9", True)]
    assert len(waiters) == 1


def test_no_more_are_told_at_once_than_asked_for() -> None:
    waiters, told = Waiters(), Told()
    for number in range(5):
        waiters.add(number, 100, told.of(str(number)))
    assert waiters.reached(9, 3)
    assert len(told.words) == 3
    assert not waiters.reached(9, 3)
    assert len(told.words) == 5


def test_whose_time_is_up_is_told_so_and_never_again() -> None:
    waiters, told = Waiters(), Told()
    waiters.add(1, 300, told.of("patient"))
    waiters.add(2, 100, told.of("hasty"))
    waiters.expire(99)
    assert told.words == []
    waiters.expire(100)
    waiters.reached(5, 10)
    assert told.words == [("hasty", False), ("patient", True)]


def test_who_is_abandoned_hears_nothing() -> None:
    waiters, told = Waiters(), Told()
    waiters.add(1, 100, told.of("a"))
    waiters.abandon()
    waiters.reached(5, 10)
    waiters.expire(1000)
    assert told.words == []
    assert len(waiters) == 0
