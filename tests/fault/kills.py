"""Kill -9 under load: a broker ended at random moments, again and again, with real Java clients as witnesses.

    python -m tests.fault.kills --count 300 --seed 7

One JVM lives through all kills.  Its producer sends single messages and batches without ever repeating one; its
group consumes.  After each kill the broker starts again on the same directory and port (sometimes that start is
killed too, in the middle of recovery), and what can be read is compared with everything that was acknowledged
before: nothing lost, no place with other bytes than before, every queue in the order of its senders, no committed
offset behind the end.  Half of the kills meet ASYNC_FLUSH, half SYNC_FLUSH.

A 4.9.7 client (`--version`) waits its send timeout of 3 s for answers that died with the broker, and that counts.

What it cannot show: the operating system survives, so nothing that was written is forgotten.  That is `power.py`.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from tests.fault.loads import Load
from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer
from tests.peers.waiting import let_pass
from tests.peers.witness import Witness

FLUSH_MODES = ("ASYNC_FLUSH", "SYNC_FLUSH")
QUEUES = 4
LOAD = {"threads": 6, "batchers": 2, "batch": 8, "rest": 1000, "size": 200}
SMALL_FILES = {"mappedFileSizeCommitLog": str(4 * 1024 * 1024), "mappedFileSizeConsumeQueue": "40000"}
KILLED_AGAIN = 0.25
"""How often a start after a kill is killed as well."""
RUN_SECONDS_MAX = 1.0
RECOVERY_SECONDS_MAX = 0.6
COME_BACK_SECONDS = 60


@dataclass
class Summary:
    """What a campaign saw."""

    seed: int
    kills: int = 0
    acknowledged: int = 0
    failed_sends: int = 0
    first_send_seconds: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        times = sorted(self.first_send_seconds) or [0.0]
        return (
            f"{self.kills} kills, {self.acknowledged} messages acknowledged, {self.failed_sends} sends failed,"
            f" {len(self.problems)} problems; first send after a start: median {statistics.median(times):.2f} s,"
            f" worst {times[-1]:.2f} s; seed {self.seed}"
        )


Progress = Callable[[str], None]


def campaign(witness: Witness, home: Path, count: int, seed: int, progress: Progress) -> Summary:
    """Half of the kills under each flush mode; stops early when a problem was found."""
    summary = Summary(seed)
    chance = random.Random(seed)
    nameserver = NameServer(Bolide(), home / "nameserver").start()
    try:
        for mode in FLUSH_MODES:
            share = (count + 1) // 2 if mode == FLUSH_MODES[0] else count // 2
            siege(witness, nameserver, home / mode, mode, share, chance, summary, progress)
            if summary.problems:
                break
    finally:
        nameserver.stop()
    return summary


def siege(
    witness: Witness,
    nameserver: NameServer,
    home: Path,
    mode: str,
    count: int,
    chance: random.Random,
    summary: Summary,
    progress: Progress,
) -> None:
    """One broker, one topic, so many kills."""
    broker = Broker(Bolide(), home / "broker", f"broker-{mode[:5].lower()}", [nameserver])
    broker.settings = {**SMALL_FILES, "flushDiskType": mode}
    broker.start()
    stage = Stage(witness, nameserver.address)
    load = Load(witness, nameserver.address, stage.topic(QUEUES), home)
    try:
        load.start_consuming()
        load.start(LOAD)
        for number in range(1, count + 1):
            load.wait_acks(1, COME_BACK_SECONDS)
            seconds = kill_and_return(broker, load, chance)
            check(broker, load, summary)
            summary.kills += 1
            summary.first_send_seconds.append(seconds)
            progress(
                f"{mode} kill {number}/{count}: {load.account.acknowledged} acknowledged,"
                f" sends again after {seconds:.2f} s{load.account.verdict() and ' PROBLEM'}"
            )
            if load.account.problems:
                break
        load.stop()
        finish(load)
    finally:
        load.stop_consuming()
        stage.close()
        broker.stop()
        summary.acknowledged += load.account.acknowledged
        summary.failed_sends += load.failed
        summary.problems += load.account.problems


def kill_and_return(broker: Broker, load: Load, chance: random.Random) -> float:
    """Kill at a random moment and start again; seconds from the start to the first acknowledged send."""
    let_pass(chance.uniform(0, RUN_SECONDS_MAX))
    broker.kill()
    while chance.random() < KILLED_AGAIN:
        broker.launch()
        let_pass(chance.uniform(0, RECOVERY_SECONDS_MAX))
        broker.kill()
    launched_ms = _now_ms()
    broker.start()
    first = load.wait_acks(1, COME_BACK_SECONDS, since_ms=launched_ms)
    return (min(ack.answered_ms for ack in first) - launched_ms) / 1000


def check(broker: Broker, load: Load, summary: Summary) -> None:
    """Read, and compare with what was acknowledged before the reading began."""
    load.take_acks()
    load.sweep()
    load.account.close_books()
    summary.problems += [
        f"offset: {beyond}" for beyond in load.offsets_beyond_the_end(broker.address, QUEUES)
    ]


def finish(load: Load) -> None:
    """Read everything once more, and wait for the group to have seen it all."""
    load.take_acks()
    load.sweep(everything=True)
    load.account.close_books()
    if not load.account.problems:
        load.wait_consumed()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000  # noqa: TID251 - compared with what Java noted on the same machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--version", choices=java.VERSIONS, default=java.LATEST, help="of the Java client")
    options = parser.parse_args()
    show = Console(highlight=False).print
    show(f"seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="bolide-kills-") as folder:
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
