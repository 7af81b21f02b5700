"""Reconnect: brokers and name servers restart, lose power and lose sight of each other and of the clients.

Once all is quiet again, sending and consuming go on by themselves, and everything that was acknowledged is where the
acknowledgement says: after kills always, after power loss with SYNC_FLUSH, and without it but for the last seconds.

With ASYNC_FLUSH and power loss there are no consumers: a group that stood where the queue was cut misses what is stored
there before it pulls again.
"""

from functools import partial

from tests.simulation.cluster import REGISTERED_S, Cluster
from tests.simulation.nodes import ConsumerNode
from tests.simulation.world import World

ROUNDS = 4
HOUR_MS = 3_600_000
SENDS_S = 60
"""From the moment when all is well to the next acknowledgement: a producer asks for routes every 30 s, brokers are in
them after as long, and a send gives up after 3 s."""

CALM_S = 120 + 10 + 30 + 20 + 15
"""See `rebalance`."""


async def reconnect(world: World) -> None:
    await _play(world, in_order=False)


async def relock(world: World) -> None:
    """The same with members that consume in order: no message comes before one in front of it.

    Whose a queue is may be in doubt for half a minute, and messages come twice then: a broker that restarts has
    forgotten its locks, and a member that was cut off from it meanwhile does not know.
    """
    await _play(world, in_order=True)


async def _play(world: World, *, in_order: bool) -> None:
    rng = world.rng
    settings = {"flushDiskType": rng.choice(("SYNC_FLUSH", "ASYNC_FLUSH"))}
    cluster = Cluster(
        world,
        nameservers=rng.randint(1, 2),
        brokers=rng.randint(1, 3),
        settings=settings,
        consumer_kind=partial(ConsumerNode, orderly=in_order),
    )
    loses_power = cluster.is_sync or rng.random() < 0.3
    await cluster.start(producers=2, consumers=2 if cluster.is_sync or not loses_power else 0)
    for _ in range(ROUNDS):
        for _ in range(rng.randint(1, 4)):
            await world.sleep(rng.choice((0.1, 5, 40)) * rng.random())
            await _disturb(cluster, loses_power=loses_power)
        await world.sleep(rng.choice((0.0, 10, 150, 150) if rng.random() < 0.95 else (1500,)) * rng.random())
        world.heal()
        cluster.start_all([*cluster.nameservers, *cluster.brokers])
        await world.until("all brokers serve", lambda: all(one.is_ready for one in cluster.brokers), SENDS_S)
        for producer in cluster.producers:
            producer.acknowledged_at = 0.0
        await world.until(
            "every producer sends again",
            lambda: all(one.acknowledged_at for one in cluster.producers),
            SENDS_S,
        )
        await world.until("all brokers are registered", cluster.is_registered, REGISTERED_S)
        if cluster.consumers:
            await world.until("every queue has one owner", cluster.is_shared_out, CALM_S)
            await cluster.all_consumed(CALM_S)
    await cluster.audit()


async def _disturb(cluster: Cluster, *, loses_power: bool) -> None:
    rng = cluster.world.rng
    servers = [*cluster.nameservers, *cluster.brokers]
    node = rng.choice(servers)
    if not node.is_running:
        node.start()
        return
    other = rng.choice([one for one in cluster.nodes if one is not node])
    if rng.random() < 0.5:  # in the moment in which it has promised something
        await cluster.ledger.next_acknowledgement(node.name, 5)
    match rng.choice(
        ("stop", "kill", "kill", "power", "cut", "cut", "forget", "slow", "clock", "client", "disk")
    ):
        case "stop":
            await node.stop()
        case "power" if loses_power or node in cluster.nameservers:
            cluster.power_off(node)
        case "kill" | "power":
            node.kill()
        case "cut":
            cluster.cut_off(node, [other], both_ways=rng.random() < 0.6)
        case "forget":
            cluster.forget_connections(node, other)
        case "clock":
            cluster.world.step_clock(node.host, rng.choice((-HOUR_MS, -5_000, 5_000, 24 * HOUR_MS)))
        case "disk":
            cluster.world.slow_disk(node.host, rng.choice((0.2, 2, 12)))
        case "client":
            cluster.add_consumer() if cluster.consumers and rng.random() < 0.5 else cluster.add_producer()
        case _:
            cluster.slow_down(node, other, rng.choice((0.05, 0.5, 2.0)))
