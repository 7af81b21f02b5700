"""PullHold alone: what wakes a pull, without sockets."""

import asyncio
import tracemalloc
from pathlib import Path
from typing import Any, cast

import pytest

from bolide.broker import hold as hold_module
from bolide.broker.hold import ANSWERED_PER_TURN, FORGOTTEN_PER_TURN, LOOKED_AT_PER_TURN, PullHold
from bolide.broker.waiting_pulls import CODE_BYTES, EXAMINING_COST, HELD_BYTES, HeldPull, WaitingPulls
from bolide.model.filter import Filter
from bolide.model.java_hash import java_hash
from bolide.model.limits import HELD_CONNECTION_BYTES_MAX
from bolide.net.link import Link
from bolide.store.reading import StoreReader
from bolide.store.store import MessageStore
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


def pull(
    offset: int,
    tags: set[str] | None = None,
    link: Any = None,
    deadline_ms: int = 1000,
    queue_id: int = 0,
    frame: bytes = b"",
) -> HeldPull:
    wanted = Filter(None if tags is None else frozenset(java_hash(tag) for tag in tags))
    return HeldPull(cast(Link, link or Connection()), frame, ("T", queue_id), offset, wanted, deadline_ms)


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
    assert hold._waiting["T", 0].seen == queue.end == 100
    arrive(store, hold, "B")
    assert [held.seen for held in hold.woken] == [100]


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
    assert (hold.woken, hold._waiting["T", 0].seen) == ([], 31)
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


