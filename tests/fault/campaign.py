"""A campaign: the same misfortune befalls a broker under load again and again, and nothing acknowledged may be lost.

One JVM lives through all of it.  Its producer sends single messages and batches without ever repeating one; its group
consumes.  Half of the rounds meet each flush mode, with a broker and a topic of their own.  After each round what can
be read is compared with everything that was acknowledged before: nothing lost, no place with other bytes than before,
every queue in the order of its senders, no committed offset behind the end.  The first problem ends the campaign.

What happens in a round is said elsewhere: `kills.py`, `power.py`.
"""

import argparse
import random
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from rich.console import Console

from tests.fault.loads import Load
from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.witness import Witness

FLUSH_MODES = ("ASYNC_FLUSH", "SYNC_FLUSH")
QUEUES = 4
LOAD = {"threads": 6, "batchers": 2, "batch": 8, "rest": 1000, "size": 200}
SMALL_FILES = {"mappedFileSizeCommitLog": str(4 * 1024 * 1024), "mappedFileSizeConsumeQueue": "40000"}
COME_BACK_SECONDS = 120
"""A broker that acknowledges nothing for so long does not come back."""
SENDS_OF_A_ROUND = 30
"""At least so many are acknowledged before something happens."""
PROBLEMS_SHOWN_MAX = 50

Progress = Callable[[str], None]


@dataclass
class Summary:
    """What a campaign saw."""

    seed: int
    rounds: int = 0
    acknowledged: int = 0
    failed_sends: int = 0
    problems: list[str] = field(default_factory=list)

    def story(self, progress: list[str]) -> str:
        """What was told on the way, and the problems."""
        return "\n".join([*progress, *self.problems[:PROBLEMS_SHOWN_MAX]])


S = TypeVar("S", bound=Summary)


@dataclass
class Siege(ABC, Generic[S]):
    """One broker, one topic, some rounds."""

    witness: Witness
    nameserver: NameServer
    home: Path
    mode: str
    chance: random.Random
    summary: S
    progress: Progress

    @abstractmethod
    def round(self, broker: Broker, load: Load) -> str:
        """Let it happen, read and compare; says how it went.  Finds messages being sent, and leaves it so."""

    def server(self) -> ServerKind:
        """How the broker runs."""
        return Bolide()

    def settings(self) -> dict[str, str]:
        return {**SMALL_FILES, "flushDiskType": self.mode}

    def may_forget(self) -> bool:
        """Whether acknowledged messages may be gone: then a live client may stand where they were."""
        return False

    def close(self) -> None:
        """Behind the end of the broker."""

    def run(self, count: int) -> None:
        self.home.mkdir(parents=True)
        with ExitStack() as ends:
            ends.callback(self.close)
            name = f"broker-{self.mode[:5].lower()}"
            broker = Broker(self.server(), self.home / "broker", name, [self.nameserver], self.settings())
            ends.callback(broker.kill)
            broker.start()
            stage = Stage(self.witness, self.nameserver.address)
            load = Load(self.witness, self.nameserver.address, stage.topic(QUEUES), self.home)
            try:
                self._rounds(broker, load, count)
            finally:
                load.stop_consuming()
                self.summary.acknowledged += load.account.acknowledged
                self.summary.failed_sends += load.failed
                self.summary.problems += load.account.problems
            broker.stop()

    def _rounds(self, broker: Broker, load: Load, count: int) -> None:
        account = load.account
        load.start_consuming()
        load.start(LOAD)
        for number in range(1, count + 1):
            load.wait_acks(SENDS_OF_A_ROUND, COME_BACK_SECONDS)
            said = self.round(broker, load)
            account.problems += [
                f"offset: {beyond}" for beyond in load.offsets_beyond_the_end(broker.address, QUEUES)
            ]
            self.summary.rounds += 1
            self.progress(
                f"{self.mode} {number}/{count}: {account.acknowledged} acknowledged, {said}"
                f"{' PROBLEM' if account.problems else ''}"
            )
            if account.problems:
                break
        load.wait_acks(1, COME_BACK_SECONDS)
        load.stop()
        load.take_acks()
        load.sweep(everything=True)
        account.close_books()
        if not account.problems and not self.may_forget():
            load.wait_consumed()


def run_campaign(
    siege: type[Siege[S]], summary: S, home: Path, count: int, progress: Progress, version: str
) -> S:
    """Half of the rounds under each flush mode."""
    progress(f"seed {summary.seed}")
    chance = random.Random(summary.seed)
    with ExitStack() as ends:
        witness = Witness(version, home / "java")
        ends.callback(witness.stop)
        nameserver = NameServer(Bolide(), home / "nameserver").start()
        ends.callback(nameserver.stop)
        for mode, share in zip(FLUSH_MODES, (count - count // 2, count // 2), strict=True):
            siege(witness, nameserver, home / mode, mode, chance, summary, progress).run(share)
            if summary.problems:
                break
    return summary


def random_seed() -> int:
    return random.SystemRandom().randrange(1_000_000)


class Campaign(Protocol):
    def __call__(self, home: Path, count: int, seed: int, progress: Progress) -> Summary: ...


class JavaCampaign(Protocol):
    def __call__(
        self, home: Path, count: int, seed: int, progress: Progress, version: str = ...
    ) -> Summary: ...


def java_command(campaign: JavaCampaign, description: str | None, count: int) -> None:
    """The same with Java clients of a version."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--version", choices=java.VERSIONS, default=java.LATEST, help="of the Java client")
    version = parser.parse_known_args()[0].version
    command(partial(campaign, version=version), description, count, parser)


def command(
    campaign: Campaign, description: str | None, count: int, more: argparse.ArgumentParser | None = None
) -> None:
    """A campaign by hand: what it prints ends with its summary, and with its problems if there are any."""
    parser = argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[] if more is None else [more],
    )
    parser.add_argument("--count", type=int, default=count, help="rounds, half of them under each flush mode")
    parser.add_argument("--seed", type=int, default=random_seed(), help="random when it is not given")
    options = parser.parse_args()
    show = Console(highlight=False, soft_wrap=True).print
    with tempfile.TemporaryDirectory(prefix="bolide-campaign-") as folder:
        summary = campaign(Path(folder), options.count, options.seed, show)
    show(str(summary))
    if summary.problems:
        raise SystemExit(summary.story([]))
