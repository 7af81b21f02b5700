"""Power loss under load: a disk that forgets what was not flushed, with real Java clients as witnesses.

    python -m tests.fault.power --count 50 --seed 7

The disk is the strongest that runs without special hardware and kernel modules: the kernel's own ext4, journal and
page cache, on a loop device, on a FUSE file that knows what a flush made durable (`volatile_disk.py`).  Power is lost
just before a randomly chosen write or flush of that disk; of what was not flushed a random part survives, by pages,
one of them torn.  So that this is much, pages go to the disk all the time in any order (`writeback.py`).

(A plain FUSE layer would test our own idea of a file system instead of a real one; device mapper has targets for this
and needs modules that small kernels lack.)

Under SYNC_FLUSH nothing acknowledged may be lost.  Under ASYNC_FLUSH only what was acknowledged within the flush
window before the loss may be.  Under both, every place that was read once keeps its bytes, no queue has a hole, no
damaged message is delivered, no committed offset lies behind the end, and the broker starts by itself.  Sometimes power
is lost again during that start.

The mounts live in the mount namespaces of the disk and of the broker, and end with them.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from tests.fault.loads import Load
from tests.fault.machine import Disk, OnVolatileDisk, lose_power, missing_tools
from tests.fault.writeback import Writeback
from tests.interop.stage import Stage
from tests.peers import frames, java
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer
from tests.peers.waiting import let_pass, wait_until
from tests.peers.witness import Witness

FLUSH_MODES = ("SYNC_FLUSH", "ASYNC_FLUSH")
QUEUES = 4
LOAD = {"threads": 6, "batchers": 2, "batch": 8, "rest": 1000, "size": 200}
SETTINGS = {
    "mappedFileSizeCommitLog": str(4 * 1024 * 1024),
    "mappedFileSizeConsumeQueue": "40000",
    "flushConsumerOffsetInterval": "200",
}
FLUSH_WINDOW_MS = 3_000
"""500 ms between flushes, and what a flush of this slow disk may take on a busy machine."""
STEPS_MAX = 150
PAGES_UNFLUSHED = (0, 1, 8, 64, 256)
"""So much of the log and the queues shall be on its way when power is lost."""
RUN_SECONDS_MAX = 0.8
STEPS_OF_A_START = 25
LOST_AGAIN = 0.25
"""How often power is lost again while the broker starts, or its file system."""
COME_BACK_SECONDS = 60


@dataclass
class Summary:
    """What a campaign saw."""

    seed: int
    losses: int = 0
    acknowledged: int = 0
    forgotten: int = 0
    window_ms: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"power lost {self.losses} times, {self.acknowledged} messages acknowledged, {self.forgotten} of them"
            f" forgotten under ASYNC_FLUSH, acknowledged at most {self.window_ms} ms before;"
            f" {len(self.problems)} problems; seed {self.seed}"
        )


Progress = Callable[[str], None]


def campaign(witness: Witness, home: Path, count: int, seed: int, progress: Progress) -> Summary:
    """Half of the losses under each flush mode; stops early when a problem was found."""
    summary = Summary(seed)
    chance = random.Random(seed)
    nameserver = NameServer(Bolide(), home / "nameserver").start()
    try:
        for mode in FLUSH_MODES:
            share = (count + 1) // 2 if mode == FLUSH_MODES[0] else count // 2
            Siege(witness, nameserver, home / mode, mode, chance, summary, progress).run(share)
            if summary.problems:
                break
    finally:
        nameserver.stop()
    return summary


@dataclass
class Siege:
    """One broker on one disk, one topic, some losses of power."""

    witness: Witness
    nameserver: NameServer
    home: Path
    mode: str
    chance: random.Random
    summary: Summary
    progress: Progress

    def run(self, count: int) -> None:
        self.home.mkdir(parents=True)
        disk = Disk(self.home / "disk")
        kind = OnVolatileDisk(disk=disk, mount=self.home / "store")
        settings = {**SETTINGS, "flushDiskType": self.mode}
        broker = Broker(
            kind, self.home / "broker", f"broker-{self.mode[:5].lower()}", [self.nameserver], settings
        )
        stage = Stage(self.witness, self.nameserver.address)
        try:
            broker.start()
            load = Load(self.witness, self.nameserver.address, stage.topic(QUEUES), self.home)
            try:
                load.start_consuming()
                for number in range(1, count + 1):
                    said = self.round(broker, disk, load)
                    self.progress(f"{self.mode} loss {number}/{count}: {said}")
                    if load.account.problems:
                        break
                else:
                    if (
                        self.mode == "SYNC_FLUSH"
                    ):  # otherwise a live client may stand where its messages were lost
                        load.wait_consumed()
            finally:
                load.stop_consuming()
                self.summary.acknowledged += load.account.acknowledged
                self.summary.problems += load.account.problems
        finally:
            broker.kill()
            stage.close()
            disk.close()

    def round(self, broker: Broker, disk: Disk, load: Load) -> str:
        """One round; says how it went."""
        load.start(LOAD)
        load.wait_acks(1, COME_BACK_SECONDS)
        assert broker.process is not None
        store = Path(f"/proc/{broker.process.pid}/root{self.home}/store/store")
        writeback = Writeback(store, self._seed())
        let_pass(self.chance.uniform(0, RUN_SECONDS_MAX))
        disk.cut(self.chance.randrange(1, STEPS_MAX), self.chance.choice(PAGES_UNFLUSHED), self._seed())
        survived = lose_power(broker, disk)
        cut_ms = _now_ms()
        writeback.stop()
        load.stop()
        load.take_acks()
        owed = load.account.owed
        disk.boot()
        while self.chance.random() < LOST_AGAIN:
            disk.cut(self.chance.randrange(1, STEPS_OF_A_START), 0, self._seed())
            broker.launch()
            lose_power(broker, disk)
            disk.boot()
        broker.start()
        wait_until(lambda: self._has_route(load), COME_BACK_SECONDS, "the topic has a route again")
        load.sweep(everything=True)
        forgiven = load.account.close_books(cut_ms - FLUSH_WINDOW_MS if self.mode == "ASYNC_FLUSH" else None)
        load.account.problems += load.offsets_beyond_the_end(broker.address, QUEUES)
        self.summary.losses += 1
        self.summary.forgotten += len(forgiven)
        window_ms = cut_ms - min(forgiven, default=cut_ms)
        self.summary.window_ms = max(self.summary.window_ms, window_ms)
        return f"{survived}; {owed} acknowledged, {len(forgiven)} forgotten, {window_ms} ms"

    def _seed(self) -> int:
        return self.chance.randrange(1 << 30)

    @staticmethod
    def _has_route(load: Load) -> bool:
        with frames.Connection(load.nameserver) as connection:
            return connection.ask(frames.GET_ROUTE, {"topic": load.topic}).code == frames.SUCCESS


def _now_ms() -> int:
    return time.time_ns() // 1_000_000  # noqa: TID251 - compared with what Java noted on the same machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--version", choices=java.VERSIONS, default=java.LATEST, help="of the Java client")
    options = parser.parse_args()
    if missing := missing_tools():
        raise SystemExit(missing)
    show = Console(highlight=False).print
    show(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="bolide-power-") as folder:
        witness = Witness(options.version, Path(folder) / "java")
        try:
            summary = campaign(witness, Path(folder), options.count, options.seed, show)
        finally:
            witness.stop()
    show(str(summary))
    if summary.problems:
        raise SystemExit("\n".join(summary.problems[:50]))


if __name__ == "__main__":
    main()
