"""Kill -9 with messages that wait: delayed, timed, recalled, half, failed and dead ones, and a real broker process.

    python -m tests.fault.waiting_kills --count 60 --seed 7

The client and what it holds against the broker are those of the lives in virtual time (`tests/crash/waiting`).  Here
the process, its files and the clock are real.  Two brokers live side by side, one for each flush mode, with half of the
kills each; some of the starts are killed as well.  In the end, when everything has come that must, each is killed once
more, and what the next start shows must be right: each message in one place, once, and not early.

How late a message may be is not judged here, because the machine may be busy; the lives do that.
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bolide.model import names
from bolide.net.clock import SystemClock
from bolide.record.decode import decode_messages
from bolide.record.stored import StoredMessage
from bolide.wire.codes import ResponseCode
from tests.crash.waiting.client import (
    DEAD_TOPIC,
    FAILING,
    QUEUES,
    RETRY_TOPIC,
    TOPIC,
    Client,
    Pace,
)
from tests.crash.waiting.promises import Fate, Found, Moment, Place, Promises
from tests.fault import campaign as campaigns
from tests.peers import frames
from tests.peers.bolide import Bolide
from tests.peers.server import Broker
from tests.unit.broker.stage import pull_request

PACE = Pace(
    levels_ms=(1_000, 1_000, 2_000, 2_000, 3_000),
    timed_ms=(10, 900, 2_500),
    together_ms=(3_000,),
    undecided_s=(0, 0.1, 0.7),
)
WEIGHTS = {
    "plain": 2,
    "delayed": 5,
    "timed": 4,
    "burst": 1,
    "together": 2,
    "recall": 3,
    "half": 5,
    "failing": 2,
}
SETTINGS = {
    **campaigns.SMALL_FILES,
    "mappedFileSizeTimerLog": "52000",
    "messageDelayLevel": PACE.levels_setting,
    "recallMessageEnable": "true",
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "1000",
    "transactionCheckMax": "8",
}
READ = {TOPIC: QUEUES, FAILING: 1, RETRY_TOPIC: 1, DEAD_TOPIC: 1, names.TRANS_CHECK_MAX_TOPIC: 1}

ACTS = (20, 80)
PAUSE_S_MAX = 0.03
LOOK_S = 0.3
START_KILLED = 0.25
RECOVERY_S_MAX = 0.6
LAST_S = 180
AFTERWARDS_S = 3.0
"""Time for what should not come."""
WHENEVER_MS = 3_600_000


@dataclass
class Summary(campaigns.Summary):
    promised: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {what}" for what, count in sorted(self.promised.items()))
        return f"{self.rounds} kills; {kinds}; {len(self.problems)} problems; seed {self.seed}"


class Hands:
    """See `tests.crash.waiting.client.Hands`: those of the running loop."""

    def __init__(self) -> None:
        self.clock = SystemClock()
        self.errors: list[BaseException] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.errors.append(error)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)  # noqa: TID251 - how the load is spread in time, and never a wait for something


class Victim:
    """See `tests.crash.waiting.client.Server`: a process that is killed and started again."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._clock = SystemClock()
        self._read: defaultdict[tuple[str, int], list[StoredMessage]] = defaultdict(list)
        self.is_ready = False

    @property
    def address(self) -> str:
        return self._broker.address

    @property
    def now(self) -> Moment:
        return Moment(self._clock.now_ms(), self._clock.now_ms())

    def is_heard(self) -> bool:
        return True

    def log_end(self) -> int:
        return 0  # a kill takes nothing that was answered

    def stored_ms(self, log_offset: int) -> int | None:
        return None

    def seen(self, topic: str, queue_id: int) -> Sequence[StoredMessage]:
        """What was there before is not read again: that it stays is shown elsewhere (`kills.py`)."""
        read = self._read[topic, queue_id]
        with frames.Connection(self.address) as connection:
            while True:
                request = pull_request(len(read), topic=topic, queue_id=queue_id)
                answer = connection.ask(request.code, dict(request.fields))
                if answer.code != ResponseCode.SUCCESS:
                    return read
                read += decode_messages(answer.body, "broker")

    def found(self) -> list[Found]:
        return [
            Found(
                Place(topic, message.properties["UNIQ_KEY"], message.reconsume_times),
                Moment(message.store_timestamp_ms, message.store_timestamp_ms),
            )
            for topic, queues in READ.items()
            for queue_id in range(queues)
            for message in self.seen(topic, queue_id)
        ]

    def forget(self) -> None:
        """Read everything again."""
        self._read.clear()


