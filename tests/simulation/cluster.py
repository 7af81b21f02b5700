"""Cluster: name servers, brokers and clients of one world, what can happen to them, and what must be true of them."""

from collections import Counter
from collections.abc import Callable, Mapping

from bolide.client.pull import PullConsumer
from bolide.model.offsets import MessageQueue
from bolide.net.surroundings import Surroundings
from bolide.record.stored import StoredMessage
from tests.simulation.ledger import Ledger
from tests.simulation.nodes import (
    GROUP,
    QUEUES,
    TOPIC,
    BrokerNode,
    ConsumerNode,
    NameServerNode,
    Node,
    ProducerNode,
)
from tests.simulation.watch import watch_offsets
from tests.simulation.world import Broken, World

START_S = 60
REGISTERED_S = 30 + 24 + 3 + 1
"""A broker registers every 30 s and repeats what failed at least as often; a registration on a connection that has
gone dead takes 24 s to fail, and a new connection a moment."""

COMMITTED_S = 60 + 5 + 1
"""What nobody takes back comes again after some seconds, for as long as that is so; offsets are sent every 5 s."""

AUDIT_S = 600
FLUSH_WINDOW_S = 10 + 1
"""flushCommitLogThoroughInterval, and the time of a sync."""

COPIES_MAX = 3
"""A send tries three times at most (`client.producer.RETRIES`), and each try may have been stored."""


