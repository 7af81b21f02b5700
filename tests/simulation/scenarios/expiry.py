"""Expiry: who falls silent is forgotten in time, and never before.

A consumer is cut off from its broker, a broker from its name server; a member stops asking for its locks; a connection
says nothing.  What the servers last heard is looked up in their tables, because the network may have held it up.
"""

import asyncio
from collections.abc import Callable

from bolide.model.offsets import MessageQueue
from bolide.net.caller import Caller
from bolide.net.surroundings import Surroundings
from bolide.wire.bodies.lock import LockRequest, decode_locked
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from tests.simulation.cluster import Cluster
from tests.simulation.nodes import BROKER_PORT, GROUP, TOPIC, Node
from tests.simulation.world import Broken, World

MEMBER_S, SWEEP_MEMBERS_S = 120, 10
BROKER_S, SCAN_BROKERS_S = 120, 5
LOCK_S = 60
IDLE_S, SWEEP_IDLE_S = 120, 10
"""What users are told, and how often servers look; the code has its own constants for them."""

MOMENT_S = 1.0
ASK_LOCKS_S = 0.5


async def expiry(world: World) -> None:
    rng = world.rng
    cluster = Cluster(world, nameservers=1, brokers=2)
    await cluster.start(consumers=2)
    await world.until("every queue has one owner", cluster.is_shared_out, 60)
    await world.sleep(rng.uniform(0, 60))
    world.background(_lively_member(cluster))
    await asyncio.gather(
        _silent_member(cluster), _silent_broker(cluster), _silent_owner(cluster), _silent_connection(cluster)
    )


async def _lively_member(cluster: Cluster) -> None:
    """A consumer that nobody disturbs stays a member of a broker that is in its routes."""
    known = f"{cluster.consumers[1].host.address}@"
    while any(
        member.startswith(known) for member in cluster.brokers[0].broker.state.clients.member_ids(GROUP)
    ):
        await cluster.world.sleep(0.1)
    raise Broken("a member that is there was forgotten")


async def _silent_member(cluster: Cluster) -> None:
    """The first broker forgets a consumer that it does not hear, and shares its queues out without it."""
    world, node = cluster.world, cluster.consumers[0]
    broker = cluster.brokers[0]
    cluster.cut_off(node, [broker], both_ways=world.rng.random() < 0.5)

    def heard_s() -> float | None:
        clients = broker.broker.state.clients
        group = clients.group(GROUP)
        members = [] if group is None else list(group.members.values())
        heard_ms = (
            clients._heard[one.connection, GROUP, False]
            for one in members
            if one.client_id.startswith(f"{node.host.address}@")
        )
        return next((ms / 1000 for ms in heard_ms), None)

    await _forgotten(world, "the member", heard_s, MEMBER_S, SWEEP_MEMBERS_S)


async def _silent_broker(cluster: Cluster) -> None:
    world, node, names = cluster.world, cluster.brokers[1], cluster.nameservers[0]
    cluster.cut_off(node, [names], both_ways=world.rng.random() < 0.5)

    def heard_s() -> float | None:
        alive = names.server._state.routes._alive(node.name, node.broker.address)
        return None if alive is None else alive.heard_ms / 1000

    await _forgotten(world, "the broker", heard_s, BROKER_S, SCAN_BROKERS_S)


async def _forgotten(
    world: World, what: str, heard_s: Callable[[], float | None], lifetime_s: float, sweep_s: float
) -> None:
    """Wait until it is forgotten: not before its lifetime has passed since it was heard last, and soon after."""
    last = heard_s()
    assert last is not None, f"{what} is not even known"
    while (heard := heard_s()) is not None:
        last = heard
        if world.now - last > lifetime_s + sweep_s + MOMENT_S:
            raise Broken(f"{what} is known {world.now - last:.1f} s after it was heard last")
        await world.sleep(0.1)
    if world.now - last <= lifetime_s:
        raise Broken(f"{what} was forgotten {world.now - last:.1f} s after it was heard last")


async def _silent_owner(cluster: Cluster) -> None:
    """A member that is alive and does not ask for its lock again; another one asks all the time."""
    world = cluster.world
    first, second = LockClient(cluster, "lock-a"), LockClient(cluster, "lock-b")
    first.start()
    await world.until("the first has the lock", lambda: first.has_it, MOMENT_S)
    second.start()
    first.asks = False
    await world.until("the second has the lock", lambda: second.has_it, LOCK_S + MOMENT_S + ASK_LOCKS_S)
    if second.got_at - first.asked_at <= LOCK_S:
        raise Broken(f"the lock was given away {second.got_at - first.asked_at:.2f} s after it was asked for")


async def _silent_connection(cluster: Cluster) -> None:
    """Closed after two minutes; one that says something now and then stays."""
    world = cluster.world
    silent, lively = ConnectedClient(cluster, "silent", 0), ConnectedClient(cluster, "lively", 50)
    silent.start()
    lively.start()
    bound_s = IDLE_S + 2 * SWEEP_IDLE_S + MOMENT_S
    await world.until("the silent connection is closed", lambda: silent.closed_at > 0, bound_s)
    if silent.closed_at < IDLE_S:
        raise Broken(f"the connection was closed after {silent.closed_at:.1f} s")
    await world.sleep(bound_s)
    if lively.closed_at > 0:
        raise Broken("a connection was closed that is in use")


class ConnectedClient(Node):
    """Connects to the first broker, and says something every so many seconds; never with 0."""

    def __init__(self, cluster: Cluster, name: str, period_s: float) -> None:
        super().__init__(cluster.world, name)
        self._target = f"{cluster.brokers[0].host.address}:{BROKER_PORT}"
        self._period_s = period_s
        self.closed_at = 0.0

    async def main(self, surroundings: Surroundings) -> None:
        began = self.world.now
        caller = Caller(surroundings.clock)
        link = await caller.link(self._target)
        while link.is_open:
            await self.world.sleep(self._period_s or 1)
            if self._period_s and link.is_open:
                await link.call(Command(RequestCode.GET_BROKER_CONFIG), 3_000)
        self.closed_at = self.world.now - began


class LockClient(Node):
    """Asks for the lock of one queue, over and over."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(cluster.world, name)
        self._target = f"{cluster.brokers[0].host.address}:{BROKER_PORT}"
        self._queue = MessageQueue(TOPIC, cluster.brokers[0].name, 0)
        self.asks = True
        self.has_it = False
        self.asked_at = 0.0
        self.got_at = 0.0

    async def main(self, surroundings: Surroundings) -> None:
        caller = Caller(surroundings.clock)
        request = LockRequest("ordered", self.name, (self._queue,)).encode()
        while self.asks:
            self.asked_at = self.world.now
            answer = await caller.call(self._target, Command(RequestCode.LOCK_BATCH_MQ, body=request), 3_000)
            if not self.has_it and decode_locked(answer.body):
                self.has_it, self.got_at = True, self.world.now
            await self.world.sleep(ASK_LOCKS_S)
