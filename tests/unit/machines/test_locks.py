"""Locks on queues: who may consume in order."""

from bolide.machines.locks import LIFETIME_MS, QueueLocks
from bolide.model.offsets import MessageQueue

Q0, Q1 = MessageQueue("t", "b", 0), MessageQueue("t", "b", 1)


def test_a_free_queue_is_locked_and_a_held_one_is_refused() -> None:
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
    locks.expire(LIFETIME_MS + 1)
    assert locks._groups == {}
    locks.unlock("g", "a", [Q0])
