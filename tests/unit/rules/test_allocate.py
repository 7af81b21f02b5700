"""Shares of a group: the same for every member, every queue to exactly one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bolide.model.offsets import MessageQueue
from bolide.rules.allocate import allocate_average


def queues(count: int) -> list[MessageQueue]:
    return [MessageQueue("T", "broker-a", number) for number in range(count)]


def shares(queue_count: int, members: list[str]) -> list[list[int]]:
    return [
        [queue.queue_id for queue in allocate_average(queues(queue_count), members, me)]
        for me in sorted(members)
    ]


@pytest.mark.parametrize(
    ("count", "members", "expected"),
    [
        (8, 3, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (4, 2, [[0, 1], [2, 3]]),
        (2, 4, [[0], [1], [], []]),
        (3, 3, [[0], [1], [2]]),
        (7, 2, [[0, 1, 2, 3], [4, 5, 6]]),
        (0, 2, [[], []]),
    ],
)
def test_shares_are_runs_and_the_first_members_take_the_rest(
    count: int, members: int, expected: list[list[int]]
) -> None:
    """CO-03."""
    assert shares(count, [f"10.0.0.{number}@1" for number in range(members)]) == expected


def test_who_is_not_a_member_gets_nothing() -> None:
    assert allocate_average(queues(4), ["a", "b"], "c") == []


def test_the_order_in_which_lists_arrive_does_not_matter() -> None:
    mixed = [MessageQueue("T", name, number) for name in ("b", "a") for number in (1, 0)]
    assert allocate_average(mixed, ["y", "x", "x"], "x") == [
        MessageQueue("T", "a", 0),
        MessageQueue("T", "a", 1),
    ]


@given(st.integers(0, 64), st.sets(st.text(min_size=1), min_size=1, max_size=20))
def test_every_queue_has_exactly_one_owner_and_shares_differ_by_one_at_most(
    count: int, members: set[str]
) -> None:
    """CO-04."""
    all_shares = [allocate_average(queues(count), members, me) for me in members]
    owned = [queue for share in all_shares for queue in share]
    assert sorted(owned) == queues(count)
    sizes = [len(share) for share in all_shares]
    assert max(sizes) - min(sizes) <= 1