def test_of_pulls_that_look_into_messages_few_are_looked_at_in_a_turn_and_few_answered(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        store = opened(tmp_path)
        hold = Hold(store)
        looks: list[int] = []

        def refuse(record: bytes | memoryview) -> bool:
            looks.append(len(record))
            return False

        examining = Filter(examine=refuse)
        for _ in range(100):
            held = pull(0)
            held.filter = examining
            assert hold.add(held)
        arrive(store, hold, "A")
        most, before = 0, 0
        while len(looks) < 100:
            most, before = max(most, len(looks) - before), len(looks)
            await next_turn()
        assert 0 < most <= LOOKED_AT_PER_TURN // EXAMINING_COST
        hold.sweep(1000)
        most, before = 0, 0
        while len(hold):
            most, before = max(most, len(hold.woken) - before), len(hold.woken)
            await next_turn()
        assert 0 < most <= max(1, ANSWERED_PER_TURN // EXAMINING_COST)

    asyncio.run(main())


def test_what_was_seen_of_a_queue_does_not_count_for_one_of_its_name(tmp_path: Path) -> None:
    store = opened(tmp_path)
    hold = hold_one(0, {"A"})
    arrive(store, hold, *("B" * 5))
    store.delete_topic("T")
    arrive(store, hold, "A")
    assert len(hold.woken) == 1


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
        assert 0 < most <= ANSWERED_PER_TURN

    asyncio.run(main())


def test_thousands_of_pulls_of_a_closed_connection_are_forgotten_some_in_each_turn_of_the_loop() -> None:
    async def main() -> None:
        hold, gone = Hold(), Connection()
        for _ in range(2_000):
            assert hold.add(pull(0, link=gone))
        hold.forget(cast(Link, gone))
        most, before = 0, 2_000
        while len(hold):
            most, before = max(most, before - len(hold)), len(hold)
            await next_turn()
        assert 0 < most <= FORGOTTEN_PER_TURN
        assert (hold.woken, hold.bytes_held) == ([], 0)

    asyncio.run(main())


# ---- who is looked at


def test_a_message_is_looked_at_by_those_alone_who_want_its_tag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goal: pulls that want other tags cost nothing.  Method: count the pulls that are looked at."""
    store, hold = opened(tmp_path), Hold()
    looked_at: list[HeldPull] = []
    wants = WaitingPulls._wants

    def counted(self: WaitingPulls, held: HeldPull, *rest: Any) -> bool:
        looked_at.append(held)
        return wants(self, held, *rest)

    monkeypatch.setattr(WaitingPulls, "_wants", counted)
    for number in range(5_000):
        assert hold.add(pull(0, {f"tag {number}", f"other {number}"}))
    arrive(store, hold, *("A" * 20), "tag 7", "B")
    assert [held.seen for held in hold.woken] == [20]
    assert len(looked_at) == 1
    assert hold._waiting["T", 0].seen == 22
    arrive(store, hold, "other 8")
    assert len(looked_at) == len(hold.woken) == 2


def test_the_pulls_of_one_queue_do_not_keep_those_of_another_waiting(tmp_path: Path) -> None:
    """Thousands are woken at one queue; who waits alone at another is among the first."""

    async def main() -> None:
        store, hold = opened(tmp_path), Hold()
        for _ in range(2_000):
            assert hold.add(pull(0))
        alone = pull(0, queue_id=1)
        assert hold.add(alone)
        store.append([message(queue_id=0), message(queue_id=1)])
        for tail in store.take_touched():
            hold.arrived(tail)
        await next_turn()
        assert alone in hold.woken
        assert len(hold.woken) <= 3 * LOOKED_AT_PER_TURN
        while len(hold):
            await next_turn()

    asyncio.run(main())


def test_a_pull_that_is_answered_early_goes_on_where_it_was_looked_for(tmp_path: Path) -> None:
    """What it did not want is not looked at again; what was just being looked at is."""
    store = opened(tmp_path)
    hold, held = Hold(), pull(0, {"B"})
    assert hold.add(held)
    arrive(store, hold, *("A" * 30))
    hold.sweep(1000)
    assert (hold.woken, held.seen, held.queue) == ([held], 30, store.queues.get("T", 0))


def test_the_end_of_a_pulls_time_does_not_make_it_miss_what_has_just_come(tmp_path: Path) -> None:
    async def main() -> None:
        store, hold = opened(tmp_path), Hold()
        for _ in range(LOOKED_AT_PER_TURN + 10):
            assert hold.add(pull(0))
        late = pull(0, deadline_ms=500)
        assert hold.add(late)
        arrive(store, hold, "A")
        assert late not in hold.woken
        hold.sweep(500)
        while late not in hold.woken:
            await next_turn()
        assert late.seen == 0
        while len(hold):
            await next_turn()

    asyncio.run(main())


def test_what_was_looked_at_without_a_pull_is_not_waited_for(tmp_path: Path) -> None:
    """It would never hear of it: it has to be answered at once, and to ask again."""
    store = opened(tmp_path)
    hold = hold_one(0, {"B"})
    arrive(store, hold, *("A" * 5))
    assert not hold.add(pull(4, {"A"}))
    assert hold.add(pull(5, {"A"}))
    assert hold.bytes_held == sum(one.size for one in hold._waiting["T", 0].everybody())


def test_missing_entries_do_not_keep_a_pull_from_those_behind_them(tmp_path: Path) -> None:
    store = opened(tmp_path)
    hold = hold_one(0, {"B"})
    arrive(store, hold, *("A" * 250), write=True)
    files = sorted((tmp_path / "consumequeue" / "T" / "0").iterdir())
    assert len(files) > 1
    hold._waiting["T", 0].seen = 0
    store.queues._handles.forget_topic(str(tmp_path / "consumequeue" / "T"))
    files[0].unlink()
    arrive(store, hold, "B")
    assert len(hold.woken) == 1


# ---- how much is held


def test_what_a_pull_counts_for_is_about_what_it_takes() -> None:
    """Not less than it does, measured; and not so much more that honest ones find no room."""
    frame, count = b"f" * 400, 2_000
    tracemalloc.start()
    try:
        hold, link = Hold(), Connection()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(count):
            tags = None if number % 2 else {f"{number}", "a", "b"}
            assert hold.add(pull(0, tags, link, queue_id=number, frame=bytes(frame)))
        taken = tracemalloc.get_traced_memory()[0] - before + count * len(frame)
    finally:
        tracemalloc.stop()
    assert taken <= hold.bytes_held <= 2 * taken


def test_a_connection_holds_so_much_and_others_have_room_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    one = HELD_BYTES + 100
    monkeypatch.setattr(hold_module, "HELD_BYTES_MAX", 10 * one)
    monkeypatch.setattr(hold_module, "HELD_CONNECTION_BYTES_MAX", 6 * one)
    hold, greedy, other = Hold(), Connection(), Connection()
    held = [pull(0, link=greedy, frame=bytes(100)) for _ in range(7)]
    assert [hold.add(one) for one in held] == [True] * 6 + [False]
    assert all(hold.add(pull(0, link=other, frame=bytes(100))) for _ in range(4))
    assert hold.woken == []
    # All is taken.  Who has most is answered early, until both have the same.
    assert hold.add(pull(0, link=other, frame=bytes(100)))
    assert hold.woken == [held[5]]
    assert not hold.add(pull(0, link=other, frame=bytes(100)))
    assert not hold.add(pull(0, link=greedy, frame=bytes(100)))
    assert hold.add(pull(0, frame=bytes(100)))
    assert len(hold.woken) == 2
    hold.forget(cast(Link, greedy))
    hold.forget(cast(Link, other))
    assert hold.bytes_held == one


def test_a_pull_counts_with_its_request_and_its_tags() -> None:
    assert pull(0, frame=bytes(77)).size == HELD_BYTES + 77
    assert pull(0, {"a", "b"}, frame=bytes(77)).size == HELD_BYTES + 77 + 2 * CODE_BYTES
    hold = Hold()
    assert not hold.add(pull(0, frame=bytes(int(HELD_CONNECTION_BYTES_MAX))))
    assert (len(hold), hold.bytes_held) == (0, 0)
