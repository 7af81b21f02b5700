"""Which brokers are avoided, and for how long."""

import pytest

from bolide.machines.slow_brokers import SlowBrokers, avoided_ms


@pytest.mark.parametrize(
    ("took_ms", "expected_ms"),
    [
        (0, 0),
        (50, 0),
        (100, 0),
        (549, 0),
        (550, 2_000),
        (1_799, 2_000),
        (1_800, 5_000),
        (3_000, 6_000),
        (5_000, 10_000),
        (14_999, 10_000),
        (15_000, 30_000),
        (10**9, 30_000),
    ],
)
def test_the_slower_the_longer_it_is_avoided(took_ms: int, expected_ms: int) -> None:
    """PR-02: the table of the original."""
    assert avoided_ms(took_ms) == expected_ms


def test_a_slow_broker_is_avoided_for_its_time_and_not_longer() -> None:
    """PR-02: who answered in 600 ms is avoided for 2 s."""
    slow = SlowBrokers()
    slow.answered("a", 600, now_ms=1_000)
    assert not slow.is_available("a", 2_999)
    assert slow.is_reachable("a", 2_999)
    assert slow.is_available("a", 3_000)
    assert slow.is_available("b", 1_000)


def test_a_fast_answer_is_forgiveness() -> None:
    slow = SlowBrokers()
    slow.answered("a", 20_000, now_ms=0)
    slow.answered("a", 40, now_ms=1)
    assert slow.is_available("a", 1)


def test_a_failure_counts_as_ten_seconds_and_who_did_not_answer_comes_last() -> None:
    slow = SlowBrokers()
    slow.failed("silent", 0, has_answered=False)
    slow.failed("refusing", 0, has_answered=True)
    for broker in ("silent", "refusing"):
        assert not slow.is_available(broker, 9_999)
        assert slow.is_available(broker, 10_000)
    assert not slow.is_reachable("silent", 9_999)
    assert slow.is_reachable("refusing", 9_999)
    assert slow.is_reachable("silent", 10_000)


def test_nobody_is_remembered_whose_time_is_over() -> None:
    slow = SlowBrokers()
    for number in range(1_000):
        slow.failed(f"broker-{number}", number * 10_000, has_answered=False)
    assert len(slow._avoided) == 1
