"""How a command asks a cluster: one connection for one question."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection

T = TypeVar("T")


def ask(nameserver: str, work: "Callable[[AdminConnection], Coroutine[Any, Any, T]]") -> T:
    """Run an operation of `bolide.admin` to its end."""
    from bolide.admin.connection import AdminConnection

    async def run() -> T:
        async with AdminConnection(nameserver) as servers:
            return await work(servers)

    return asyncio.run(run())
