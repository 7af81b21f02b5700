"""Power loss under load: a disk that forgets what was not flushed, with real Java clients as witnesses.

    python -m tests.fault.power --count 50 --seed 7

The disk is the strongest that runs without special hardware and kernel modules: the kernel's own ext4, journal and
page cache, on a loop device, on a FUSE file that knows what a flush made durable (`volatile_disk.py`).  Power is lost
just before a randomly chosen write or flush of that disk; of what was not flushed a random part survives, by pages,
one of them torn.  So that this is much, pages go to the disk all the time in any order (`writeback.py`).

(A plain FUSE layer would test our own idea of a file system instead of a real one; device mapper has targets for this
and needs modules that small kernels lack.)

Under SYNC_FLUSH nothing acknowledged may be lost.  Under ASYNC_FLUSH only what was acknowledged within the flush
window before the loss may be.  Under both, the rest holds that holds for every campaign (`campaign.py`), and the broker
starts by itself.  Sometimes power is lost again during that start.

The mounts live in the mount namespaces of the disk and of the broker, and end with them.
"""

from dataclasses import dataclass
from pathlib import Path

from tests.fault import campaign as campaigns
from tests.fault.loads import Load
from tests.fault.machine import Disk, OnVolatileDisk, lose_power, missing_tools
from tests.fault.writeback import Writeback
from tests.peers import frames, java
from tests.peers.server import Broker, ServerKind
from tests.peers.waiting import let_pass, wait_until

FLUSH_WINDOW_MS = 10_000
"""500 ms between flushes, and what two flushes of this slow disk may take on a busy machine."""
STEPS_MAX = 150
PAGES_UNFLUSHED = (0, 1, 8, 64, 256)
"""So much of the log and the queues shall be on its way when power is lost."""
RUN_SECONDS_MAX = 0.8
STEPS_OF_A_START = 25
LOST_AGAIN = 0.25
"""How often power is lost again while the broker starts, or its file system."""


@dataclass
class Summary(campaigns.Summary):
    forgotten: int = 0
    window_ms: int = 0

    def __str__(self) -> str:
        return (
            f"power lost {self.rounds} times, {self.acknowledged} messages acknowledged, {self.forgotten} of them"
            f" forgotten under ASYNC_FLUSH, acknowledged at most {self.window_ms} ms before;"
            f" {len(self.problems)} problems; seed {self.seed}"
        )


class PowerLosses(campaigns.Siege[Summary]):
    """No message is sent while there is no power."""

    _disk: Disk | None = None

    def server(self) -> ServerKind:
        self._disk = Disk(self.home / "disk")
        return OnVolatileDisk(disk=self._disk, mount=self.home / "store")

    def settings(self) -> dict[str, str]:
        return {**super().settings(), "flushConsumerOffsetInterval": "200"}

    def may_forget(self) -> bool:
        return self.mode == "ASYNC_FLUSH"

    def close(self) -> None:
        if self._disk is not None:
            self._disk.close()

    def round(self, broker: Broker, load: Load) -> str:
        disk = self._disk
        assert disk is not None
        assert broker.process is not None
        store = Path(f"/proc/{broker.process.pid}/root{self.home}/store/store")
        writeback = Writeback(store, self._seed())
        let_pass(self.chance.uniform(0, RUN_SECONDS_MAX))
        disk.cut(self.chance.randrange(1, STEPS_MAX), self.chance.choice(PAGES_UNFLUSHED), self._seed())
        cut_ms, survived = lose_power(broker, disk)
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
        wait_until(lambda: _has_route(load), campaigns.COME_BACK_SECONDS, "the topic has a route again")
        load.sweep(everything=True)
        forgiven = load.account.close_books(cut_ms - FLUSH_WINDOW_MS if self.may_forget() else None)
        self.summary.forgotten += len(forgiven)
        window_ms = cut_ms - min(forgiven, default=cut_ms)
        self.summary.window_ms = max(self.summary.window_ms, window_ms)
        load.start(campaigns.LOAD)
        return f"{survived}; {owed} of them new, {len(forgiven)} forgotten, {window_ms} ms"

    def _seed(self) -> int:
        return self.chance.randrange(1 << 30)


def _has_route(load: Load) -> bool:
    with frames.Connection(load.nameserver) as connection:
        return connection.ask(frames.GET_ROUTE, {"topic": load.topic}).code == frames.SUCCESS


def campaign(
    home: Path, count: int, seed: int, progress: campaigns.Progress, version: str = java.LATEST
) -> Summary:
    return campaigns.run_campaign(PowerLosses, Summary(seed), home, count, progress, version)


if __name__ == "__main__":
    if missing := missing_tools():
        raise SystemExit(missing)
    campaigns.java_command(campaign, __doc__, count=50)
