"""When a failed message comes again, when it is dead, and what is kept of its attempts."""

import pytest

from bolide.model.limits import DELAY_LEVELS_MAX
from bolide.model.numbers import INT32_MAX, INT32_MIN
from bolide.model.topic import GroupConfig
from bolide.rules.attempts import ATTEMPTS_BYTES_MAX, attempt, with_attempt
from bolide.rules.retry import is_dead_on_arrival, is_retry, next_level, one_more, times_max

GROUP = GroupConfig("g", retry_max_times=5)


@pytest.mark.parametrize(
    ("asked", "times", "level"),
    [(0, 0, 3), (0, 1, 4), (0, 15, 18), (0, 16, None), (7, 0, 7), (7, 15, 7), (7, 16, None), (-1, 0, None)],
)
def test_a_retry_takes_the_level_it_asks_for_or_three_more_than_those_before_it(
    asked: int, times: int, level: int | None
) -> None:
    """RY-02."""
    assert next_level(asked, times, 16) == level


@pytest.mark.parametrize("times", [-1, -3, INT32_MIN])
def test_a_count_below_none_is_none_and_waits_as_long_as_a_first_retry(times: int) -> None:
    """Anybody can send one: it would come again at once, and that often."""
    assert next_level(0, times, 16) == next_level(0, 0, 16) == 3
    assert next_level(7, times, 16) == 7
    assert next_level(0, times, 0) is None
    assert one_more(times) == 1


def test_a_level_is_one_that_a_broker_can_have() -> None:
    assert next_level(0, INT32_MAX - 1, INT32_MAX) == DELAY_LEVELS_MAX


def test_a_count_goes_up_by_one_to_the_largest_that_a_record_holds() -> None:
    assert [one_more(times) for times in (0, 16, INT32_MAX - 1, INT32_MAX)] == [1, 17, INT32_MAX, INT32_MAX]


def test_a_consumer_that_is_new_enough_has_its_own_limit() -> None:
    assert times_max(GROUP, None, 493) == 5
    assert times_max(GROUP, 2, 493) == 2
    assert times_max(GROUP, 2, 120) == 5
    assert times_max(GROUP, 2, 121) == 2


def test_a_message_that_comes_by_itself_is_dead_beyond_the_limit_or_at_once_from_an_ordered_group() -> None:
    assert not is_dead_on_arrival(5, 5, is_ordered=False)
    assert is_dead_on_arrival(6, 5, is_ordered=False)
    assert is_dead_on_arrival(0, 5, is_ordered=True)


def test_a_consumer_counts_its_retries_or_says_how_many_it_allows() -> None:
    assert is_retry(1, None)
    assert is_retry(0, 0), "an ordered one of 4.x that allows none"
    assert not is_retry(0, None)


def test_an_attempt_says_when_where_and_how_it_went_on() -> None:
    assert attempt(1_700_000_000_123, "10.0.0.7:51422", 3) == "2023-11-14T22:13:20.123Z 10.0.0.7:51422 3"
    assert attempt(1_700_000_000_000, "[::1]:5", None) == "2023-11-14T22:13:20.000Z [::1]:5 dead"


def test_a_history_has_its_attempts_in_order() -> None:
    assert with_attempt(None, "a", 1000) == "a"
    assert with_attempt("a; b", "c", 1000) == "a; b; c"


def test_a_history_that_is_too_long_loses_its_oldest_attempts_and_counts_them() -> None:
    history = None
    for number in range(100):
        history = with_attempt(history, f"{number:02} " + "x" * 50, 1 << 20)
    assert history is not None
    first, *rest = history.split("; ")
    assert len(history) <= ATTEMPTS_BYTES_MAX
    assert len(rest) > 30
    assert first == f"({100 - len(rest)} earlier)"
    assert [int(one[:2]) for one in rest] == list(range(100 - len(rest), 100))


def test_a_history_gives_way_where_there_is_little_room() -> None:
    assert with_attempt("a" * 30 + "; " + "b" * 30, "c" * 30, 60) == "(2 earlier); " + "c" * 30
    assert with_attempt("a", "b" * 30, 40) is None
    assert with_attempt("a", "b", -100) is None


def test_what_a_client_calls_a_history_costs_no_more_than_its_length() -> None:
    text = with_attempt("; " * 16_000, "end", 1 << 20)
    assert text is not None
    assert len(text) <= ATTEMPTS_BYTES_MAX
    assert text.endswith("end")
