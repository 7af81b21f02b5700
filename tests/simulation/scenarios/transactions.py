"""Transactions: producers and brokers die, restart and lose sight of each other in the middle of transactions.

Once all is quiet again every half message ends by itself: consumers can read what was committed, once for each time
that it may have been stored, and nothing of what was rolled back, or was never decided.
"""

from collections import Counter

from bolide.broker.handlers.transaction import Transactions
from bolide.client.results import Transaction
from bolide.client.transaction_producer import TransactionProducer
from bolide.model.errors import BolideError
from bolide.model.message import Message
from bolide.net.surroundings import Surroundings
from bolide.record.stored import StoredMessage
from tests.simulation.cluster import COPIES_MAX, Auditor, Cluster
from tests.simulation.nodes import TOPIC, Node
from tests.simulation.world import Broken, World

ROUNDS = 3
LOCAL_S_MAX = 90
"""Longer than a broker waits before it asks (transactionTimeOut, and then transactionCheckInterval)."""

SERVES_S = 60
ENDED_S = 6 + 2 * 30 + 60 + 30
"""A half message has its time, is asked for with the next look or the one behind it; who is to be asked greets a broker
that has come back within a minute, and its answer may be lost once."""

SETTINGS = {"flushDiskType": "SYNC_FLUSH", "transactionCheckMax": "1000"}

Book = dict[bytes, Transaction | None]
"""How each transaction has ended, as a database would tell; None while nobody knows."""


class Transactor(Node):
    """A member of a producer group; its local functions take their time, and some do not know how it went."""

    def __init__(self, world: World, name: str, nameservers: str, book: Book) -> None:
        super().__init__(world, name)
        self._nameservers = nameservers
        self._book = book
        self._rng = world.fork_rng()
        self._number = 0
        self.shall_send = True
        self.is_sending = False
        self.producer: TransactionProducer

    async def main(self, surroundings: Surroundings) -> None:
        self.is_sending = False
        self.producer = TransactionProducer(
            self._nameservers,
            group="transactors",
            check=self._rng.choice((self._check, self._check_on_loop)),
            topics=[TOPIC],
            surroundings=surroundings,
        )
        await self.producer.start()
        self._serves = True
        while True:
            await self.world.sleep(self._rng.uniform(0.1, 10))
            if self.shall_send:
                self.is_sending = True
                await self._send()
                self.is_sending = False

    async def _send(self) -> None:
        self._number += 1
        body = b"%s %d" % (self.name.encode(), self._number)
        self._book[body] = None
        try:
            await self.producer.send_in_transaction(Message(TOPIC, body), self._local)
        except BolideError as error:
            self.world.trace.note(f"{self.name} cannot send: {error}")

    async def _local(self, message: Message) -> Transaction:
        await self.world.sleep(self._rng.choice((0.1, 0.1, 1, LOCAL_S_MAX)) * self._rng.random())
        outcome = self._rng.choice((Transaction.COMMIT, Transaction.COMMIT, Transaction.ROLLBACK))
        self._book[message.body] = outcome
        if self._rng.random() < 0.2:
            raise RuntimeError("it does not know how it went")
        return Transaction.UNKNOWN if self._rng.random() < 0.2 else outcome

    def _check(self, message: StoredMessage) -> Transaction:
        return self._book[message.body] or Transaction.UNKNOWN

    async def _check_on_loop(self, message: StoredMessage) -> Transaction:
        await self.world.sleep(self._rng.random())
        return self._check(message)

    async def shut_down(self) -> None:
        await self.producer.close()


async def transactions(world: World) -> None:
    rng = world.rng
    cluster = Cluster(world, nameservers=1, brokers=rng.randint(1, 2), settings=SETTINGS)
    await cluster.start()
    book: Book = {}
    members = [Transactor(world, f"transactor-{number}", cluster.address, book) for number in range(2)]
    nodes = [*cluster.brokers, *members]
    cluster.start_all([*members])
    for _ in range(ROUNDS):
        for _ in range(rng.randint(1, 4)):
            await world.sleep(rng.choice((1, 10, 60)) * rng.random())
            await _disturb(cluster, nodes)
        await world.sleep(rng.choice((1, 60, 150)) * rng.random())
        world.heal()
        cluster.start_all(nodes)
        await world.until("all serve", lambda: all(node.is_ready for node in nodes), SERVES_S)
    for member in members:
        member.shall_send = False
    await world.until(
        "the last sends end", lambda: not any(one.is_sending for one in members), LOCAL_S_MAX + 10
    )
    for body, outcome in book.items():
        if outcome is None:  # who was at it was killed, or it was never stored
            book[body] = Transaction.ROLLBACK
    await world.until("every transaction has ended", lambda: not _open(cluster), ENDED_S)
    await _audit(cluster, book)


async def _disturb(cluster: Cluster, nodes: list[Node]) -> None:
    rng = cluster.world.rng
    node, other = rng.sample(nodes, 2)
    if not node.is_running:
        node.start()
        return
    match rng.choice(("stop", "kill", "kill", "power", "cut", "forget", "slow")):
        case "stop":
            await node.stop()
        case "power" if node in cluster.brokers:
            cluster.power_off(node)
        case "kill" | "power":
            node.kill()
        case "cut":
            cluster.cut_off(node, [other], both_ways=rng.random() < 0.6)
        case "forget":
            cluster.forget_connections(node, other)
        case _:
            cluster.slow_down(node, other, rng.choice((0.05, 0.5, 2.0)))


def _open(cluster: Cluster) -> int:
    """Half messages that nobody has ended."""
    return sum(broker.broker.part(Transactions).halves.open_count for broker in cluster.brokers)


async def _audit(cluster: Cluster, book: Book) -> None:
    auditor = Auditor(cluster.world, cluster.address, cluster.queues)
    auditor.start()
    await cluster.world.until("the queues are read", lambda: auditor.is_done, ENDED_S)
    found = Counter(body for queue in auditor.found.values() for body in queue.values())
    for body, outcome in book.items():
        if outcome is Transaction.COMMIT and not found[body]:
            raise Broken(f"{body!r} was committed, and is nowhere")
        if outcome is Transaction.ROLLBACK and found[body]:
            raise Broken(f"{body!r} was rolled back, and can be read")
        if found[body] > COPIES_MAX:
            raise Broken(f"{body!r} was stored {found[body]} times")
