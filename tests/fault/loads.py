"""Load that outlives its broker: a Java client that sends on and on, a group that consumes, a reader that compares."""

import itertools
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from tests.fault.account import Account, Ack, Place, parse_outcome
from tests.peers import frames
from tests.peers.waiting import wait_until
from tests.peers.witness import Fields, Witness

SWEEP_SECONDS = 120
NUMBERS_OF_A_RUN = 1_000_000
OVERLAP = 300
"""Messages of each queue that a reading sees again, to notice a place that changed."""


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
    _offset: int = 0
    _rest: str = ""
    _sweeps: "itertools.count[int]" = field(default_factory=itertools.count)
    _answer: "Future[Fields] | None" = None

    def start(self, options: Mapping[str, object]) -> "Load":
        """Begin to send, or go on with numbers never used; the topic must be known to the name server."""
        self.home.mkdir(parents=True, exist_ok=True)
        self._answer = self.witness.begin(
            "endure",
            name=self.topic,
            topic=self.topic,
            file=self._outcomes,
            first=self._runs * NUMBERS_OF_A_RUN,
            nameserver=self.nameserver,
            poll=1000,
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
            file=self._consumed,
            nameserver=self.nameserver,
            persist=500,
            poll=1000,
        )

    def stop(self) -> None:
        """No more sends; consuming goes on."""
        self.witness.ask("stop", name=self.topic)
        assert self._answer is not None
        self._answer.result(60)

    def stop_consuming(self) -> None:
        self.witness.ask("stop", name=f"{self.topic}-consumer")

    def new_acks(self) -> list[Ack]:
        """Acknowledgements since the last call."""
        acks: list[Ack] = []
        for line in self._new_lines():
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
            SWEEP_SECONDS,
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

    def consumed(self) -> Iterator[Place]:
        """Every place the group has seen so far, repetitions included."""
        if self._consumed.exists():
            with self._consumed.open() as lines:
                for line in lines:
                    queue, offset, _ = line.split()
                    yield Place(int(queue), int(offset))

    def wait_consumed(self, seconds: float = 60) -> None:
        """Until the group has seen all that was read."""

        def behind() -> int:
            ends = self.account.ends()
            return sum(ends.values()) - len(set(self.consumed()))

        wait_until(lambda: behind() <= 0, seconds, lambda: f"the group misses {behind()} messages", 0.5)

    @property
    def _outcomes(self) -> Path:
        return self.home / f"{self.topic}.sent"

    @property
    def _consumed(self) -> Path:
        return self.home / f"{self.topic}.consumed"

    def _new_lines(self) -> list[str]:
        if not self._outcomes.exists():
            return []
        with self._outcomes.open() as file:
            file.seek(self._offset)
            text = self._rest + file.read()
            self._offset = file.tell()
        *lines, self._rest = text.split("\n")
        return lines
