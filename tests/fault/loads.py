"""Load that outlives its broker: a Java client that sends on and on, a group that consumes, a reader that compares."""

import itertools
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from tests.fault.account import Account, Ack, parse_outcome
from tests.peers import frames
from tests.peers.waiting import wait_until
from tests.peers.witness import Fields, Witness

SWEEP_SECONDS = STOP_SECONDS = CONSUME_SECONDS = 240
SWEPT_PER_SECOND_MIN = 2_000
NUMBERS_OF_A_RUN = 1_000_000
OVERLAP = 300
"""Messages of each queue that a reading sees again, to notice a place that changed."""


class GrowingFile:
    """Lines that another program adds to a file, each given once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._rest = ""

    def new_lines(self) -> list[str]:
        if not self.path.exists():
            return []
        with self.path.open() as file:
            file.seek(self._offset)
            text = self._rest + file.read()
            self._offset = file.tell()
        *lines, self._rest = text.split("\n")
        return lines


@dataclass
class Load:
    """One topic under constant sending and consuming, and the account of it."""

    witness: Witness
    nameserver: str
    topic: str
    home: Path
    group: str = "endurers"
    account: Account = field(default_factory=Account)
    failed: int = 0
    _runs: int = 0
    _sweeps: "itertools.count[int]" = field(default_factory=itertools.count)
    _answer: "Future[Fields] | None" = None
    _seen: "defaultdict[int, set[int]]" = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        self._outcomes = GrowingFile(self.home / f"{self.topic}.sent")
        self._consumed = GrowingFile(self.home / f"{self.topic}.consumed")

    def start(self, options: Mapping[str, object]) -> "Load":
        """Begin to send, or go on with numbers never used; the topic must be known to the name server."""
        self.home.mkdir(parents=True, exist_ok=True)
        self._answer = self.witness.begin(
            "endure",
            name=self.topic,
            topic=self.topic,
            file=self._outcomes.path,
            first=self._runs * NUMBERS_OF_A_RUN,
            nameserver=self.nameserver,
            **options,
        )
        self._runs += 1
        return self

    def start_consuming(self) -> None:
        self.witness.ask(
            "consume",
            name=f"{self.topic}-consumer",
            topics=[self.topic],
            group=self.group,
            file=self._consumed.path,
            nameserver=self.nameserver,
            persist=500,
        )

    def stop(self) -> None:
        """No more sends; consuming goes on."""
        self.witness.ask("stop", name=self.topic)
        assert self._answer is not None
        self._answer.result(STOP_SECONDS)

    def stop_consuming(self) -> None:
        self.witness.ask("stop", name=f"{self.topic}-consumer")

    def new_acks(self) -> list[Ack]:
        """Acknowledgements since the last call."""
        acks: list[Ack] = []
        for line in self._outcomes.new_lines():
            ack = parse_outcome(line)
            if ack is None:
                self.failed += 1
            else:
                acks.append(ack)
        return acks

    def take_acks(self) -> list[Ack]:
        """The same, entered into the account."""
        acks = self.new_acks()
        self.account.acknowledge(acks)
        return acks

    def wait_acks(self, count: int, seconds: float, since_ms: int = 0) -> list[Ack]:
        """Until so many sends that began after a moment were acknowledged; returns those."""
        found: list[Ack] = []

        def enough() -> bool:
            if self._answer is not None and self._answer.done():
                self._answer.result()  # it has ended before its time, with an error
            found.extend(ack for ack in self.take_acks() if ack.began_ms >= since_ms)
            return len(found) >= count

        wait_until(enough, seconds, lambda: f"{len(found)} of {count} sends acknowledged", 0.01)
        return found

    def sweep(self, *, everything: bool = False) -> None:
        """Read what is new and the end of what was read before, or all of it, into the account."""
        file = self.home / f"sweep-{next(self._sweeps)}"
        ends = {} if everything else self.account.ends()
        self.witness.ask(
            "sweep",
            SWEEP_SECONDS + self.account.acknowledged / SWEPT_PER_SECOND_MIN,
            topic=self.topic,
            nameserver=self.nameserver,
            file=file,
            **{"from": [f"{queue}:{max(0, end - OVERLAP)}" for queue, end in ends.items()]},
        )
        with file.open() as lines:
            self.account.read(lines)
        file.unlink()

    def offsets_beyond_the_end(self, broker: str, queues: int) -> list[str]:
        """Queues whose group has committed more than there is."""
        beyond: list[str] = []
        with frames.Connection(broker) as connection:
            for queue in range(queues):
                place = {"topic": self.topic, "queueId": str(queue)}
                asked = connection.ask(frames.QUERY_CONSUMER_OFFSET, {**place, "consumerGroup": self.group})
                end = int(connection.ask(frames.GET_MAX_OFFSET, place).fields["offset"])
                committed = int(asked.fields["offset"]) if asked.code == frames.SUCCESS else 0
                if committed > end:
                    beyond.append(f"queue {queue}: committed {committed}, end {end}")
        return beyond

    def consumed(self) -> Mapping[int, set[int]]:
        """The offsets of each queue that the group has seen so far."""
        for line in self._consumed.new_lines():
            queue, offset, _ = line.split()
            self._seen[int(queue)].add(int(offset))
        return self._seen

    def wait_consumed(self) -> None:
        """Until the group has seen all that was read."""

        def behind() -> int:
            return sum(self.account.ends().values()) - sum(map(len, self.consumed().values()))

        wait_until(
            lambda: behind() <= 0, CONSUME_SECONDS, lambda: f"the group misses {behind()} messages", 0.5
        )
        self.account.delivered(self.consumed())
