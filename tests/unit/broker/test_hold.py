"""PullHold alone: what wakes a pull, without sockets."""

import asyncio
from pathlib import Path
from typing import Any, cast

from bolide.broker.hold import HELD_BYTES_MAX, LOOKED_AT_PER_TURN, HeldPull, PullHold
from bolide.model.filter import Filter
from bolide.model.java_hash import java_hash
from bolide.net.link import Link
from bolide.store.reading import StoreReader
from bolide.store.store import MessageStore
from bolide.wire.command import Command
from tests.unit.filters import containing
from tests.unit.net.stage import next_turn
from tests.unit.store.stage import message, opened


class Connection:
    is_open = True


class Hold(PullHold):
    """What was woken, and how much of the log may be seen."""

    def __init__(self, store: MessageStore | None = None) -> None:
        self.woken: list[HeldPull] = []
        self.readable_end = 2**63 - 1
        self._store = store
        super().__init__(self.woken.append, cast(StoreReader, self))

    def read_at(self, log_offset: int) -> bytes | None:
        assert self._store is not None
        return self._store.reader.read_at(log_offset)


def pull(offset: int, tags: set[str] | None = None, link: Any = None, deadline_ms: int = 1000) -> HeldPull:
    wanted = Filter(None if tags is None else frozenset(java_hash(tag) for tag in tags))
    return HeldPull(cast(Link, link or Connection()), Command(11), ("T", 0), offset, wanted, deadline_ms)


def hold_one(offset: int, tags: set[str] | None = None, link: Any = None) -> Hold:
    hold = Hold()
    assert hold.add(pull(offset, tags, link))
    return hold


def arrive(store: MessageStore, hold: PullHold, *tags: str, write: bool = False) -> None:
    for tag in tags:
        store.append([message(properties=b"TAGS\x01" + tag.encode() + b"\x02")])
    touched = store.take_touched()
    for tail in touched:
        hold.arrived(tail)
    if write:
        store.write_behind(touched)


def test_the_first_message_at_its_offset_wakes_a_pull(tmp_path: Path) -> None:
    store = opened(tmp_path)
    hold = hold_one(1)
    arrive(store, hold, "A")
    assert (len(hold.woken), len(hold)) == (0, 1)
    arrive(store, hold, "A")
    assert (len(hold.woken), len(hold)) == (1, 0)


def test_wanted_entries_are_seen_wherever_they_are(tmp_path: Path) -> None:
    """Unwanted entries in files, the wanted one in memory; over several files; many at once."""
    store = opened(tmp_path)
    hold = hold_one(0, {"B"})
    for _ in range(5):
        arrive(store, hold, *("A" * 17), write=True)
        arrive(store, hold, "A")
    assert hold.woken == []
    arrive(store, hold, *("A" * 30), "B", "A")
    assert len(hold.woken) == 1


def test_entries_are_looked_at_once(tmp_path: Path) -> None:
    """A pull that waits for a rare tag in a busy queue must not cost more with every message."""
    store = opened(tmp_path)
    hold = hold_one(0, {"B"})
    arrive(store, hold, *("A" * 100), write=True)
    queue = store.queues.get("T", 0)
    (held,) = hold._held[("T", 0)]
    assert held.seen == queue.end == 100
    arrive(store, hold, "B")
    assert len(hold.woken) == 1


def test_what_may_not_be_read_yet_wakes_nobody_and_is_looked_at_again(tmp_path: Path) -> None:
    store = opened(tmp_path)
    hold = hold_one(0, {"B"})
    hold.readable_end = 0
    arrive(store, hold, "A", "B")
    assert hold.woken == []
    tail = store.queues.get("T", 0).tail
    hold.readable_end = int(store.log.end) - 1
    hold.arrived(tail)
    assert hold.woken == []
    hold.readable_end = int(store.log.end)
    hold.arrived(tail)
    assert len(hold.woken) == 1


