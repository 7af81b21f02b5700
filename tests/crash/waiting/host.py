"""BrokerHost: the machine of a broker, whose process may die before any step of its disk, or together with its power.

What a death leaves is a copy of the disk as it is in that moment.  The dying process may come to the end of its
callback, on a disk that nobody looks at any more and with connections that lead nowhere.
"""

import random
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from bolide.broker.app import Broker
from bolide.broker.config import BrokerConfig
from bolide.model.offsets import LogOffset
from bolide.model.topic import TopicConfig
from bolide.net.surroundings import Surroundings
from bolide.record.decode import decode_messages
from bolide.record.stored import StoredMessage
from bolide.store.reading import PullLimits
from bolide.store.store import MessageStore
from tests.crash.disk import SimDisk
from tests.crash.waiting.promises import Moment
from tests.simulation.world import World

PORT = 10911
STOP_S = 60
LIMITS = PullLimits(1000, 1 << 30, 1000, 1 << 30, hot_bytes_behind=2**40)


@dataclass
class Death:
    """How a process is going to end, unless it ends before: when its disk has done so many more steps."""

    steps_left: int
    with_power: bool


class BrokerHost:
    def __init__(
        self,
        world: World,
        rng: random.Random,
        settings: Mapping[str, str],
        topics: tuple[TopicConfig, ...],
        on_death: Callable[[int, bool], None],
    ) -> None:
        """`on_death` is told up to where the log was durable for sure, and whether the power went too."""
        self.world = world
        self.machine = world.add_host("broker")
        self.address = f"{self.machine.address}:{PORT}"
        self.deaths = 0
        self.lead_ms = 0
        """By how much its clock was set, all in all."""
        self._rng = rng
        self._settings = {
            "storePathRootDir": "/data/store",
            "listenPort": str(PORT),
            "bindAddress": self.machine.address,
            "messageIndexEnable": "false",
            **settings,
        }
        self._topics = topics
        self._on_death = on_death
        self.death: Death | None = None
        self._serves = False
        self._durable = 0  # as the process before this one knew it
        self.broker: Broker
        self._use(self.machine.disk)

    @property
    def is_alive(self) -> bool:
        return self.machine.is_running

    @property
    def is_ready(self) -> bool:
        return self._serves and self.is_alive

    @property
    def now_ms(self) -> int:
        return self.machine.clock.now_ms()

    @property
    def now(self) -> Moment:
        return Moment(self.now_ms, self.now_ms - self.lead_ms)

    def set_clock(self, ms: int) -> None:
        """Forward or back by so much."""
        self.lead_ms += ms
        self.world.step_clock(self.machine, ms)

    def is_heard(self) -> bool:
        return self.is_alive

    def log_end(self) -> int:
        return int(self.broker.state.store.log.end)

    def stored_ms(self, log_offset: int) -> int | None:
        head = self.broker.state.store.reader.head_at(LogOffset(log_offset))
        return None if head is None else head.store_timestamp_ms

    def seen(self, topic: str, queue_id: int) -> list[StoredMessage]:
        return list(seen(self.broker.state.store, topic, queue_id))

    def start(self, death: Death | None = None) -> None:
        self.death = death
        if self.machine.process is not None:  # what it did on its last way
            self.world.network.end_process(self.machine.process)
        self._serves = False
        self.world.start(self.machine, self._main)

    async def stop(self) -> None:
        """In order, unless it dies of it."""
        stopping = self.world.begin(self.machine, self.broker.stop())
        await self.world.until("the broker stops", lambda: stopping.done() or not self.is_alive, STOP_S)
        if self.is_alive:
            stopping.result()
            self._durable = self.durable
            self.world.kill(self.machine)

    def die(self, *, with_power: bool) -> None:
        """Now."""
        self.death = None
        self.deaths += 1
        durable = self._durable = self.durable
        process, disk = self.machine.process, self.machine.disk
        assert process is not None
        process.is_alive = False
        self.world.network.stop_host(self.machine.address)
        self._use(disk.after_power_loss(self._rng) if with_power else disk.left_by_a_kill())
        self._on_death(durable, with_power)

    @property
    def durable(self) -> int:
        """Up to where the log is durable for sure."""
        return int(self.broker.state.store.durability.durable) if self._serves else self._durable

    async def _main(self, surroundings: Surroundings) -> None:
        config = BrokerConfig.from_settings(self._settings)
        broker = Broker(config, surroundings, self.machine.disk)
        await broker.start()
        for topic in self._topics:
            if topic.name not in broker.state.topics:
                broker.state.topics.put(topic)
        await broker.state.known_everywhere()
        self.broker = broker
        self._serves = True
        failure = await broker.failed()
        if self.is_alive:
            raise AssertionError("the broker has given up") from failure

    def _use(self, disk: SimDisk) -> None:
        def before_step(kind: str, path: str) -> None:
            disk.now_ms = self.now_ms
            death = self.death
            if death is None or disk is not self.machine.disk:
                return
            death.steps_left -= 1
            if death.steps_left < 0:
                self.die(with_power=death.with_power)

        self.machine.disk = disk
        disk.on_step = before_step


class SimHands:
    """A machine for the client."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._machine = world.add_host("client")
        self.clock = self._machine.clock
        world.start(self._machine, self._main)

    async def _main(self, surroundings: Surroundings) -> None:
        """There are only the things that it begins."""

    @property
    def now(self) -> float:
        return self._world.now

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._world.begin(self._machine, work)
        task.add_done_callback(partial(self._world.ended, self._machine.process))

    async def sleep(self, seconds: float) -> None:
        await self._world.sleep(seconds)


def seen(store: MessageStore, topic: str, queue_id: int) -> Iterator[StoredMessage]:
    """What consumers see of a queue now."""
    offset, end = store.reader.queue_range(topic, queue_id)
    while offset < end:
        result = store.reader.pull(topic, queue_id, offset, limits=LIMITS)
        yield from decode_messages(result.data, "broker") if result.data else ()
        if result.next_offset <= offset:
            return
        offset = type(offset)(result.next_offset)
