"""Locks on queues: who may consume in order."""

import sys

import pytest

from bolide.machines import locks as module
from bolide.machines import shares
from bolide.machines.locks import LIFETIME_MS, LOCK_BYTES, QueueLocks, lock_bytes

Q0, Q1 = ("t", 0), ("t", 1)


def test_a_free_queue_is_locked_and_a_held_one_is_refused() -> None:
    """OR-01."""
    locks = QueueLocks()
    assert locks.lock("g", "a", [Q0], 0) == [Q0]
    assert locks.lock("g", "b", [Q0, Q1], 1) == [Q1]
    assert locks.owner("g", Q0, 1) == "a"


def test_groups_lock_the_same_queue_independently() -> None:
    locks = QueueLocks()
    assert locks.lock("g", "a", [Q0], 0) == [Q0]
    assert locks.lock("h", "b", [Q0], 0) == [Q0]


def test_asking_again_renews_a_lock() -> None:
    locks = QueueLocks()
    locks.lock("g", "a", [Q0], 0)
    assert locks.lock("g", "a", [Q0], 50_000) == [Q0]
    assert locks.lock("g", "b", [Q0], LIFETIME_MS + 1) == []
    assert locks.lock("g", "b", [Q0], 50_000 + LIFETIME_MS) == []
    assert locks.lock("g", "b", [Q0], 50_000 + LIFETIME_MS + 1) == [Q0]


def test_only_the_owner_gives_a_lock_back() -> None:
    """OR-01."""
    locks = QueueLocks()
    locks.lock("g", "a", [Q0], 0)
    locks.unlock("g", "b", [Q0])
    assert locks.lock("g", "b", [Q0], 1) == []
    locks.unlock("g", "a", [Q0, Q1])
    assert locks.lock("g", "b", [Q0], 1) == [Q0]


def test_expired_locks_are_forgotten() -> None:
    locks = QueueLocks()
    locks.lock("g", "a", [Q0], 0)
    assert locks.owner("g", Q0, LIFETIME_MS + 1) is None
    assert not locks.expire(LIFETIME_MS + 1, 10)
    assert len(locks) == 0
    locks.unlock("g", "a", [Q0])


def test_locks_expire_some_at_a_time_the_oldest_first() -> None:
    locks = QueueLocks()
    locks.lock("g", "a", [Q0], 0)
    locks.lock("h", "a", [Q0, Q1], 1)
    locks.lock("g", "a", [Q0], 2)  # renewed: the others are older now
    late_ms = LIFETIME_MS + 3
    assert locks.expire(late_ms, 2)
    assert locks.lock("h", "b", [Q0], late_ms) == [Q0]
    assert locks.owner("g", Q0, late_ms - 1) == "a"
    assert not locks.expire(late_ms, 2)
    assert len(locks) == 1


def test_there_are_only_so_many_locks_and_those_held_are_renewed_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "lock_bytes", lambda *_: 1)
    monkeypatch.setattr(module, "LOCKS_BYTES_MAX", 2)
    monkeypatch.setattr(shares, "SMALL_PART", 1)
    locks = QueueLocks()
    assert locks.lock("g", "a", [Q0], 0, host="1") == [Q0]
    assert locks.lock("g", "b", [Q1], 0, host="2") == [Q1]
    assert locks.lock("h", "c", [Q0], 1, host="3") == []
    assert locks.lock("g", "a", [Q0], 2, host="1") == [Q0]
    locks.unlock("g", "a", [Q0])
    assert locks.lock("h", "c", [Q0], 3, host="3") == [Q0]


def test_a_host_takes_no_more_locks_than_stay_free_whatever_names_it_gives_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "lock_bytes", lambda *_: 1)
    monkeypatch.setattr(module, "LOCKS_BYTES_MAX", 100)
    locks = QueueLocks()
    for number in range(200):
        locks.lock(f"g{number}", f"client {number}", [Q0], 0, host="greedy")
    assert len(locks) == 37
    assert locks.lock("honest", "b", [Q0, Q1], 1, host="another") == [Q0, Q1]
    assert locks.lock("g0", "client 0", [Q0], 2, host="greedy") == [Q0]  # what it has it keeps
    assert locks.lock("g200", "client 200", [Q0], 2, host="greedy") == []


def test_many_greedy_hosts_leave_room_for_those_that_want_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "lock_bytes", lambda *_: 1)
    monkeypatch.setattr(module, "LOCKS_BYTES_MAX", 4096)
    locks = QueueLocks()
    for number in range(100):
        locks.lock(f"g{number}", "a", [("t", queue) for queue in range(4096)], 0, host=f"greedy {number}")
    assert 3072 < len(locks) <= 3072 + 100 * 8
    assert locks.lock("honest", "b", [Q0, Q1], 1, host="another") == [Q0, Q1]


def test_locks_are_counted_in_bytes_with_the_names_that_they_keep() -> None:
    locks = QueueLocks()
    size = 0
    for number in range(100):
        group, client_id = f"g{number}", "\N{GRINNING FACE}" * 255
        locks.lock(group, client_id, [Q0], 0, host=str(number))
        size += LOCK_BYTES + sys.getsizeof(group) + sys.getsizeof(client_id)
    assert locks.bytes_kept == size > 100 * 1420
    locks.expire(LIFETIME_MS + 1, 1000)
    assert locks.bytes_kept == 0


def test_a_client_that_comes_from_another_host_takes_its_locks_along() -> None:
    locks = QueueLocks()
    one = lock_bytes("g", "a")
    locks.lock("g", "a", [Q0, Q1], 0, host="old")
    locks.lock("g", "a", [Q0], 1, host="new")
    assert locks._shares == {"old": one, "new": one}
    locks.expire(LIFETIME_MS + 1, 10)
    assert locks._shares == {"new": one}
    locks.unlock("g", "a", [Q0])
    assert locks._shares == {}