def test_a_pull_whose_filter_examines_records_sleeps_until_one_that_it_wants(tmp_path: Path) -> None:
    store = opened(tmp_path)
    hold, held = Hold(store), pull(0)
    held.filter = containing(b"TagB")
    assert hold.add(held)
    arrive(store, hold, *(["TagA"] * 30), write=True)
    arrive(store, hold, "TagA")
    assert (hold.woken, held.seen) == ([], 31)
    hold.readable_end = int(store.log.end)
    arrive(store, hold, "TagB")
    assert hold.woken == []
    hold.readable_end = int(store.log.end)
    arrive(store, hold, "TagB")
    assert hold.woken == [held]


def test_a_sweep_answers_who_is_late() -> None:
    hold = hold_one(0)
    hold.sweep(999)
    assert (hold.woken, len(hold)) == ([], 1)
    hold.sweep(1000)
    assert (len(hold.woken), len(hold)) == (1, 0)
    hold.sweep(2000)
    assert len(hold.woken) == 1


def test_who_has_gone_is_forgotten(tmp_path: Path) -> None:
    store, gone = opened(tmp_path), Connection()
    hold = hold_one(0, link=gone)
    assert hold.add(pull(0))
    hold.forget(cast(Link, gone))
    assert len(hold) == 1
    assert hold.woken == []
    arrive(store, hold, "A")
    assert len(hold.woken) == 1
    hold.forget(cast(Link, gone))
    assert len(hold) == 0


def test_thousands_of_pulls_are_woken_by_one_message_some_in_each_turn_of_the_loop(tmp_path: Path) -> None:
    async def main() -> None:
        store, hold = opened(tmp_path), Hold()
        for number in range(2_000):
            assert hold.add(pull(number % 2))
        arrive(store, hold, "A")
        most, before = 0, 0
        while len(hold.woken) < 1_000:
            most, before = max(most, len(hold.woken) - before), len(hold.woken)
            await next_turn()
        assert 0 < most <= LOOKED_AT_PER_TURN
        assert len(hold) == 1_000

    asyncio.run(main())


def test_what_was_seen_of_a_queue_does_not_count_for_one_of_its_name(tmp_path: Path) -> None:
    store = opened(tmp_path)
    hold = hold_one(0, {"A"})
    arrive(store, hold, *("B" * 5))
    store.delete_topic("T")
    arrive(store, hold, "A")
    assert len(hold.woken) == 1


def test_a_late_pull_is_taken_up_once_however_often_others_are_looked_for() -> None:
    async def main() -> None:
        hold = Hold()
        for _ in range(5 * LOOKED_AT_PER_TURN):
            assert hold.add(pull(0))
        for _ in range(4):
            hold.sweep(1000)
        assert len(hold._over) <= 5 * LOOKED_AT_PER_TURN

    asyncio.run(main())


def test_thousands_of_late_pulls_are_answered_some_in_each_turn_of_the_loop() -> None:
    async def main() -> None:
        hold = Hold()
        for _ in range(1_000):
            assert hold.add(pull(0))
        hold.sweep(1000)
        most, before = 0, 0
        while len(hold):
            most, before = max(most, len(hold.woken) - before), len(hold.woken)
            await next_turn()
        assert 0 < most <= LOOKED_AT_PER_TURN

    asyncio.run(main())


def test_the_memory_of_held_pulls_is_bounded_whatever_their_requests_carry() -> None:
    hold = Hold()
    answered = hold.woken

    def add(fields: dict[str, str], body: bytes = b"", deadline_ms: int = 1000) -> bool:
        held = pull(0, deadline_ms=deadline_ms)
        held.request = Command(11, fields, body)
        return hold.add(held)

    half = HELD_BYTES_MAX // 2
    assert add({"subscription": "x" * (half - 100)})
    assert add({}, bytes(half - 100), deadline_ms=2000)
    assert not add({"anything": "x" * 200})
    assert add({"topic": "T"})
    hold.sweep(1000)
    assert (len(answered), len(hold)) == (2, 1)
    assert add({"subscription": "x" * (half - 100)})
    assert not add({"anything": "x" * 200})