class Cluster:
    def __init__(
        self,
        world: World,
        *,
        nameservers: int = 2,
        brokers: int = 2,
        settings: Mapping[str, str] | None = None,
        consumer_kind: Callable[..., ConsumerNode] = ConsumerNode,
        exclusive: bool = False,
    ) -> None:
        """`exclusive`: that a queue is two members' at once, who consume in order, is a flaw."""
        self.world = world
        self._consumer_kind = consumer_kind
        self._exclusive = exclusive
        self.is_sync = (settings or {}).get("flushDiskType") == "SYNC_FLUSH"
        self.ledger = Ledger()
        self.nameservers = [NameServerNode(world, f"names-{number}") for number in range(nameservers)]
        self.address = ";".join(server.address for server in self.nameservers)
        self.brokers = [
            BrokerNode(world, f"broker-{number}", self.nameservers, dict(settings or {}))
            for number in range(brokers)
        ]
        self.producers: list[ProducerNode] = []
        self.consumers: list[ConsumerNode] = []

    # ---- life ----------------------------------------------------------------------------------------------

    async def start(self, *, producers: int = 0, consumers: int = 0) -> None:
        for server in self.nameservers:
            server.start()
        for broker in self.brokers:
            broker.start()
        await self.world.until(
            "all brokers serve", lambda: all(one.is_ready for one in self.brokers), START_S
        )
        for _ in range(producers):
            self.add_producer()
        for _ in range(consumers):
            self.add_consumer()
        self.world.background(watch_offsets(self.world, self.ledger, self.brokers))

    def add_producer(self) -> ProducerNode:
        producer = ProducerNode(self.world, f"producer-{len(self.producers)}", self.address, self.ledger)
        self.producers.append(producer)
        producer.start()
        return producer

    def add_consumer(self) -> ConsumerNode:
        name = f"consumer-{len(self.consumers)}"
        consumer = self._consumer_kind(self.world, name, self.address, self.ledger)
        self.consumers.append(consumer)
        if self._exclusive:
            consumer.others = self.consumers
        consumer.start()
        return consumer

    def power_off(self, node: Node) -> None:
        """Without SYNC_FLUSH a broker may lose what it has acknowledged in the last seconds."""
        node.power_off()
        if node in self.brokers and not self.is_sync:
            self.ledger.may_have_lost(node.name, self.world.now - FLUSH_WINDOW_S)

    @property
    def nodes(self) -> list[Node]:
        return [*self.nameservers, *self.brokers, *self.producers, *self.consumers]

    def cut_off(self, node: Node, others: list[Node], *, both_ways: bool = True) -> None:
        self.world.cut(
            [node.host], [other.host for other in others if other is not node], both_ways=both_ways
        )

    def forget_connections(self, one: Node, other: Node) -> None:
        self.world.trace.note(f"forget {one.name} {other.name}")
        self.world.network.forget_connections(one.host.address, other.host.address)

    def slow_down(self, one: Node, other: Node, seconds: float) -> None:
        self.world.trace.note(f"slow {one.name} {other.name} {seconds:.3f}")
        self.world.network.slowness[frozenset((one.host.address, other.host.address))] = seconds

    def start_all(self, nodes: list[Node]) -> None:
        for node in nodes:
            if not node.is_running:
                node.start()

    # ---- what must be true ---------------------------------------------------------------------------------

    @property
    def queues(self) -> list[MessageQueue]:
        return [
            MessageQueue(TOPIC, broker.name, number) for broker in self.brokers for number in range(QUEUES)
        ]

    def owners(self) -> Counter[MessageQueue]:
        """How many running members hold each queue."""
        return Counter(queue for consumer in self.consumers for queue in consumer.queues)

    def is_shared_out(self) -> bool:
        """Whether every member has joined, and every queue has exactly one owner."""
        owners = self.owners()
        joined = all(consumer.is_ready for consumer in self.consumers if consumer.is_running)
        return joined and all(owners[queue] == 1 for queue in self.queues)

    def is_registered(self) -> bool:
        """Whether every name server has the brokers that run."""
        running = {broker.name for broker in self.brokers if broker.is_running}
        return all(running <= server.brokers for server in self.nameservers)

    async def all_consumed(self, within_s: float) -> None:
        """Wait until every acknowledged message has been consumed."""
        await self.world.until("the rest is consumed", lambda: not self.ledger.missing(), within_s)

    def is_committed(self) -> bool:
        """Whether the group's offsets have come to the end of every queue."""
        return all(
            broker.is_ready
            and broker.broker.state.offsets.query(GROUP, TOPIC, number)
            == broker.broker.state.store.queues.end_of(TOPIC, number)
            for broker in self.brokers
            for number in range(QUEUES)
        )

    async def audit(self) -> None:
        """Send nothing more, read every queue from its beginning and hold it against what was acknowledged."""
        for producer in self.producers:
            producer.shall_send = False
        await self.world.until(
            "the last sends end", lambda: not any(one.is_sending for one in self.producers), 10
        )
        if self.consumers:
            await self.world.until("all progress is stored", self.is_committed, COMMITTED_S)
        auditor = Auditor(self.world, self.address, self.queues)
        auditor.start()
        await self.world.until("the queues are read", lambda: auditor.is_done, AUDIT_S)
        flaws = self.ledger.flaws(auditor.found, COPIES_MAX) + self.ledger.disorder
        if flaws:
            raise Broken(f"{len(flaws)} flaws in the queues: {flaws[:3]}")


class Auditor(Node):
    """Reads queues as any client would."""

    def __init__(self, world: World, nameservers: str, queues: list[MessageQueue]) -> None:
        super().__init__(world, "auditor")
        self._nameservers = nameservers
        self._queues = queues
        self.found: dict[MessageQueue, dict[int, bytes]] = {}
        self.is_done = False

    async def main(self, surroundings: Surroundings) -> None:
        async with PullConsumer(self._nameservers, group="audit", surroundings=surroundings) as reader:
            for queue in self._queues:
                self.found[queue] = {
                    message.queue_offset: message.body for message in await self._read(reader, queue)
                }
        self.is_done = True

    async def _read(self, reader: PullConsumer, queue: MessageQueue) -> list[StoredMessage]:
        messages: list[StoredMessage] = []
        at: int = await reader.min_offset(queue)
        end = await reader.max_offset(queue)
        while at < end:
            result = await reader.pull(queue, at)
            messages += result.messages
            at = result.next_offset
        return messages
