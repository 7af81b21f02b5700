"""Registration: brokers and name servers come, go, die and lose sight of each other.

Once all is quiet, every name server has exactly the brokers that run.
"""

from tests.simulation.cluster import REGISTERED_S, Cluster
from tests.simulation.world import World

ROUNDS = 4
GONE_S = 120 + 5 + 1
"""Silence ends a registration after two minutes, at the next look."""


async def registration(world: World) -> None:
    rng = world.rng
    cluster = Cluster(world, nameservers=rng.randint(1, 3), brokers=rng.randint(1, 3))
    await cluster.start()
    for _ in range(ROUNDS):
        for _ in range(rng.randint(1, 4)):
            await world.sleep(rng.choice((0.1, 10, 60, 300)) * rng.random())
            await _disturb(cluster)
        world.heal()
        cluster.start_all([*cluster.nameservers])
        if rng.random() < 0.5:
            cluster.start_all([*cluster.brokers])
        await world.until("brokers that run are in every route table", cluster.is_registered, REGISTERED_S)
        await world.until("brokers that are gone are in none", lambda: _know_only_running(cluster), GONE_S)


def _know_only_running(cluster: Cluster) -> bool:
    running = {broker.name for broker in cluster.brokers if broker.is_running}
    return all(running == server.brokers for server in cluster.nameservers)


async def _disturb(cluster: Cluster) -> None:
    rng = cluster.world.rng
    node = rng.choice([*cluster.nameservers, *cluster.brokers])
    if not node.is_running:
        node.start()
        return
    server, broker = rng.choice(cluster.nameservers), rng.choice(cluster.brokers)
    match rng.choice(("stop", "kill", "power", "power", "cut", "cut", "forget", "slow")):
        case "stop":
            await node.stop()
        case "kill":
            node.kill()
        case "power":
            node.power_off()
        case "cut":
            cluster.cut_off(broker, [server], both_ways=rng.random() < 0.6)
        case "forget":
            cluster.forget_connections(broker, server)
        case _:
            cluster.slow_down(broker, server, rng.choice((0.05, 0.5, 2.0)))
