"""Nodes: name servers, brokers, producers and consumers, each on a host of its own.

A node can be started, stopped, killed and started again.  Nothing in it is a double: these are the servers and
clients that users run.
"""

from abc import ABC, abstractmethod

from bolide.broker.app import Broker
from bolide.broker.config import BrokerConfig
from bolide.client.context import ConsumeContext
from bolide.client.lite import LitePullConsumer
from bolide.client.producer import Producer
from bolide.client.push import PushConsumer
from bolide.client.results import SendStatus
from bolide.machines.orderly import OrderedQueue
from bolide.model.errors import BolideError, ClientNotRunning
from bolide.model.message import Message
from bolide.model.offsets import MessageQueue
from bolide.model.topic import TopicConfig
from bolide.nameserver.app import NameServer
from bolide.nameserver.config import NameServerConfig
from bolide.net.surroundings import Surroundings
from bolide.record.stored import StoredMessage
from tests.simulation.ledger import Ledger
from tests.simulation.world import Host, World

NAMESERVER_PORT = 9876
BROKER_PORT = 10911
STOP_S = 60
TOPIC = "Orders"
GROUP = "workers"
QUEUES = 4
PAUSE_S = (0.05, 3)
"""Between two messages of a producer."""


BROKER_SETTINGS = {
    "storePathRootDir": "/data/store",
    "listenPort": str(BROKER_PORT),
    "mappedFileSizeCommitLog": str(256 * 1024),
    "mappedFileSizeConsumeQueue": "2000",
    "messageIndexEnable": "false",
}
"""Small files.  The index of keys has its own crash tests, and wakes twenty times a second."""


