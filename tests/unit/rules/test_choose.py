"""The turn of the queues."""

from collections import Counter

from bolide.model.offsets import MessageQueue
from bolide.rules.choose import QueueTurn

ONE = [MessageQueue("T", "broker-a", number) for number in range(4)]
TWO = ONE + [MessageQueue("T", "broker-b", number) for number in range(4)]


def test_forty_sends_over_four_queues_are_ten_each() -> None:
    turn = QueueTurn(12345)
    assert set(Counter(turn.next(ONE) for _ in range(40)).values()) == {10}


def test_the_broker_that_failed_is_avoided_while_there_is_another() -> None:
    turn = QueueTurn(2)
    assert all(turn.next(TWO, "broker-a").broker_name == "broker-b" for _ in range(20))


def test_where_there_is_only_the_broker_that_failed_it_is_tried_again() -> None:
    turn = QueueTurn()
    assert {turn.next(ONE, "broker-a") for _ in range(16)} == set(ONE)


def test_a_list_that_has_become_shorter_is_no_problem() -> None:
    turn = QueueTurn(7)
    assert turn.next(TWO) == TWO[7]
    assert turn.next(ONE[:1]) == ONE[0]
