"""Caller: outgoing connections by address, made when needed and shared by all calls to that address."""

import asyncio
import os
from collections.abc import Callable, Collection

from bolide.model.addresses import parse_address
from bolide.model.clock import Clock
from bolide.model.errors import ConnectionLost
from bolide.net.commons import Commons
from bolide.net.link import Link
from bolide.wire.command import Command

CONNECT_TIMEOUT_MS = 3_000


class Caller:
    """Calls servers.  Requests that servers send back on these connections go to `on_request`."""

    def __init__(
        self,
        clock: Clock,
        *,
        on_request: Callable[[Link, Command], None] | None = None,
        on_close: Callable[[str], None] | None = None,
    ) -> None:
        self._handle = on_request
        self._closed = on_close
        self._commons = Commons(clock, serves=False)
        self._links: dict[str, asyncio.Future[Link]] = {}
        self._addresses: dict[Link, str] = {}
        self._is_closed = False

    async def call(self, address: str, request: Command, timeout_ms: int) -> Command:
        """The answer, whatever its code; `CallTimeout` or `ConnectionLost` when there is none."""
        link = await self.link(address)
        return await link.call(request, timeout_ms)

    async def notify(self, address: str, request: Command) -> None:
        """Send a one-way request."""
        (await self.link(address)).notify(request)

    async def link(self, address: str) -> Link:
        """An open link to the address; concurrent callers share one attempt to connect."""
        if self._is_closed:
            raise ConnectionLost(f"no call to {address}: the caller is closed")
        attempt = self._links.get(address)
        if attempt is None or (attempt.done() and not _is_open(attempt)):
            attempt = asyncio.ensure_future(self._connect(address))
            self._links[address] = attempt
        return await asyncio.shield(attempt)

    def keep_only(self, addresses: Collection[str]) -> None:
        """Close the connections to all other addresses, and forget that there were any."""
        for address, attempt in list(self._links.items()):
            if (
                address not in addresses and attempt.done()
            ):  # one that is being made has somebody who waits for it
                del self._links[address]
                if _is_open(attempt):
                    attempt.result().close()

    async def close(self) -> None:
        """Close every connection; none is made any more."""
        self._is_closed = True
        for attempt in list(self._links.values()):
            if not attempt.done():
                attempt.cancel()
            elif _is_open(attempt):
                attempt.result().close()
        await asyncio.gather(*self._links.values(), return_exceptions=True)
        self._links.clear()

    async def _connect(self, address: str) -> Link:
        host, port = parse_address(address)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_MS / 1000):
                _, link = await loop.create_connection(lambda: Link(self._commons, self), host, port)
        except TimeoutError as error:
            raise ConnectionLost(f"{address} did not accept a connection in time") from error
        except OSError as error:
            raise ConnectionLost(f"cannot connect to {address}: {_reason(error)}") from error
        self._addresses[link] = address
        return link

    # ---- Service -------------------------------------------------------------------------------------------

    def on_open(self, link: Link) -> None:
        pass

    def on_request(self, link: Link, request: Command) -> None:
        if self._handle is not None:
            self._handle(link, request)

    def on_close(self, link: Link) -> None:
        address = self._addresses.pop(link, None)
        if address is not None and self._closed is not None:
            self._closed(address)


def _reason(error: OSError) -> str:
    """The system's own words; asyncio puts "Connect call failed" with the address in their place."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def _is_open(attempt: "asyncio.Future[Link]") -> bool:
    return not attempt.cancelled() and attempt.exception() is None and attempt.result().is_open
