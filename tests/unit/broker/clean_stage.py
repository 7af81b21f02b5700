"""A store with many small segments, its cleaner, two clocks and a disk whose fullness a test sets."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from bolide.broker.cleaner import Cleaner
from bolide.broker.config import BrokerConfig
from bolide.net.surroundings import Surroundings
from bolide.store.disk_os import OsDisk
from bolide.store.retention import HOUR_MS
from tests.unit.store.stage import make_durable, message, opened, put

DAY_MS = 24 * HOUR_MS
FAST = {"deleteCommitLogFilesInterval": "0", "deleteConsumeQueueFilesInterval": "0"}


class TwoClocks:
    """A wall clock that can be stepped, and a monotonic one that cannot."""

    def __init__(self) -> None:
        self.wall_ms = 1_700_000_000_000
        self.mono_ms = 5_320  # their seconds do not begin together, as on most machines

    def now_ms(self) -> int:
        return self.wall_ms

    def monotonic_ms(self) -> int:
        return self.mono_ms

    def live(self, ms: int) -> None:
        self.wall_ms += ms
        self.mono_ms += ms


class SmallDisk(OsDisk):
    """A disk whose fullness a test sets: so much without the log, and so much for each of its segments."""

    def __init__(self) -> None:
        self.others = 0.10
        self.each_segment = 0.0
        self.stuck = False
        self.root: Path | None = None

    def used_ratio(self, path: str) -> float:
        assert self.root is not None
        return self.others + self.each_segment * len(segments_in(self.root))

    def delete(self, path: str) -> None:
        if self.stuck:
            raise PermissionError(1, "Operation not permitted", path)
        super().delete(path)


class Scene:
    """A store with eight segments or more, and the cleaner under test."""

    def __init__(self, root: Path, settings: Mapping[str, str]) -> None:
        self.root = root
        self.clock, self.disk = TwoClocks(), SmallDisk()
        self.disk.root = root
        self.store = opened(root, clock=self.clock, disk=self.disk)  # type: ignore[arg-type]
        self.config = BrokerConfig.from_settings({**FAST, **settings})
        self.hour = 12
        self.checkpoints = 0
        self.cleaner = self.new_cleaner()

    def new_cleaner(self) -> Cleaner:
        return Cleaner(
            self.store,
            self.disk,
            str(self.root),
            lambda: self.config,
            Surroundings(self.clock),
            self.checkpoint,
            lambda _: self.hour,
        )

    async def checkpoint(self) -> None:
        self.checkpoints += 1
        make_durable(self.store)

    def fill(self, count: int = 200, every_ms: int = 1000) -> None:
        for number in range(count):
            self.clock.live(every_ms)
            put(self.store, message(body=b"%05d" % number))
        make_durable(self.store)

    def live(self, ms: int) -> None:
        """Time passes, and the cleaner sees it pass."""
        for _ in range(ms // HOUR_MS):
            self.clock.live(HOUR_MS)
            self.cleaner.look()


def play(root: Path, act: Callable[[Scene], Awaitable[None]], settings: Mapping[str, str] = {}) -> None:
    async def main() -> None:
        scene = Scene(root, settings)
        try:
            await act(scene)
        finally:
            scene.cleaner.close()
            scene.store.close()

    asyncio.run(main())


def segments_in(root: Path) -> list[int]:
    return sorted(int(path.name) for path in (root / "commitlog").iterdir())
