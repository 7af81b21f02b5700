"""The turn of the queues."""

from collections import Counter

from bolide.model.offsets import MessageQueue
from bolide.rules.choose import QueueTurn, hashed

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


def test_wishes_are_fulfilled_in_their_order_and_by_nobody_that_has_failed() -> None:
    turn = QueueTurn(3)

    def likes_a(broker: str) -> bool:
        return broker == "broker-a"

    def likes_nobody(broker: str) -> bool:
        return False

    assert {turn.next(TWO, None, (likes_a,)) for _ in range(8)} == set(ONE)
    assert {turn.next(TWO, None, (likes_nobody, likes_a)) for _ in range(8)} == set(ONE)
    assert {turn.next(TWO, "broker-a", (likes_a,)).broker_name for _ in range(8)} == {"broker-b"}
    assert {turn.next(TWO, None, (likes_nobody,)) for _ in range(8)} == set(TWO)


def test_a_key_has_the_queue_that_java_gives_it() -> None:
    """ "polygenelubricants" has the least hash of 32 bits, which has no positive one in Java."""
    expected = {"": 0, "a": 97 % 7, "Aa": 2112 % 7, "BB": 2112 % 7, "polygenelubricants": 2**31 % 7}
    queues = TWO[:7]
    assert {key: queues.index(hashed(key, queues)) for key in expected} == expected
