"""Caller: outgoing connections by address, made when needed and shared by all calls to that address."""

import asyncio
import os
import ssl
from collections.abc import Callable, Collection
from typing import Any

from bolide.model.addresses import parse_address
from bolide.model.clock import Clock
from bolide.model.errors import ConnectionLost
from bolide.net.caller_link import CallerLink, Escort
from bolide.net.commons import Commons
from bolide.net.link import Link
from bolide.net.tls import failure
from bolide.wire.command import Command

CONNECT_TIMEOUT_MS = 3_000
FAREWELL_S = 1.0
"""How long the other side of an encrypted connection may take to say that it has heard of its end."""

HANDSHAKE_ERRORS = (ssl.SSLError, ConnectionResetError, ConnectionAbortedError)


class Caller:
    """Calls servers.  Requests that servers send back on these connections go to `on_request`; `escort` sees those that
    go out.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        on_request: Callable[[Link, Command], None] | None = None,
        on_close: Callable[[str], None] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.escort: Escort | None = None
        self._tls = tls
        self._handle = on_request
        self._closed = on_close
        self._commons = Commons(clock, serves=False)
        self._links: dict[str, asyncio.Future[Link]] = {}
        self._addresses: dict[Link, str] = {}
        self._is_closed = False
        self._last_closed: asyncio.Future[None] | None = None

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
            raise _closed(address)
        attempt = self._links.get(address)
        if attempt is None or (attempt.done() and not _is_open(attempt)):
            attempt = asyncio.ensure_future(self._connect(address))
            self._links[address] = attempt
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if attempt.cancelled() and task is not None and not task.cancelling():
                raise _closed(address) from None  # by `close`; nobody has cancelled who waits here
            raise

    def open_links(self, addresses: Collection[str]) -> dict[str, Link]:
        """Connections that are there, to some of these addresses."""
        found = ((address, self._links.get(address)) for address in addresses)
        return {
            address: attempt.result()
            for address, attempt in found
            if attempt is not None and attempt.done() and _is_open(attempt)
        }

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
        """Close every connection, and wait until they are; none is made any more."""
        self._is_closed = True
        for attempt in list(self._links.values()):
            if not attempt.done():
                attempt.cancel()
            elif _is_open(attempt):
                attempt.result().close()
        await asyncio.gather(*self._links.values(), return_exceptions=True)
        self._links.clear()
        while self._addresses:
            self._last_closed = self._last_closed or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._last_closed)

    def abort(self) -> None:
        """Give up every connection at once, whatever was not read; none is made any more."""
        self._is_closed = True
        for attempt in self._links.values():
            attempt.cancel()
        for link in list(self._addresses):
            link.abort()

    async def _connect(self, address: str) -> Link:
        host, port = parse_address(address)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_MS / 1000):
                _, link = await loop.create_connection(
                    lambda: CallerLink(self._commons, self, address), host, port, **self._security(host)
                )
        except TimeoutError as error:
            raise ConnectionLost(f"{address} did not accept a connection in time") from error
        except OSError as error:
            if self._tls is not None and isinstance(error, HANDSHAKE_ERRORS):
                raise failure(address, error) from error
            raise ConnectionLost(f"cannot connect to {address}: {_reason(error)}") from error
        if link.is_open:  # else nobody would hear of its end any more
            self._addresses[link] = address
        return link

    def _security(self, host: str) -> dict[str, Any]:
        if self._tls is None:
            return {}
        return {"ssl": self._tls, "server_hostname": host, "ssl_shutdown_timeout": FAREWELL_S}

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
        if self._last_closed is not None and not self._addresses:
            self._last_closed.set_result(None)
            self._last_closed = None


def _closed(address: str) -> ConnectionLost:
    return ConnectionLost(f"no call to {address}: the caller is closed")


def _reason(error: OSError) -> str:
    """The system's own words; asyncio puts "Connect call failed" with the address in their place."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def _is_open(attempt: "asyncio.Future[Link]") -> bool:
    return not attempt.cancelled() and attempt.exception() is None and attempt.result().is_open
