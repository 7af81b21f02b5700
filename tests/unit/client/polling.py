"""Lite pull consumers on a scripted cluster: made, filled and polled."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from bolide.aio import LitePullConsumer, MessageQueue, StoredMessage
from tests.unit.client.scripted import Cluster, ScriptedBroker, cluster

QUEUES = [MessageQueue("orders", "broker-0", number) for number in range(4)]


def on_cluster(scenario: Callable[[Cluster], Awaitable[None]], brokers: int = 1) -> None:
    async def run() -> None:
        async with cluster(brokers) as c:
            c.create("orders", 4)
            await scenario(c)

    asyncio.run(run())


def fill(broker: ScriptedBroker, count: int, queues: int = 4, first: int = 0) -> None:
    for number in range(first, first + count):
        broker.store("orders", number % queues, b"%d" % number)


@asynccontextmanager
async def member(c: Cluster, **options: object) -> AsyncIterator[LitePullConsumer]:
    """One that subscribes to the topic, and is closed at the end."""
    consumer = consumer_of(c, **options)
    await consumer.subscribe("orders")
    async with consumer:
        yield consumer


def consumer_of(c: Cluster, **options: object) -> LitePullConsumer:
    given = {"group": "g", "start_from": "first"} | options
    return LitePullConsumer(c.nameserver.address, **given)  # type: ignore[arg-type]


async def polled(consumer: LitePullConsumer, count: int, **options: int) -> list[StoredMessage]:
    """Poll until so many messages have come."""
    messages: list[StoredMessage] = []
    async with asyncio.timeout(10):
        while len(messages) < count:
            messages += await consumer.poll(**options)
    return messages


def bodies(messages: list[StoredMessage]) -> list[int]:
    return sorted(int(message.body) for message in messages)


def offsets(broker: ScriptedBroker, group: str = "g") -> list[int | None]:
    return [broker.offsets.get((group, "orders", number)) for number in range(4)]