class Node(ABC):
    """Something that runs on a host of its own."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.host: Host = world.add_host(name)
        self._serves = False

    @property
    def name(self) -> str:
        return self.host.name

    @property
    def is_running(self) -> bool:
        return self.host.is_running

    @property
    def is_ready(self) -> bool:
        """Whether its process has come so far that it serves."""
        return self._serves and self.is_running

    def start(self) -> None:
        self._serves = False
        self.world.start(self.host, self.main)

    async def stop(self) -> None:
        """In order; one that does not serve yet has nothing to put in order."""
        if self.is_ready:
            await self.world.call(self.host, self.shut_down(), STOP_S)
        self.world.kill(self.host)

    def kill(self) -> None:
        self.world.kill(self.host)

    def power_off(self) -> None:
        self.world.power_off(self.host)

    @abstractmethod
    async def main(self, surroundings: Surroundings) -> None:
        """What its process does."""

    async def shut_down(self) -> None:  # noqa: B027 - most have nothing to put in order
        """What a stop in order has to do."""


class NameServerNode(Node):
    server: NameServer

    @property
    def address(self) -> str:
        return f"{self.host.address}:{NAMESERVER_PORT}"

    async def main(self, surroundings: Surroundings) -> None:
        config = NameServerConfig(
            host=self.host.address, port=NAMESERVER_PORT, kv_config_path="/data/kvConfig.json"
        )
        self.server = NameServer(config, surroundings=surroundings, disk=self.host.disk)
        await self.server.start()
        self._serves = True

    async def shut_down(self) -> None:
        await self.server.stop()

    @property
    def brokers(self) -> set[str]:
        """The broker names that its routes have now."""
        return set(self.server._state.routes.cluster_info().brokers) if self.is_ready else set()


class BrokerNode(Node):
    broker: Broker

    def __init__(
        self,
        world: World,
        name: str,
        nameservers: list[NameServerNode],
        settings: dict[str, str] | None = None,
    ) -> None:
        super().__init__(world, name)
        self._settings = {
            **BROKER_SETTINGS,
            "brokerName": name,
            "bindAddress": self.host.address,
            "namesrvAddr": ";".join(server.address for server in nameservers),
            **(settings or {}),
        }

    async def main(self, surroundings: Surroundings) -> None:
        self.broker = Broker(BrokerConfig.from_settings(self._settings), surroundings, self.host.disk)
        await self.broker.start()
        if TOPIC not in self.broker.state.topics:
            self.broker.state.topics.put(TopicConfig(TOPIC, QUEUES, QUEUES))
            await self.broker.state.known_everywhere()
        self._serves = True
        failure = await self.broker.failed()
        raise AssertionError(f"the broker {self.name} has given up") from failure

    async def shut_down(self) -> None:
        await self.broker.stop()


class ProducerNode(Node):
    """Sends numbered messages, one after the other, and writes down what was acknowledged."""

    def __init__(self, world: World, name: str, nameservers: str, ledger: Ledger) -> None:
        super().__init__(world, name)
        self._nameservers = nameservers
        self._ledger = ledger
        self._rng = world.fork_rng()
        self._number = 0
        self.pause_s: tuple[float, float] = PAUSE_S
        self.acknowledged_at = 0.0
        self.shall_send = True
        self.is_sending = False
        self.producer: Producer

    async def main(self, surroundings: Surroundings) -> None:
        self.producer = Producer(self._nameservers, group="senders", surroundings=surroundings)
        await self.producer.start()
        self._serves = True
        while True:
            await self.world.sleep(self._rng.uniform(*self.pause_s))
            if self.shall_send:
                self.is_sending = True
                await self._send()
                self.is_sending = False

    def _next_body(self) -> bytes:
        """Small ones mostly; some are packed, and some so large that a thread packs them."""
        self._number += 1
        size = self._rng.choice((0, 0, 10, 10, 500, 5_000) if self._rng.random() < 0.97 else (70_000,))
        return b"%s %d %s" % (self.name.encode(), self._number, b"." * size)

    async def _send(self) -> None:
        bodies = [self._next_body() for _ in range(self._rng.choice((1, 1, 1, 1, 5)))]
        self._ledger.attempts.update(bodies)
        try:
            if len(bodies) == 1:
                receipts = [await self.producer.send(Message(TOPIC, bodies[0]))]
            else:
                receipts = await self.producer.send_batch(Message(TOPIC, body) for body in bodies)
        except BolideError as error:
            self.world.trace.note(f"{self.name} cannot send: {error}")
        else:
            self.acknowledged_at = self.world.now
            for body, receipt in zip(bodies, receipts, strict=True):
                if receipt.status is SendStatus.SEND_OK:
                    self._ledger.acknowledged(body, receipt, self.world.now)

    async def shut_down(self) -> None:
        await self.producer.close()


class ConsumerNode(Node):
    """A member of a group; its work takes a moment and sometimes fails."""

    def __init__(
        self, world: World, name: str, nameservers: str, ledger: Ledger, *, orderly: bool = False
    ) -> None:
        super().__init__(world, name)
        self._nameservers = nameservers
        self._ledger = ledger
        self._rng = world.fork_rng()
        self._orderly = orderly
        self.failure_rate = 0.01
        self.consumer: PushConsumer | None = None
        self.others: list[ConsumerNode] = []

    async def main(self, surroundings: Surroundings) -> None:
        self.consumer = None
        listener = self._rng.choice((self._listen, self._listen_in_thread))
        while not self._serves:
            consumer = PushConsumer(
                self._nameservers,
                group=GROUP,
                listener=self._listen_in_order if self._orderly else listener,
                orderly=self._orderly,
                start_from="first",
                surroundings=surroundings,
            )
            await consumer.subscribe(TOPIC)
            try:
                await consumer.start()
            except BolideError:
                await self.world.sleep(1)
            else:
                self.consumer = consumer
                self._serves = True

    async def _listen(self, messages: list[StoredMessage]) -> None:
        await self.world.sleep(self._rng.uniform(0, 0.05))
        self._listen_in_thread(messages)

    def _listen_in_thread(self, messages: list[StoredMessage]) -> None:
        if self._rng.random() < self.failure_rate:
            for message in messages:
                self._ledger.failed(message, self.world.now)
            raise RuntimeError("the listener does not feel well")
        for message in messages:
            self._ledger.consumed(message)

    async def _listen_in_order(self, messages: list[StoredMessage], context: ConsumeContext) -> None:
        await self.world.sleep(self._rng.uniform(0, 0.05))
        rivals = [one.name for one in self.others if one is not self and one.holds_surely(context.queue)]
        if rivals:
            self._ledger.disorder.append(f"{context.queue} is {self.name}'s and {rivals}'s at once")
        if self._rng.random() < self.failure_rate:
            raise RuntimeError("the listener does not feel well")
        for message in messages:
            self._ledger.consumed_in_order(message)

    def holds_surely(self, queue: MessageQueue) -> bool:
        """Whether it would begin a call for a queue that it consumes in order."""
        if queue not in self.queues or self.consumer is None:
            return False
        held = self.consumer._assignment._held[queue]
        assert isinstance(held.process, OrderedQueue)
        return held.is_locked and held.process.is_trusted(self.consumer._instance.clock.monotonic_ms())

    async def shut_down(self) -> None:
        assert self.consumer is not None
        await self.consumer.close()

    @property
    def queues(self) -> list[MessageQueue]:
        """Those of the topic that it has now."""
        if not self.is_running or self.consumer is None:
            return []
        return [queue for queue in self.consumer.queues if queue.topic == TOPIC]


class PollingNode(ConsumerNode):
    """A member of the group that polls; its work takes its time."""

    poller: LitePullConsumer | None = None

    async def main(self, surroundings: Surroundings) -> None:
        self.poller = None
        while not self._serves:
            poller = LitePullConsumer(
                self._nameservers, group=GROUP, start_from="first", surroundings=surroundings
            )
            await poller.subscribe(TOPIC)
            try:
                await poller.start()
            except BolideError:
                await self.world.sleep(1)
            else:
                self.poller = poller
                self._serves = True
                await self._rng.choice((self._poll, self._iterate))(poller)

    async def _poll(self, poller: LitePullConsumer) -> None:
        try:
            while True:
                timeout_ms = self._rng.choice((1_000, 5_000))
                await self._work(await poller.poll(timeout_ms, self._rng.choice((1, 10, 500))))
        except ClientNotRunning:
            pass  # stopped in order

    async def _iterate(self, poller: LitePullConsumer) -> None:
        async for message in poller:
            await self._work([message])

    async def _work(self, messages: list[StoredMessage]) -> None:
        await self.world.sleep(self._rng.choice((0.0, 0.0, 0.0, 0.05, 3.0)) * self._rng.random())
        for message in messages:
            self._ledger.consumed(message)

    async def shut_down(self) -> None:
        assert self.poller is not None
        await self.poller.close()

    @property
    def queues(self) -> list[MessageQueue]:
        return self.poller.queues if self.is_running and self.poller is not None else []
