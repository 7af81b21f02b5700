"""One failing operation: the life of a store in which exactly one step of its disk fails.

The life does what a broker does about it.  A message that could not be appended is refused; queue entries and tables
are written again later; a log or a queue that cannot be trusted any more, a failed stop and a failed start end the
process.  From then on every promise must still be kept, whether the machine stays up or loses power as well.
"""

import errno
import os
from collections.abc import Callable

from bolide.model.errors import BolideError, StoreUnavailable
from bolide.store.new_message import NewMessage
from tests.crash.disk import SimDisk
from tests.crash.ledger import Broken, expect
from tests.crash.life import Life
from tests.unit.store.stage import V4

ACTIONS = 30
REFUSED = ("append_one", "append_batch", "append_run", "write_behind")
"""Actions that answer clients: what goes wrong there has a response code."""

STARTS_AND_STOPS = ("restart", "kill", "start", "lose_power")


class FailingStep:
    """Counts the steps of a disk and lets one of them fail."""

    def __init__(self, fail_at: int | None = None, error: int = errno.EIO) -> None:
        self.steps: list[str] = []
        self.failed = ""
        self._fail_at = fail_at
        self._error = error

    @property
    def text(self) -> str:
        return os.strerror(self._error)

    def __call__(self, kind: str, path: str) -> None:
        number = len(self.steps)
        self.steps.append(kind)
        if number == self._fail_at:
            self.failed = f"{kind} {path}"
            raise OSError(self._error, self.text, path)


class FailingLife(Life):
    """A life that meets an error and goes on."""

    def __init__(self, seed: int, failing: FailingStep) -> None:
        super().__init__(seed)
        self._failing = failing
        self._watch(self.disk)

    def play(self) -> None:
        """From the first start to a power loss, and one start more."""
        with self.scaled_down():
            self.do(self.start)
            for _ in range(ACTIONS):
                self.step()
            self.do(self.lose_power)

    def do(self, action: Callable[[], None]) -> None:
        try:
            action()
        except (OSError, BolideError) as error:
            self._cope(action.__name__, error)

    def _cope(self, name: str, error: OSError | BolideError) -> None:
        """What a broker does about it."""
        expect(bool(self._failing.failed), f"{name} fails though its disk does not: {error}")
        expect(self._failing.text in str(error), f"{name} does not say what went wrong: {error}")
        if name in REFUSED:
            expect(isinstance(error, StoreUnavailable), f"{name} has no answer for clients: {error!r}")
        if name in STARTS_AND_STOPS:
            self._end_process()
            return
        if self.store.durability.failure is None:
            self.ledger.refuse_the_rest()
            return
        self._expect_refusal()
        self._end_process()

    def lose_power(self) -> None:
        self.resume(self.disk.after_power_loss(self.rng))

    def resume(self, disk: SimDisk) -> None:
        self._watch(disk)
        super().resume(disk)

    def _watch(self, disk: SimDisk) -> None:
        disk.on_step = self._failing

    def _end_process(self) -> None:
        """The machine may stay up, or go as well."""
        if self.rng.random() < 0.5:
            self.disk.after_kill()
            self.resume(self.disk)
        else:
            self.lose_power()

    def _expect_refusal(self) -> None:
        """After a failed sync nothing is taken and nothing is acknowledged any more."""
        try:
            self.store.append([NewMessage("T", 0, b"late", b"", 0, 0, 1, V4)])
        except StoreUnavailable as error:
            expect(self._failing.text in str(error), f"the refusal does not say why: {error}")
        else:
            raise Broken("a message was taken after a failed sync")
        try:
            self.store.durability.next_point()
        except BolideError:
            return
        raise Broken("there is a next sync after a failed one")


def count_steps(seed: int) -> list[str]:
    """The kinds of the steps of one life, in order, when nothing fails."""
    failing = FailingStep()
    FailingLife(seed, failing).play()
    return failing.steps


def fail_step(seed: int, number: int, error: int) -> str:
    """Live this life with one failing step; returns which it was."""
    failing = FailingStep(number, error)
    FailingLife(seed, failing).play()
    expect(bool(failing.failed), f"there is no step {number}")
    return failing.failed
