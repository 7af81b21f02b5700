"""CallerLink: a caller's end of a connection.  It knows when nobody is at the other end any more.

A host that lost power, a way that has forgotten us and a process that hangs all say nothing, and no kernel tells for a
quarter of an hour.  So a connection is given up when a call on it has timed out and nothing at all was heard since the
call was sent: the next call makes a new one, and calls that still wait on it fail at once instead of one by one.

Whoever sees to requests before they go (`Escort`) sees every one here.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from bolide.model.credentials import Credentials
from bolide.model.errors import BolideError
from bolide.net.commons import Commons
from bolide.net.link import Link
from bolide.net.service import Service
from bolide.wire.command import Command
from bolide.wire.signature import sign

log = logging.getLogger(__name__)

SILENT_MS = 1_000
"""A call with a shorter deadline says too little: where there are only such, it is counted from the first of them."""

Escort = Callable[[str, Command], Callable[["asyncio.Future[Command]"], None] | None]
"""Called with an address and each request before it goes there.  It may add to the fields, and keep the request back by
raising a `BolideError`.  What it gives is called with the call that has ended; a one-way request has no end."""


def signing(credentials: Credentials | None) -> Escort | None:
    """Who signs every request, if there is anything to sign with."""
    if credentials is None:
        return None
    return lambda address, request: sign(request, credentials)


class Escorted(Service, Protocol):
    """What a caller's link belongs to."""

    escort: Escort | None


class CallerLink(Link):
    """A link to `address` that is given up when it is dead."""

    def __init__(self, commons: Commons, caller: Escorted, address: str) -> None:
        super().__init__(commons, caller)
        self._caller = caller
        self._address = address
        self._was_heard = False
        self._is_given_up = False

    def call(self, request: Command, timeout_ms: int) -> "asyncio.Future[Command]":
        escort = self._caller.escort
        if escort is None:
            return super().call(request, timeout_ms)
        try:
            after = escort(self._address, request)
        except BolideError as error:
            kept_back: asyncio.Future[Command] = self._loop.create_future()
            kept_back.set_exception(error)
            return kept_back
        future = super().call(request, timeout_ms)
        if after is not None:
            future.add_done_callback(after)
        return future

    def notify(self, request: Command) -> None:
        if self._caller.escort is not None:
            self._caller.escort(self._address, request)
        super().notify(request)

    def buffer_updated(self, nbytes: int) -> None:
        self._peer.heard()
        self._was_heard = True
        super().buffer_updated(nbytes)

    def _how_it_ended(self) -> str:
        if self._is_given_up:
            return "was given up: calls on it timed out, and nothing came"
        if self._was_heard:
            return super()._how_it_ended()
        return "was closed before it brought anything: does the server demand TLS (tls=), or speak another protocol?"

    def _judge(self, now_ms: int, late_ms: int) -> None:
        since_ms = self._peer.silent_since_ms
        if since_ms is None or now_ms - since_ms < SILENT_MS:
            return
        if late_ms >= SILENT_MS:  # this process stood still, and what came meanwhile is not read yet
            return
        log.info("giving up the connection to %s: calls time out and nothing comes", self.remote)
        self._is_given_up = True
        self.abort()
