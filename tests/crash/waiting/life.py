"""Life: one broker from its first start to the end of everything that waits, with the deaths that its seed chooses.

Clients send, recall, end transactions and fail; the broker is stopped, killed and loses its power, between any two
steps of its disk, in its starts and stops too.  In some lives somebody sets its clock, forward and back.  When the last
broker is up, time goes on until everything has come that must; it is then stopped or killed once more, and what the
next one has is held against the promises.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from bolide.broker import timer as timer_module
from bolide.broker.door import Door
from bolide.model import names
from bolide.model.topic import TopicConfig
from bolide.store.new_message import Appended, NewMessage
from bolide.store.timer import index as timer_index
from bolide.store.timer import wheel as timer_wheel
from bolide.store.timer.layout import SLOT_BYTES
from tests.crash.waiting.client import FAILING, QUEUES, RETRY_TOPIC, TOPIC, Client, Pace
from tests.crash.waiting.host import BrokerHost, Death, SimHands
from tests.crash.waiting.promises import Found, Moment, Place, Promises
from tests.simulation.world import Broken, World

SLOTS = 1200
"""Of the wheel: as many seconds, and more than anything waits here."""

EPOCHS = (2, 6)
ACTS = (2, 14)
PAUSES_S = (0, 0, 0.01, 0.3, 1, 3, 12)
REST_S = (0.05, 0.05, 2, 15)
"""From a death to the next start."""

STEPS_TO_DEATH_MAX = (5, 20, 80)
SLOWNESS_S = (0, 0, 0.02, 0.3)
"""How much longer a sync may take."""

START_S = 60
LOOK_S = 1.0
LAST_S = 400
"""By then everything has come."""

CLOCK_IS_SET = 0.35
"""In so many lives, and as often between two acts and between two brokers of such a life."""

STEPS_MS = (-3_600_000, -90_000, -5_000, -700, 700, 5_000, 90_000, 3_600_000)

WAITS_S_MAX = 200
"""At the end the clock is set to a time from which on nothing waits longer."""

AFTERWARDS_S = 20
"""Time for what should not come."""

WEIGHTS = {
    "plain": 2,
    "delayed": 5,
    "timed": 4,
    "burst": 1,
    "together": 2,
    "recall": 3,
    "half": 5,
    "failing": 3,
}
THEMES: dict[str, dict[str, int]] = {
    "everything": {},
    "timed": {"timed": 10, "burst": 8, "recall": 12},
    "together": {"together": 40, "timed": 0},
    "half": {"half": 30},
    "failing": {"failing": 20},
}
"""What there is more of in some lives."""

NOT_FOR_READERS = {names.SCHEDULE_TOPIC, names.HALF_TOPIC, names.OP_HALF_TOPIC, names.TIMER_TOPIC}

PACE = Pace()

SETTINGS = {
    "mappedFileSizeCommitLog": "16384",
    "mappedFileSizeConsumeQueue": "2000",
    "mappedFileSizeTimerLog": "4096",
    "messageDelayLevel": PACE.levels_setting,
    "flushDelayOffsetInterval": "100",
    "flushConsumerOffsetInterval": "500",
    "recallMessageEnable": "true",
    "transactionTimeOut": "2000",
    "transactionCheckInterval": "4000",
    "transactionCheckMax": "12",
}


class Life:
    def __init__(
        self, seed: int, theme: str | None = None, show: Callable[[str], None] | None = None
    ) -> None:
        """`theme` is one of `THEMES`, left to the seed unless it is given; `show` gets every event as a line."""
        self.rng = random.Random(f"{seed} waiting")
        self._weights = WEIGHTS | THEMES[theme or self.rng.choice(("everything", *THEMES))]
        self.is_sync = self.rng.random() < 0.5
        self._sets_clock = CLOCK_IS_SET if self.rng.random() < CLOCK_IS_SET else 0.0
        self._stored: dict[int, Moment] = {}  # by place in the log
        self.world = World(seed, show)
        self.promises = Promises()
        topics = (
            TopicConfig(TOPIC, QUEUES, QUEUES),
            TopicConfig(FAILING, 1, 1),
            TopicConfig(RETRY_TOPIC, 1, 1),
        )
        self.host = BrokerHost(self.world, self.rng, self._settings(), topics, self._died)
        self.client = Client(SimHands(self.world), self.host, self.promises, self.rng, PACE)

    def _settings(self) -> dict[str, str]:
        return {
            **SETTINGS,
            "flushDiskType": "SYNC_FLUSH" if self.is_sync else "ASYNC_FLUSH",
            "timerRollWindowSlot": self.rng.choice(("172800", "20")),
            "timerPrecisionMs": self.rng.choice(("1000", "500")),
            "timerFlushIntervalMs": self.rng.choice(("100", "1000")),
        }

    @property
    def states(self) -> int:
        """What was found by a start."""
        return self.host.deaths

    def play(self) -> None:
        """`Broken` when a promise is."""
        with scaled_down(), patch.object(Door, "append", self._watched(Door.append)):
            self.world.run(self._play())

    def _watched(self, append: Callable[..., list[Appended]]) -> Callable[..., list[Appended]]:
        """A record says when it was stored by a clock that never goes back; this is what the broker's clock said."""

        def watched(door: Door, messages: Sequence[NewMessage]) -> list[Appended]:
            now, is_alive = self.host.now, self.host.is_alive
            appended = append(door, messages)
            if is_alive:
                self._stored.update((int(one.log_offset), now) for one in appended)
            return appended

        return watched

    async def _play(self) -> None:
        for _ in range(self.rng.randint(*EPOCHS)):
            await self._live()
        await self._start(may_die=False)
        longest_ms = self.promises.last_ms() - self.host.now_ms
        if longest_ms > WAITS_S_MAX * 1000:
            self._set_clock(longest_ms)
        await self._until_all_have_come()
        await self._end()
        await self._start(may_die=False)
        for _ in range(AFTERWARDS_S):
            await self._pause(1)
        self._check("in the end")

    # ---- one broker ----------------------------------------------------------------------------------------

    async def _live(self) -> None:
        await self._start(may_die=self.rng.random() < 0.3)
        kinds, weights = list(self._weights), list(self._weights.values())
        count = self.rng.randint(*ACTS)
        dies_at = self.rng.randrange(count) if self.rng.random() < 0.7 else -1
        for number in range(count):
            if number == dies_at:
                self.host.death = self._death()
            self._perhaps_set_clock()
            self.client.acts[self.rng.choices(kinds, weights)[0]]()
            if self.rng.random() < 0.5:
                self.client.consume()
            await self._pause(self.rng.choice(PAUSES_S))
            if not self.host.is_alive:
                break
        if self.host.is_alive:
            await self._end()
        await self.world.sleep(self.rng.choice(REST_S))
        self._perhaps_set_clock()

    def _perhaps_set_clock(self) -> None:
        if self._sets_clock and self.rng.random() < self._sets_clock:
            self._set_clock(self.rng.choice(STEPS_MS))

    def _set_clock(self, ms: int) -> None:
        self.host.set_clock(ms)
        self.promises.set_clock(self.host.now, ms)

    async def _start(self, *, may_die: bool) -> None:
        """A broker that serves; perhaps not the first one that tries."""
        self.promises.starts.append(self.host.now)
        self.host.start(self._death() if may_die else None)
        await self.world.until("it serves", lambda: self.host.is_ready or not self.host.is_alive, START_S)
        if not self.host.is_alive:
            await self._start(may_die=False)
            return
        self.world.slow_disk(self.host.machine, self.rng.choice(SLOWNESS_S))
        self.client.connect()

    def _death(self) -> Death:
        return Death(
            self.rng.randrange(self.rng.choice(STEPS_TO_DEATH_MAX)), with_power=self.rng.random() < 0.6
        )

    async def _end(self) -> None:
        """In order, or of a sudden."""
        way = self.rng.choice(("stop", "stop", "kill", "power"))
        if way == "stop":
            await self.host.stop()
        else:
            self.host.die(with_power=way == "power")

    def _died(self, durable: int, with_power: bool) -> None:
        if with_power and not self.is_sync:
            self.promises.power_lost(durable)
        else:
            self.promises.durable(durable)

    async def _pause(self, seconds: float) -> None:
        await self.world.sleep(seconds)
        if self.host.is_ready:
            self.client.beat()
        self._check_errors()

    def _check_errors(self) -> None:
        if self.world.loop.errors:
            raise Broken(f"errors that nobody handled: {self.world.loop.errors[:3]}")

    # ---- what must be true ---------------------------------------------------------------------------------

    async def _until_all_have_come(self) -> None:
        end = self.world.now + LAST_S
        while not self.promises.is_kept(self._found()):
            if self.world.now > end:
                self._check(f"after {LAST_S} s more")
                return
            await self._pause(LOOK_S)
            self.client.consume()

    def _check(self, when: str) -> None:
        flaws = self.promises.flaws(self._found())
        if flaws:
            raise Broken(f"{when}, {'SYNC' if self.is_sync else 'ASYNC'}_FLUSH: {'; '.join(flaws[:3])}")

    def _found(self) -> list[Found]:
        """Everything that a reader may see."""
        store = self.host.broker.state.store
        queues = sorted(queue.tail.key for queue in store.queues)
        return [
            Found(
                Place(topic, message.properties["UNIQ_KEY"], message.reconsume_times),
                self._stored.get(int(message.log_offset))
                or Moment(message.store_timestamp_ms, message.store_timestamp_ms),
            )
            for topic, queue_id in queues
            if topic not in NOT_FOR_READERS
            for message in self.host.seen(topic, queue_id)
        ]


@contextmanager
def scaled_down() -> Iterator[None]:
    """The timer's wheel has two weeks of seconds, which is a lot to copy and to compare."""
    with ExitStack() as stack:
        for module in (timer_module, timer_index, timer_wheel):
            stack.enter_context(patch.object(module, "SLOTS", SLOTS))
        stack.enter_context(patch.object(timer_wheel, "WHEEL_BYTES", SLOTS * SLOT_BYTES))
        yield
