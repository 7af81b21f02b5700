"""Crash states: what a start may find after power was lost at some moment of a life.

From one life many states are drawn: before any step of the disk, and between any two actions.  A state is numbered
within its seed and draws from its own random numbers, so that it can be seen again without the others.

In each state a new store is opened and compared with the ledger; in some, power is lost again while that recovery is
under way, or the store is killed and recovers a second time, which must change no byte.
"""

import copy
import logging
import random
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bolide.store.store import MessageStore
from bolide.store.tables import OffsetTable
from tests.crash.disk import SimDisk
from tests.crash.keys import check_keys
from tests.crash.ledger import expect
from tests.crash.life import OFFSETS_PATH, Life, PowerLoss

ACTIONS = 40
"""Things that happen in one life."""

DRAWS_PER_STEP = 0.35
DRAWS_PER_ACTION = 0.5
LOSS_PER_ACTION = 0.1
KILLS_PER_LOSS = 0.3
STEPS_TO_LOSS_MAX = 12
RECOVERY_STEPS_MAX = 40


@dataclass(frozen=True, slots=True)
class Failure:
    """A promise broken in one state."""

    seed: int
    state: int
    what: str
    trace: str
    kind: str = "store"

    def __str__(self) -> str:
        return (
            f"seed {self.seed} state {self.state}: {self.what}\n"
            f"  again: python -m tests.crash --kind {self.kind} --replay {self.seed}:{self.state}"
        )


class Run:
    """The life of one seed, with states drawn from it; ends at the first broken promise."""

    def __init__(self, seed: int, only: int | None = None) -> None:
        self.seed = seed
        self.states = 0
        self._only = only
        self._draws = random.Random(f"{seed} draws")
        self._steps_left = -1
        self.life = Life(seed)

    def play(self) -> Failure | None:
        with self.life.scaled_down():
            return self._play()

    def _play(self) -> Failure | None:
        try:
            self._watch(self.life.disk)
            with promises():
                self.life.start()
            for _ in range(ACTIONS):
                self._act()
                while self._draws.random() < DRAWS_PER_ACTION:
                    self._state()
        except PromiseBroken as broken:
            return Failure(self.seed, self.states - 1, broken.what, broken.trace)
        return None

    def _act(self) -> None:
        """One action, or a part of it before the power goes, or only the process."""
        if self._draws.random() < LOSS_PER_ACTION:
            self._steps_left = self._draws.randint(0, STEPS_TO_LOSS_MAX)
        try:
            with promises():
                self.life.step()
            if self._steps_left >= 0:
                raise PowerLoss
        except PowerLoss:
            self._steps_left = -1
            with promises():
                if self._draws.random() < KILLS_PER_LOSS:
                    self.life.kill()
                    return
                disk = self.life.disk.after_power_loss(self._draws)
                self.life.resume(disk)
            self._watch(disk)

    def _watch(self, disk: SimDisk) -> None:
        disk.on_step = self._on_step

    def _on_step(self, kind: str, path: str) -> None:
        if self._steps_left == 0:
            raise PowerLoss
        self._steps_left -= self._steps_left > 0
        if self._draws.random() < DRAWS_PER_STEP:
            self._state()

    def _state(self) -> None:
        number, self.states = self.states, self.states + 1
        if self._only is None or number == self._only:
            with promises():
                check_state(self.life, random.Random(f"{self.seed}:{number}"))


class PromiseBroken(Exception):
    def __init__(self, what: str, trace: str) -> None:
        super().__init__(what)
        self.what = what
        self.trace = trace


@contextmanager
def promises() -> Iterator[None]:
    """Whatever goes wrong in here is a broken promise: also that a start needs a human."""
    try:
        yield
    except PromiseBroken:
        raise
    except Exception as error:
        raise PromiseBroken(f"{type(error).__name__}: {error}", traceback.format_exc()) from error


def check_state(life: Life, rng: random.Random) -> None:
    """One state of this moment."""
    disk = life.disk.after_power_loss(rng)
    if rng.random() < 0.3:
        disk = lose_power_while_recovering(life, disk, rng)
    store = opened(life, disk)
    after_first = disk.files()
    found = life.ledger.check(store)
    offsets = OffsetTable(disk, OFFSETS_PATH, life.clock)
    offsets.load()
    life.ledger.check_offset(life.offset_of(offsets))
    if rng.random() < 0.5:
        disk.after_kill()
        store = opened(life, disk)
        again = life.ledger.check(store)
        # Where a deletion was not answered, the second recovery may have to make the queues from the whole log.
        if not life.ledger.deleted:
            changed = different(after_first, disk.files())
            expect(not changed, f"recovering again changed {changed}")
            expect(again == found, "recovering again found something else")
        found = again
    if store.index is not None:
        check_keys(store, store.index, found)


def opened(life: Life, disk: SimDisk) -> MessageStore:
    """A store on this disk, synced once so that readers may see everything."""
    store = MessageStore(disk, life.options, copy.copy(life.clock))
    store.open()
    point = store.durability.next_point()
    if point is not None:
        point.run()
        store.durability.reached(point)
    return store


def lose_power_while_recovering(life: Life, disk: SimDisk, rng: random.Random) -> SimDisk:
    """Power comes back, and goes again in the middle of recovery or soon behind it."""
    steps = rng.randint(0, RECOVERY_STEPS_MAX)

    def on_step(kind: str, path: str) -> None:
        nonlocal steps
        if steps == 0:
            raise PowerLoss
        steps -= 1

    disk.on_step = on_step
    try:
        opened(life, disk)
    except PowerLoss:
        pass
    return disk.after_power_loss(rng)


def different(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Paths whose content is not the same, but for the key index: how far that is trusted depends on the last stop."""
    return sorted(
        path
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path) and "/index/" not in path
    )


def quiet() -> None:
    """Recoveries report what they find; here thousands of them do."""
    logging.getLogger("bolide").setLevel(logging.CRITICAL)
