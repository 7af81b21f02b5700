"""Power is lost before and behind every step of making the next segment, and whatever is found there opens.

Method: a segment is made ahead while messages are synced, then a message rolls into it.  Before each step of the disk
many states are drawn, and each must open by itself, hold what was promised, and take more messages over the border.
"""

import random
from dataclasses import replace
from unittest.mock import patch

import pytest

from bolide.store import log as log_module
from bolide.store.store import MessageStore
from tests.crash.disk import SimDisk
from tests.crash.ledger import read_queue
from tests.crash.life import Life
from tests.unit.store.stage import body_of, message

DRAWS = 40
KEY = b"UNIQ_KEY\x01K\x02"
BEFORE = b"before" + bytes(5000)
BEHIND = b"behind" + bytes(5000)
LATER = b"later" + bytes(5000)


class Scene:
    """A store of segments that hold one large message each."""

    def __init__(self, seed: int) -> None:
        self.life = Life(seed)
        self.life.options = replace(self.life.options, segment_bytes=8192)
        self.promised: list[bytes] = []
        self.steps: list[str] = []
        self._seeds = iter(range(1_000_000))
        with self.life.scaled_down():
            self.life.start()

    def play(self) -> None:
        with self.life.scaled_down(), patch.object(log_module, "NEXT_DUE_RATIO", 0.5):
            self._append(BEFORE)
            self.life.disk.on_step = self._on_step
            self.life.end_segment()
            self._check()
            self._append(BEHIND)
            self._check()

    def _append(self, body: bytes) -> None:
        self.life.append_to(("T", 0), [(body, KEY)])
        self.life.begin_sync()
        self.life.end_sync()
        self.promised.append(body)

    def _on_step(self, kind: str, path: str) -> None:
        if "commitlog" in path:
            self.steps.append(kind)
        self._check()

    def _check(self) -> None:
        for _ in range(DRAWS):
            disk = self.life.disk.after_power_loss(random.Random(next(self._seeds)))
            found = self._opened(disk)
            assert found[: len(self.promised)] == self.promised
            assert set(found) <= {BEFORE, BEHIND}

    def _opened(self, disk: SimDisk) -> list[bytes]:
        """What a start finds, which then goes on over the border of the segment."""
        store = MessageStore(disk, self.life.options, self.life.clock)
        store.open()
        store.append([message(body=LATER)])
        point = store.durability.next_point()
        assert point is not None
        point.run()
        store.durability.reached(point)
        *found, later = [body_of(record) for record in read_queue(store, ("T", 0))[1]]
        assert later == LATER
        return found


@pytest.mark.parametrize("seed", range(5))
def test_power_may_go_at_any_step_of_making_a_segment(seed: int) -> None:
    scene = Scene(seed)
    scene.play()
    assert scene.steps[:3] == ["create", "sync", "sync_dir"]
    assert "create" not in scene.steps[3:], "the message rolled into the segment that was there"
