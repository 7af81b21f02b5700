"""Kill -9 under load: a broker ended at random moments, again and again, with real Java clients as witnesses.

    python -m tests.fault.kills --count 300 --seed 7

After each kill the broker starts again on the same directory and port (sometimes that start is killed too, in the
middle of recovery).  What must hold then is the same for every campaign (`campaign.py`).

A 4.9.7 client (`--version`) waits its send timeout of 3 s for answers that died with the broker, and that counts.

What it cannot show: the operating system survives, so nothing that was written is forgotten.  That is `power.py`.
"""

import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.fault import campaign as campaigns
from tests.fault.loads import Load
from tests.peers import java
from tests.peers.server import Broker
from tests.peers.waiting import let_pass

KILLED_AGAIN = 0.25
"""How often a start after a kill is killed as well."""
RUN_SECONDS_MAX = 1.0
RECOVERY_SECONDS_MAX = 0.6


@dataclass
class Summary(campaigns.Summary):
    first_send_seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        times = sorted(self.first_send_seconds) or [0.0]
        return (
            f"{self.rounds} kills, {self.acknowledged} messages acknowledged, {self.failed_sends} sends failed,"
            f" {len(self.problems)} problems; first send after a start: median {statistics.median(times):.2f} s,"
            f" worst {times[-1]:.2f} s; seed {self.seed}"
        )


class Kills(campaigns.Siege[Summary]):
    """Messages are sent all the time, whether somebody takes them or not."""

    def round(self, broker: Broker, load: Load) -> str:
        seconds = self._kill_and_return(broker, load)
        load.take_acks()
        load.sweep()
        load.account.close_books()
        self.summary.first_send_seconds.append(seconds)
        return f"sends again after {seconds:.2f} s"

    def _kill_and_return(self, broker: Broker, load: Load) -> float:
        """Kill at a random moment and start again; seconds from the start to the first acknowledged send."""
        let_pass(self.chance.uniform(0, RUN_SECONDS_MAX))
        broker.kill()
        while self.chance.random() < KILLED_AGAIN:
            broker.launch()
            let_pass(self.chance.uniform(0, RECOVERY_SECONDS_MAX))
            broker.kill()
        launched_ms = time.time_ns() // 1_000_000  # noqa: TID251 - compared with what Java notes on this machine
        broker.start()
        first = load.wait_acks(1, campaigns.COME_BACK_SECONDS, since_ms=launched_ms)
        return (min(ack.answered_ms for ack in first) - launched_ms) / 1000


def campaign(
    home: Path, count: int, seed: int, progress: campaigns.Progress, version: str = java.LATEST
) -> Summary:
    return campaigns.run_campaign(Kills, Summary(seed), home, count, progress, version)


if __name__ == "__main__":
    campaigns.java_command(campaign, __doc__, count=300)
