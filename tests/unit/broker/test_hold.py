"""PullHold alone: what wakes a pull, without sockets."""

from pathlib import Path
from typing import Any, cast

from bolide.broker.hold import HELD_BYTES_MAX, HeldPull, PullHold
from bolide.model.filter import EVERYTHING, Filter
from bolide.model.java_hash import java_hash
from bolide.net.link import Link
from bolide.store.store import MessageStore
from bolide.wire.command import Command
from tests.unit.filters import containing
from tests.unit.store.stage import message, opened


class Connection:
    is_open = True


def hold_one(
    store: MessageStore, offset: int, tags: set[str] | None = None, link: Any = None
) -> tuple[PullHold, list[HeldPull]]:
    woken: list[HeldPull] = []
    hold = PullHold(woken.append, store.reader.read_at)
    codes = None if tags is None else frozenset(java_hash(tag) for tag in tags)
    held = HeldPull(cast(Link, link or Connection()), Command(11), offset, Filter(codes), deadline_ms=1000)
    assert hold.add(("T", 0), held)
    return hold, woken


def arrive(
    store: MessageStore, hold: PullHold, *tags: str, write: bool = False, end: int | None = None
) -> None:
    for tag in tags:
        store.append([message(properties=b"TAGS\x01" + tag.encode() + b"\x02")])
    touched = store.take_touched()
    for tail in touched:
        if end is None:
            hold.arrived(tail)
        else:
            hold.arrived(tail, end)
    if write:
        store.write_behind(touched)


def test_the_first_message_at_its_offset_wakes_a_pull(tmp_path: Path) -> None:
    store = opened(tmp_path)
    hold, woken = hold_one(store, 1)
    arrive(store, hold, "A")
    assert (len(woken), len(hold)) == (0, 1)
    arrive(store, hold, "A")
    assert (len(woken), len(hold)) == (1, 0)


def test_wanted_entries_are_seen_wherever_they_are(tmp_path: Path) -> None:
    """Unwanted entries in files, the wanted one in memory; over several files; many at once."""
    store = opened(tmp_path)
    hold, woken = hold_one(store, 0, {"B"})
    for _ in range(5):
        arrive(store, hold, *("A" * 17), write=True)
        arrive(store, hold, "A")
    assert woken == []
    arrive(store, hold, *("A" * 30), "B", "A")
    assert len(woken) == 1


def test_entries_are_looked_at_once(tmp_path: Path) -> None:
    """A pull that waits for a rare tag in a busy queue must not cost more with every message."""
    store = opened(tmp_path)
    hold, woken = hold_one(store, 0, {"B"})
    arrive(store, hold, *("A" * 100), write=True)
    queue = store.queues.get("T", 0)
    (held,) = hold._held[("T", 0)]
    assert held.seen == queue.end == 100
    arrive(store, hold, "B")
    assert len(woken) == 1


def test_what_may_not_be_read_yet_wakes_nobody_and_is_looked_at_again(tmp_path: Path) -> None:
    store = opened(tmp_path)
    hold, woken = hold_one(store, 0, {"B"})
    arrive(store, hold, "A", "B", end=0)
    assert woken == []
    tail = store.queues.get("T", 0).tail
    hold.arrived(tail, int(store.log.end) - 1)
    assert woken == []
    hold.arrived(tail, int(store.log.end))
    assert len(woken) == 1


def test_a_pull_whose_filter_examines_records_sleeps_until_one_that_it_wants(tmp_path: Path) -> None:
    store = opened(tmp_path)
    woken: list[HeldPull] = []
    hold = PullHold(woken.append, store.reader.read_at)
    held = HeldPull(cast(Link, Connection()), Command(11), 0, containing(b"TagB"), deadline_ms=1000)
    assert hold.add(("T", 0), held)
    arrive(store, hold, *(["TagA"] * 30), write=True)
    arrive(store, hold, "TagA")
    assert (woken, held.seen) == ([], 31)
    arrive(store, hold, "TagB", end=int(store.log.end))
    assert woken == []
    arrive(store, hold, "TagB")
    assert woken == [held]


def test_a_sweep_answers_who_is_late_and_forgets_who_is_gone(tmp_path: Path) -> None:
    store = opened(tmp_path)
    gone = Connection()
    hold, woken = hold_one(store, 0, link=gone)
    gone.is_open = False
    hold.sweep(10)
    assert (woken, len(hold)) == ([], 0)
    hold, woken = hold_one(store, 0)
    hold.sweep(999)
    assert (woken, len(hold)) == ([], 1)
    hold.sweep(1000)
    assert (len(woken), len(hold)) == (1, 0)


def test_thousands_of_pulls_on_one_queue_are_woken_in_one_pass(tmp_path: Path) -> None:
    store = opened(tmp_path)
    woken: list[HeldPull] = []
    hold = PullHold(woken.append, store.reader.read_at)
    for number in range(20_000):
        held = HeldPull(cast(Link, Connection()), Command(11), number % 2, EVERYTHING, deadline_ms=1000)
        hold.add(("T", 0), held)
    arrive(store, hold, "A")
    assert (len(woken), len(hold)) == (10_000, 10_000)


def test_the_memory_of_held_pulls_is_bounded_whatever_their_requests_carry(tmp_path: Path) -> None:
    answered: list[HeldPull] = []
    hold = PullHold(answered.append, lambda _: None)

    def add(fields: dict[str, str], body: bytes = b"", deadline_ms: int = 1000) -> bool:
        request = Command(11, fields, body)
        return hold.add(("T", 0), HeldPull(cast(Link, Connection()), request, 0, EVERYTHING, deadline_ms))

    half = HELD_BYTES_MAX // 2
    assert add({"subscription": "x" * (half - 100)})
    assert add({}, bytes(half - 100), deadline_ms=2000)
    assert not add({"anything": "x" * 200})
    assert add({"topic": "T"})
    hold.sweep(1000)
    assert (len(answered), len(hold)) == (2, 1)
    assert add({"subscription": "x" * (half - 100)})
    assert not add({"anything": "x" * 200})
