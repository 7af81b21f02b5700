"""Callers that are closed while somebody waits for a connection."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bolide.model.errors import ConnectionLost
from bolide.net.caller import Caller
from bolide.net.clock import SystemClock
from bolide.wire.command import Command

WAIT_S = 10


@asynccontextmanager
async def connecting() -> AsyncIterator[tuple[Caller, "list[asyncio.Task[Command]]"]]:
    """Two calls to a server that takes the connection and leaves the handshake at that."""
    taken = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    caller = Caller(SystemClock(), tls=ssl.create_default_context())
    calls = [asyncio.create_task(caller.call(address, Command(1), WAIT_S * 1000)) for _ in range(2)]
    async with asyncio.timeout(WAIT_S):
        await taken.wait()
        yield caller, calls
        await caller.close()
    server.close()
    await server.wait_closed()


def test_who_waits_for_a_connection_of_a_caller_that_is_closed_is_told_so_and_not_cancelled() -> None:
    async def main() -> None:
        async with connecting() as (caller, calls):
            await caller.close()
            for call in calls:
                with pytest.raises(ConnectionLost, match="the caller is closed"):
                    await call

    asyncio.run(main())


def test_who_is_cancelled_himself_hears_of_that() -> None:
    async def main() -> None:
        async with connecting() as (caller, (cancelled, other)):
            cancelled.cancel()
            await caller.close()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            with pytest.raises(ConnectionLost):
                await other

    asyncio.run(main())


def test_of_two_who_wait_for_a_connection_one_may_give_up() -> None:
    async def main() -> None:
        async with connecting() as (caller, (cancelled, other)):
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert not other.done()
            await caller.close()
            with pytest.raises(ConnectionLost):
                await other

    asyncio.run(main())
