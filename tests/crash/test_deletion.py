"""Power is lost before and behind every step of deleting a topic: it is there as a whole, or gone.

Once its deletion lasts, which is when a broker answers, it is gone whatever happens, also where all queues are made
again from the log.

Method: a topic is deleted, by the steps that the broker spreads over its threads, in several orders with a checkpoint
that is under way, and made again.  Before each step of the disk many states are drawn.
"""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from bolide.store.store import MessageStore
from tests.crash.disk import SimDisk
from tests.crash.image import SECTOR_BYTES
from tests.crash.ledger import read_queue
from tests.crash.life import ROOT, Life
from tests.unit.store.stage import body_of

DRAWS = 20
KEY = b"UNIQ_KEY\x01K\x02"
SUSPECT_AT = SECTOR_BYTES - 32
"""A record that begins here has a sector end behind its queue offset: is that 0, or was it lost?"""

OLD = [b"old %d" % number for number in range(30)]


class Scene:
    def __init__(self, life: Life) -> None:
        self.life = life
        self.allowed = [OLD]
        self.steps: set[str] = set()
        self._seeds = iter(range(1_000_000))
        life.options = replace(life.options, sealed=False, segment_bytes=20480)
        life.start()
        life.append_to(("Orders", 0), [(b"another topic", KEY)])
        for number, body in enumerate(OLD):
            life.append_to(("T", 0), [(body, KEY)])
            if number == len(OLD) // 2:
                self.sync()
                life.begin_checkpoint()
                life.end_checkpoint()
        self.sync()

    def sync(self) -> None:
        self.life.begin_sync()
        self.life.end_sync()

    def delete(self) -> None:
        self.allowed.append(
            []
        )  # nobody was told yet: recovery may find the records in the log, and bring it back
        self.life.ledger.delete("T")
        self.life.store.delete_topic("T")

    def settle(self) -> None:
        self.life.settle_trash()
        self.allowed = [[]]

    def make_again(self) -> None:
        self.allowed.append([b"new"])
        self._fill_up_to(SUSPECT_AT)
        self.life.append_to(("T", 0), [(b"new", KEY)])
        self.life.write_behind()
        self.sync()
        self.allowed = [[b"new"]]

    def _fill_up_to(self, place: int) -> None:
        """Let the next record begin at this place of a sector."""
        before = self.life.store.log.end
        self.life.append_to(("Orders", 0), [(b"", KEY)])
        missing = (place - 2 * self.life.store.log.end + before) % SECTOR_BYTES
        self.life.append_to(("Orders", 0), [(b"f" * missing, KEY)])
        assert self.life.store.log.end % SECTOR_BYTES == place

    def clear(self) -> None:
        while self.life.store.queues.trash.clear_one():
            pass

    def check(self, kind: str = "", path: str = "") -> None:
        self.steps.add(kind)
        for number in range(DRAWS):
            disk = self.life.disk.after_power_loss(random.Random(next(self._seeds)))
            if number % 4 == 0:  # an operator, or another fault
                disk.delete_tree(f"{ROOT}/consumequeue")
            assert self._found(disk) in self.allowed

    def _found(self, disk: SimDisk) -> list[bytes]:
        store = MessageStore(disk, self.life.options, self.life.clock)
        store.open()
        point = store.durability.next_point()
        if point is not None:
            point.run()
            store.durability.reached(point)
        store.queues.trash.settle()  # a folder that came back is on its way out again
        while store.queues.trash.clear_one():
            pass
        assert disk.list(f"{ROOT}/deleted") == []
        return [body_of(record) for record in read_queue(store, ("T", 0))[1]]


Act = Callable[[Scene], None]

ORDERS: dict[str, list[Act]] = {
    "as the broker does it": [
        lambda scene: scene.life.write_behind(),
        Scene.delete,
        Scene.clear,
        Scene.settle,
        Scene.clear,
        Scene.make_again,
    ],
    "made again before the deletion lasts": [
        lambda scene: scene.life.write_behind(),
        Scene.delete,
        Scene.make_again,
        Scene.clear,
    ],
    "while a checkpoint is under way": [
        lambda scene: scene.life.begin_checkpoint(),
        Scene.delete,
        lambda scene: scene.life.end_checkpoint(),
        Scene.settle,
        Scene.clear,
    ],
    "and a checkpoint before the deletion lasts": [
        lambda scene: scene.life.write_behind(),
        Scene.delete,
        lambda scene: scene.life.begin_checkpoint(),
        lambda scene: scene.life.end_checkpoint(),
        Scene.make_again,
    ],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", range(4))
def test_power_may_go_at_any_step_of_deleting_a_topic(seed: int, order: str) -> None:
    life = Life(seed)
    with life.scaled_down():
        scene = Scene(life)
        life.disk.on_step = scene.check
        for act in ORDERS[order]:
            act(scene)
            scene.check()
    assert "rename" in scene.steps
