"""What the tests of push consumers share: a listener that remembers, and a cluster with a topic of four queues."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from bolide.aio import PushConsumer, StoredMessage
from tests.unit.client.scripted import Cluster, cluster


class Collector:
    """A listener that remembers bodies and fails when told to."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.messages: list[StoredMessage] = []
        self.fail_on: Counter[bytes] = Counter()
        self.sizes: list[int] = []

    async def __call__(self, messages: list[StoredMessage]) -> None:
        self.sizes.append(len(messages))
        for message in messages:
            if self.fail_on[message.body] > 0:
                self.fail_on[message.body] -= 1
                raise RuntimeError(f"{message.body!r} is not wanted yet")
        self.messages += messages
        self.bodies += [message.body for message in messages]


def on_cluster(scenario: Callable[[Cluster], Awaitable[None]], brokers: int = 1) -> None:
    async def run() -> None:
        async with cluster(brokers) as c:
            c.create("orders", 4)
            c.create("%RETRY%g", 1)
            await scenario(c)

    asyncio.run(run())


async def consumer_of(c: Cluster, listener: Callable[..., object], **options: object) -> PushConsumer:
    consumer = PushConsumer(c.nameserver.address, group="g", listener=listener, **options)  # type: ignore[arg-type]
    await consumer.subscribe("orders")
    return consumer
