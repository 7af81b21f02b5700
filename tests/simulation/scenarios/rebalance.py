"""Rebalance: members of a group come, go, die and are cut off.

Once all is quiet, every queue has exactly one owner, and everything that was acknowledged has been consumed.
"""

from collections.abc import Callable
from functools import partial

from tests.simulation.cluster import Cluster
from tests.simulation.nodes import ConsumerNode, PollingNode
from tests.simulation.world import World

ROUNDS = 4
DAYS_ROUNDS = 8
EVENTS = 3
CALM_S = 120 + 10 + 30 + 20 + 15
"""A silent member is dropped after two minutes, at the next sweep; the others learn it by a notice, or when they next
look; whoever was cut off first notices that a call has failed."""

CONSUMERS_MAX = 6
HOUR_MS = 3_600_000


async def rebalance(world: World) -> None:
    await _play(world, ROUNDS, brokers=world.rng.randint(1, 3), calm_s=0)


async def polling(world: World) -> None:
    """The same with members that poll."""
    await _play(world, ROUNDS, brokers=world.rng.randint(1, 3), calm_s=0, consumer_kind=PollingNode)


async def days(world: World) -> None:
    """The same over two days, with hours between the events in which nothing may happen."""
    await _play(world, DAYS_ROUNDS, brokers=1, calm_s=2 * 24 * 3600 / DAYS_ROUNDS)


async def orderly(world: World) -> None:
    """The same with members that consume in order: no message comes before one in front of it, and no queue is two
    members' at once, whoever dies or is cut off."""
    in_order = partial(ConsumerNode, orderly=True)
    brokers = world.rng.randint(1, 2)
    await _play(world, ROUNDS, brokers=brokers, calm_s=0, consumer_kind=in_order, exclusive=True)


async def _play(
    world: World,
    rounds: int,
    *,
    brokers: int,
    calm_s: float,
    consumer_kind: Callable[..., ConsumerNode] = ConsumerNode,
    exclusive: bool = False,
) -> None:
    rng = world.rng
    cluster = Cluster(
        world,
        nameservers=rng.randint(1, 2),
        brokers=brokers,
        consumer_kind=consumer_kind,
        exclusive=exclusive,
    )
    await cluster.start(producers=1, consumers=rng.randint(1, 4))
    if calm_s:
        cluster.producers[0].pause_s = (5, 120)
    for _ in range(rounds):
        for _ in range(rng.randint(1, EVENTS)):
            await world.sleep(rng.choice((0.1, 5, 40, 200)) * rng.random())
            await _disturb(cluster)
        await world.sleep(rng.choice((0.0, 30, 200)) * rng.random())
        world.heal()
        if not any(consumer.is_running for consumer in cluster.consumers):
            cluster.add_consumer()
        await world.until("every queue has one owner", cluster.is_shared_out, CALM_S)
        await cluster.all_consumed(CALM_S)
        if calm_s:
            await world.sleep(calm_s)
            await world.until("it is still so after hours", cluster.is_shared_out, 0)
    await cluster.audit()


async def _disturb(cluster: Cluster) -> None:
    rng = cluster.world.rng
    running = [consumer for consumer in cluster.consumers if consumer.is_running]
    if len(running) < 2 or (len(running) < CONSUMERS_MAX and rng.random() < 0.3):
        gone = [consumer for consumer in cluster.consumers if not consumer.is_running]
        gone[0].start() if gone else cluster.add_consumer()
        return
    member = rng.choice(running)
    await rng.choice((_leave, _die, _lose_power, _be_cut_off, _be_forgotten, _be_slow, _be_misled))(
        cluster, member
    )


async def _leave(cluster: Cluster, member: ConsumerNode) -> None:
    await member.stop()


async def _die(cluster: Cluster, member: ConsumerNode) -> None:
    member.kill()


async def _lose_power(cluster: Cluster, member: ConsumerNode) -> None:
    member.power_off()


async def _be_cut_off(cluster: Cluster, member: ConsumerNode) -> None:
    """From one broker, from all, or from the name servers."""
    rng = cluster.world.rng
    whom = rng.choice(([rng.choice(cluster.brokers)], cluster.brokers, cluster.nameservers))
    cluster.cut_off(member, [*whom], both_ways=rng.random() < 0.7)


async def _be_forgotten(cluster: Cluster, member: ConsumerNode) -> None:
    cluster.forget_connections(member, cluster.world.rng.choice(cluster.brokers))


async def _be_slow(cluster: Cluster, member: ConsumerNode) -> None:
    rng = cluster.world.rng
    cluster.slow_down(member, rng.choice(cluster.brokers), rng.choice((0.05, 0.5, 2.0)))


async def _be_misled(cluster: Cluster, member: ConsumerNode) -> None:
    cluster.world.step_clock(member.host, cluster.world.rng.choice((-HOUR_MS, -5_000, 5_000, 24 * HOUR_MS)))