class Life:
    """One broker, from its first start to the end of everything that waits."""

    def __init__(
        self, home: Path, mode: str, seed: str, summary: Summary, progress: campaigns.Progress
    ) -> None:
        self._rng = random.Random(seed)
        self._mode = mode
        self._summary = summary
        self._progress = progress
        self._broker = Broker(Bolide(), home, "waiting", [], {**SETTINGS, "flushDiskType": mode})
        self._server = Victim(self._broker)
        self._hands = Hands()
        self._promises = Promises(late_ms=WHENEVER_MS)
        self._client = Client(self._hands, self._server, self._promises, self._rng, PACE)

    async def play(self, kills: int) -> None:
        try:
            await self._start()
            for topic, queues in ((TOPIC, QUEUES), (FAILING, 1)):
                await _apart(partial(frames.set_topic, self._server.address, topic, queues, queues))
            for number in range(1, kills + 1):
                await self._work()
                await self._kill_and_start()
                self._summary.rounds += 1
                self._progress(f"{self._mode} {number}/{kills}: {len(self._promises.all)} places")
            await self._until_all_have_come()
            await self._kill_and_start()
            await self._hands.sleep(AFTERWARDS_S)
            self._server.forget()
            self._judge(await _apart(self._server.found))
        finally:
            self._broker.kill()

    async def _work(self) -> None:
        kinds, weights = list(WEIGHTS), list(WEIGHTS.values())
        for _ in range(self._rng.randint(*ACTS)):
            self._client.acts[self._rng.choices(kinds, weights)[0]]()
            if self._rng.random() < 0.1:
                self._client.consume()
            await self._hands.sleep(self._rng.uniform(0, PAUSE_S_MAX))

    async def _start(self) -> None:
        await _apart(self._broker.start)
        self._promises.starts.append(self._server.now)
        self._server.is_ready = True
        self._client.connect()

    async def _kill_and_start(self) -> None:
        self._server.is_ready = False
        self._broker.kill()
        while self._rng.random() < START_KILLED:
            self._broker.launch()
            await self._hands.sleep(self._rng.uniform(0, RECOVERY_S_MAX))
            self._broker.kill()
        await self._start()

    async def _until_all_have_come(self) -> None:
        end = self._hands.now + LAST_S
        while not self._promises.is_kept(await _apart(self._server.found)) and self._hands.now < end:
            self._client.beat()
            self._client.consume()
            await self._hands.sleep(LOOK_S)

    def _judge(self, found: list[Found]) -> None:
        flaws = [*self._promises.flaws(found), *map(repr, self._hands.errors)]
        self._summary.problems += [f"{self._mode}: {flaw}" for flaw in flaws]
        for promise in self._promises.all.values():
            if promise.fate is Fate.ONCE:
                self._summary.acknowledged += 1
                self._summary.promised[promise.what] += 1


async def _apart(work: Callable[[], Any]) -> Any:
    """On a thread: it waits for a process or a socket, and the client goes on meanwhile."""
    return await asyncio.get_running_loop().run_in_executor(None, work)


def campaign(home: Path, count: int, seed: int, progress: campaigns.Progress) -> Summary:
    summary = Summary(seed)
    progress(f"seed {seed}")

    async def play() -> None:
        lives = [
            Life(home / mode, mode, f"{seed} {mode}", summary, progress).play(share)
            for mode, share in zip(campaigns.FLUSH_MODES, (count - count // 2, count // 2), strict=True)
        ]
        await asyncio.gather(*lives)

    asyncio.run(play())
    return summary


if __name__ == "__main__":
    campaigns.command(campaign, __doc__, count=60)
