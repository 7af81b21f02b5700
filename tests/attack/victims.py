"""Python clients that meet a hostile server, and what is seen of them."""

import asyncio
from collections.abc import Awaitable, Callable

from bolide.aio import MessageQueue, PushConsumer, StoredMessage
from tests.attack.hostile import HostileServer, hostile_server

QUEUE = MessageQueue("T", "b", 0)
MIB = 1024 * 1024


class Seen:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.messages: list[StoredMessage] = []

    async def __call__(self, messages: list[StoredMessage]) -> None:
        self.messages += messages

    @property
    def offsets(self) -> list[int]:
        return [message.queue_offset for message in self.messages]


def against(scenario: Callable[[HostileServer], Awaitable[None]], **options: object) -> None:
    async def run() -> None:
        async with hostile_server(**options) as server:
            await scenario(server)

    asyncio.run(run())


async def consumer_of(
    server: HostileServer, listener: Callable[..., object], **options: object
) -> PushConsumer:
    consumer = PushConsumer(server.address, group="g", listener=listener, start_from="first", **options)  # type: ignore[arg-type]
    await consumer.subscribe("T")
    return consumer
