"""The key index through power losses: every message that the log still has is found, once, and no other.

Goal: nothing that the index promises depends on which of its pages reached the disk.  Method: stores live on a
simulated disk and lose power at random places of their work, several times each; after every start all messages of
the log are looked up by their unique keys.
"""

import contextlib
import errno
import os
import random

import pytest

from bolide.store.index_file import IndexSizes
from bolide.store.index_layout import index_key, key_hash
from bolide.store.index_query import Lookup, places_of, read_matching
from bolide.store.store import MessageStore
from tests.crash.disk import SimDisk
from tests.unit.store.index_stage import index_of, keyed
from tests.unit.store.stage import HeldClock, body_of, options

SEEDS = int(os.environ.get("BOLIDE_INDEX_SEEDS", "300"))
LIVES = 4
STEPS = 12
SIZES = IndexSizes(slots=2_500, entries=700)  # seven pages
ALWAYS = (0, 2**62)


class PowerLost(BaseException):
    """Nobody catches this by accident."""


class Life:
    """One seed: its disk, its clock, and the bodies that were ever stored."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.disk = SimDisk()
        self.clock = HeldClock()
        self.number = 0

    def run(self) -> None:
        for _ in range(LIVES):
            store = self._opened()
            if self.random.random() < 0.6:  # else the next crash finds what the last one left
                self._check(store)
            if self.random.random() < 0.2:
                store.close()
                continue
            steps_left = self.random.randrange(60)

            def lose_power_later(kind: str, path: str) -> None:
                nonlocal steps_left
                steps_left -= 1
                if steps_left < 0:
                    raise PowerLost

            self.disk.on_step = lose_power_later
            with contextlib.suppress(PowerLost):
                for _ in range(STEPS):
                    self._work(store)
            self.disk = self.disk.after_power_loss(self.random)
        store = self._opened()
        self._check(store)
        store.close()

    def _opened(self) -> MessageStore:
        settings = options(
            "/store",  # type: ignore[arg-type]
            segment_bytes=1 << 16,
            queue_file_bytes=2000,
            index=SIZES,
        )
        store = MessageStore(self.disk, settings, self.clock)
        store.open()
        return store

    def _work(self, store: MessageStore) -> None:
        chance = self.random.random()
        self.clock.ms += self.random.choice((0, 1, 999, 5_000))
        if chance < 0.6:
            for _ in range(self.random.randrange(30)):
                self.number += 1
                store.append([keyed(b"%d" % self.number, f"U{self.number}", "all some", "tag")])
            store.write_behind(store.take_touched())
        elif chance < 0.7:
            point = store.durability.next_point()
            if point is not None:
                point.run()
                store.durability.reached(point)
        elif chance < 0.8:
            self.disk.write_back(self.random)
        elif chance < 0.9:
            index_of(store).sync()
        if self.random.random() < 0.7:
            index_of(store).catch_up(store.log, store.log.end, self.random.choice((500, 5_000, 2**40)))
        if self.random.random() < 0.3:
            self.disk.mark()

    def _check(self, store: MessageStore) -> None:
        index = index_of(store)
        index.catch_up(store.log, store.log.end, 2**62)
        start, end = store.reader.queue_range("T", 0)
        for offset in range(start, end):
            queue = store.queues.find("T", 0)
            assert queue is not None
            entry = queue.entry(offset)
            assert entry is not None
            record = store.reader.read_at(entry[0])
            assert record is not None
            word = f"U{body_of(record).decode()}"
            offsets = index.find(key_hash(index_key("T", word)), 64, *ALWAYS)
            lookup = Lookup("T", word, 64, *ALWAYS, 1 << 20)
            assert read_matching(lookup, places_of(store.log, offsets, 0, store.log.end)) == [record]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_message_of_the_log_is_found_once_after_power_loss(seed: int) -> None:
    Life(seed).run()


@pytest.mark.parametrize("failing", range(30))
def test_a_step_of_the_index_that_fails_costs_nothing_but_time(failing: int) -> None:
    """Method: one step on the index's files fails, whichever it is; sends go on, then the power goes too."""
    life = Life(failing)
    steps = 0

    def fail_once(kind: str, path: str) -> None:
        nonlocal steps
        if "/index" in path:
            steps += 1
            if steps == failing + 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    store = life._opened()
    life.disk.on_step = fail_once
    for _ in range(40):
        with contextlib.suppress(OSError):  # only the index raises, and it can be asked to go on
            life._work(store)
    assert store.log.end > 0
    with contextlib.suppress(OSError):
        index_of(store).sync()
    if failing % 3 == 0:
        store.close()
    elif failing % 3 == 1:
        life.disk = life.disk.after_power_loss(life.random)
    else:
        life.disk.after_kill()
    life.disk.on_step = lambda kind, path: None
    store = life._opened()
    life._check(store)
    store.close()
