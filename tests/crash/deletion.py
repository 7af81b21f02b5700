"""Scenes of a topic that is deleted: by the steps that the broker spreads over its threads, in several orders.

Before each step of the disk many states are drawn.  In each one the topic is there as a whole or gone; once its
deletion lasts, which is when a broker answers, it is gone, also where all queues are made again from the log.  And
whatever is found, the topic keeps what it is given next.
"""

import errno
import os
import random
from collections.abc import Callable
from dataclasses import replace

from bolide.store.new_message import NewMessage
from bolide.store.store import MessageStore
from tests.crash.disk import SimDisk
from tests.crash.image import SECTOR_BYTES
from tests.crash.ledger import expect, read_queue
from tests.crash.life import ROOT, Life
from tests.unit.store.stage import V4, body_of

DRAWS = 12
KEY = b"UNIQ_KEY\x01K\x02"
SUSPECT_AT = SECTOR_BYTES - 32
"""A record that begins here has a sector end behind its queue offset: is that 0, or was it lost?"""

OLD = [b"old %d" % number for number in range(30)]


class Scene:
    def __init__(self, life: Life) -> None:
        self.life = life
        self.allowed = [OLD]
        self.steps: set[str] = set()
        self.is_full = False
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

    def write_behind(self) -> None:
        self.life.write_behind()

    def begin_checkpoint(self) -> None:
        self.life.begin_checkpoint()

    def end_checkpoint(self) -> None:
        self.life.end_checkpoint()

    def store_more(self) -> None:
        """Power loss may take all of these, or some from the end."""
        for count in range(1, 6):
            self.life.append_to(("T", 0), [(b"more %d" % count, KEY)])
            self.allowed.append([*self.allowed[-1], b"more %d" % count])

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
        while self.life.store.queues.trash.clear_some():
            pass

    def fill_the_disk(self) -> None:
        """From here on no file is made, not even one that would take the place of another."""
        self.is_full = True

    def store_for_others(self) -> None:
        self.life.clock.ms += 10_000  # the next checkpoint has other times
        self.life.append_to(("Orders", 0), [(b"on a full disk", KEY)])
        self.life.write_behind()
        self.sync()

    def before_step(self, kind: str, path: str) -> None:
        self.steps.add(kind)
        self.check()
        if self.is_full and kind == "create":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def check(self) -> None:
        for number in range(DRAWS):
            disk = self.life.disk.after_power_loss(random.Random(next(self._seeds)))
            if number % 4 == 0:  # an operator, or another fault
                disk.delete_tree(f"{ROOT}/consumequeue")
            store = self._opened(disk)
            found = _bodies(store)
            expect(found in self.allowed, f"the topic has {found}")
            while store.queues.trash.clear_some():
                pass
            expect(disk.list(f"{ROOT}/deleted") == [], "the trash is not cleared")
            store.append([NewMessage("T", 0, b"next", KEY, 0, 0, 1, V4)])
            disk.after_kill()
            again = _bodies(self._opened(disk))
            expect(again == [*found, b"next"], f"the topic had {found} and one more, and has {again}")

    def _opened(self, disk: SimDisk) -> MessageStore:
        store = MessageStore(disk, self.life.options, self.life.clock)
        store.open()
        point = store.durability.next_point()
        if point is not None:
            point.run()
            store.durability.reached(point)
        store.queues.trash.settle()  # a folder that came back is on its way out again
        return store


def _bodies(store: MessageStore) -> list[bytes]:
    return [body_of(record) for record in read_queue(store, ("T", 0))[1]]


ORDERS: dict[str, list[Callable[[Scene], None]]] = {
    "as the broker does it": [
        Scene.write_behind,
        Scene.delete,
        Scene.clear,
        Scene.settle,
        Scene.clear,
        Scene.make_again,
    ],
    "made again before the deletion lasts": [
        Scene.write_behind,
        Scene.delete,
        Scene.make_again,
        Scene.clear,
    ],
    "while a checkpoint is under way": [
        Scene.begin_checkpoint,
        Scene.delete,
        Scene.end_checkpoint,
        Scene.settle,
        Scene.clear,
    ],
    "and a checkpoint before the deletion lasts": [
        Scene.write_behind,
        Scene.delete,
        Scene.begin_checkpoint,
        Scene.end_checkpoint,
        Scene.make_again,
    ],
    "and the log that it speaks of is lost": [
        Scene.write_behind,
        Scene.store_more,
        Scene.delete,
        Scene.settle,
        Scene.clear,
    ],
    "and a checkpoint is written in place, on a full disk": [
        Scene.write_behind,
        Scene.delete,
        Scene.settle,
        Scene.clear,
        Scene.fill_the_disk,
        Scene.store_for_others,
        Scene.begin_checkpoint,
        Scene.end_checkpoint,
        Scene.store_for_others,
        Scene.begin_checkpoint,
        Scene.end_checkpoint,
    ],
}


def play(seed: int, order: str) -> Scene:
    """One scene; `Broken` when a promise is."""
    life = Life(seed)
    with life.scaled_down():
        scene = Scene(life)
        life.disk.on_step = scene.before_step
        for act in ORDERS[order]:
            act(scene)
            scene.check()
    return scene
