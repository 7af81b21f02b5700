"""Waiters: everybody is given out once, in the order of the numbers, or because it took too long."""

from bolide.machines.waiters import Tell, Waiters


class Told:
    def __init__(self) -> None:
        self.words: list[tuple[str, bool]] = []

    def of(self, name: str) -> Tell:
        return lambda reached: self.words.append((name, reached))

    def tell(self, tells: list[Tell], word: bool) -> None:
        for tell in tells:
            tell(word)


def test_those_whose_number_is_reached_come_in_its_order_whenever_they_were_added() -> None:
    waiters, told = Waiters(), Told()
    for number in (5, 9, 7, 7, 12):
        waiters.add(number, 100, told.of(str(number)))
    assert waiters.take_reached(4, 10) == []
    told.tell(waiters.take_reached(9, 10), True)
    assert told.words == [("5", True), ("7", True), ("7", True), ("9", True)]
    assert len(waiters) == 1


def test_no_more_come_at_once_than_asked_for() -> None:
    waiters, told = Waiters(), Told()
    for number in range(5):
        waiters.add(number, 100, told.of(str(number)))
    assert [len(waiters.take_reached(9, 3)) for _ in range(3)] == [3, 2, 0]


def test_whose_time_is_up_comes_then_and_never_again() -> None:
    waiters, told = Waiters(), Told()
    waiters.add(1, 300, told.of("patient"))
    waiters.add(2, 100, told.of("hasty"))
    assert waiters.take_late(99) == []
    told.tell(waiters.take_late(100), False)
    told.tell(waiters.take_reached(5, 10), True)
    assert told.words == [("hasty", False), ("patient", True)]


def test_who_is_abandoned_never_comes() -> None:
    waiters, told = Waiters(), Told()
    waiters.add(1, 100, told.of("a"))
    waiters.abandon()
    assert waiters.take_reached(5, 10) == waiters.take_late(1000) == []
    assert len(waiters) == 0
