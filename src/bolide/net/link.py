"""Link: a `Peer` on a socket.  Servers and clients use the same one.

The link moves bytes, hands requests to its `Service` and resolves calls.  A server's link serves nothing while the
other side does not read: a slow reader costs its own connection and nothing else.  A caller's link always reads, or
two sides with much to say would wait for each other for ever.
"""

import asyncio
import ipaddress
import logging
import struct
from typing import Protocol, cast

from bolide.model.clock import Clock
from bolide.model.errors import BolideError, CallTimeout, ConnectionLost, ProtocolError
from bolide.wire.command import Command, encode_frame, encode_head
from bolide.wire.frame import Intake
from bolide.wire.peer import Answer, Peer
from bolide.wire.pull_frame import PullFrame
from bolide.wire.send_run import SendRun

log = logging.getLogger(__name__)

SILENT_MS = 3_000
"""When a call has timed out and nothing at all has come for so long, the connection is given up."""

WRITE_BUFFER_BYTES_MAX = 4 * 1024 * 1024
"""Above this the link stops reading requests until the other side has read answers."""


REQUESTS_PER_TURN = 64
"""Requests of one connection that are served one by one before others have their turn; a socket read may bring twenty
times as many."""


APART_BYTES = 1024 * 1024
"""A body of this length goes out after its head instead of with it: to be joined it would be copied."""


class Service(Protocol):
    """What a link serves."""

    def on_open(self, link: "Link") -> None: ...

    def on_request(self, link: "Link", request: Command) -> None: ...

    def on_close(self, link: "Link") -> None: ...


class HotService(Protocol):
    """What takes plain sends and pulls without a `Command` for each."""

    def on_sends(self, link: "Link", run: SendRun, requests_max: int) -> tuple[int, int]:
        """Serve rows from the first on; those that are not plain are requests, and count.

        Gives the first row that was not served because there were too many of them, and how many there were.
        """
        ...

    def on_pull(self, link: "Link", pull: PullFrame) -> None: ...


class Link(asyncio.BufferedProtocol):
    """One connection.  `remote` is `ip:port`; `remote_host` the same as record bytes (address, port)."""

    def __init__(
        self,
        intake: Intake,
        service: Service,
        clock: Clock,
        *,
        hot: HotService | None = None,
        serves: bool = False,
    ) -> None:
        self._peer = Peer(intake, hot=hot is not None)
        self._hot = hot
        self._reader = self._peer.reader
        self._service = service
        self._clock = clock
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._serves = serves
        self._congested = False
        self._rests = False  # others have their turn
        self._going_on: asyncio.Handle | None = None
        self._drained: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.remote = ""
        self.remote_host = b""
        self.passes: dict[bytes | tuple[str, str], bool] = {}  # see net/guard.py
        self.passes_revision = 0
        self._heard = False
        self._heard_ms = clock.monotonic_ms()

    # ---- what users of a link do ---------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def descriptor(self) -> int:
        """The number of its socket; -1 when it has none any more."""
        transport = self._transport
        return -1 if transport is None else int(transport.get_extra_info("socket").fileno())

    @property
    def is_congested(self) -> bool:
        """Whether the other side is far behind in reading; large answers had better wait."""
        return self._congested

    @property
    def is_behind(self) -> bool:
        """Whether the other side is far behind in reading what it is sent, on a caller's link too."""
        return self._drained is not None

    def silent_ms(self, now_ms: int) -> int:
        """For how long nothing was received, to whoever asks regularly: the clock is read here, not at every read."""
        if self._heard:
            self._heard = False
            self._heard_ms = now_ms
        return now_ms - self._heard_ms

    def answer(self, answer: Command) -> None:
        """Send a response.  A link that has closed meanwhile swallows it: nobody is there to read it."""
        if self.is_open:
            assert self._transport is not None
            if len(answer.body) > 4096:  # large bodies are not copied into the frame
                self.write_parts(encode_head(answer, len(answer.body)), answer.body)
            else:
                self._transport.write(encode_frame(answer))

    def write(self, data: bytes) -> None:
        """Send frames that are encoded already."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.write(data)

    def write_parts(self, head: bytes, body: bytes) -> None:
        """Send a frame that is encoded already and whose body had better not be copied."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if len(body) < APART_BYTES:
            transport.writelines((head, body))
        else:
            transport.write(head)
            transport.write(
                memoryview(body)
            )  # of bytes, what the socket does not take at once would be copied twice

    def call(self, request: Command, timeout_ms: int) -> "asyncio.Future[Command]":
        """Send a request; the future gives its answer, `CallTimeout` or `ConnectionLost`."""
        future: asyncio.Future[Command] = self._loop.create_future()
        if not self.is_open:
            future.set_exception(ConnectionLost(f"the connection to {self.remote} is closed"))
            return future
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        try:
            frame = self._peer.call(request, deadline_ms, future)
        except ProtocolError as error:
            future.set_exception(error)
            return future
        assert self._transport is not None
        self._transport.write(frame)
        self._arm(deadline_ms)
        return future

    async def drained(self) -> None:
        """Wait while the other side is far behind in reading: nothing else holds up who never waits for answers."""
        while self._drained is not None:
            await asyncio.shield(self._drained)

    def notify(self, request: Command) -> None:
        """Send a one-way request."""
        if self.is_open:
            assert self._transport is not None
            self._transport.write(self._peer.notify(request))

    def close(self) -> None:
        """Close after what was written has gone out."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once, whatever was not read."""
        if self._transport is not None:
            self._transport.abort()

    # ---- what the transport does ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES_MAX)
        peername = transport.get_extra_info("peername")
        if peername:
            host, port = peername[0], peername[1]
            self.remote = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            self.remote_host = encode_host(host, port)
        self._service.on_open(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.writable()

    def buffer_updated(self, nbytes: int) -> None:
        self._heard = True
        self._reader.received(nbytes)
        self._serve()

    def _serve(self) -> None:
        """Take what has been received, as long as the other side reads what it gets, and not too much at once."""
        left = REQUESTS_PER_TURN
        try:
            reader = self._reader
            while reader.at < reader.end and not self._congested:
                if left <= 0:
                    self._rest()
                    break
                item = self._peer.next()
                if item is None:
                    break
                if type(item) is SendRun:
                    assert self._hot is not None
                    row, requests = self._hot.on_sends(self, item, left)
                    left -= requests
                    if row < item.count:
                        reader.give_back(item, row)
                elif type(item) is Command:
                    self._service.on_request(self, item)
                    left -= 1
                elif type(item) is PullFrame:
                    assert self._hot is not None
                    self._hot.on_pull(self, item)
                    left -= 1
                else:
                    assert isinstance(item, Answer)
                    if not item.token.done():
                        item.token.set_result(item.command)
            if self._congested or self._rests:
                reader.set_aside()
        except BolideError as error:
            log.warning("closing the connection of %s: %s", self.remote, error)
            self.abort()
        except Exception:  # it would stay open and never be read from again
            log.exception("closing the connection of %s after an unforeseen error", self.remote)
            self.abort()

    def _rest(self) -> None:
        """Let others have their turn; what was received and not served waits for the next one."""
        if self._transport is not None and not self._transport.is_closing():
            self._rests = True
            self._transport.pause_reading()
            self._go_on_soon()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        if self._drained is None:
            self._drained = self._loop.create_future()
        if self._serves:
            self._congested = True
            if self._transport is not None and not self._transport.is_closing():
                self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._tell_drained()
        if self._congested:
            self._congested = False
            self._go_on_soon()

    def _go_on_soon(self) -> None:
        if self._going_on is None:
            self._going_on = self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Serve what was set aside, then read again."""
        self._going_on = None
        self._rests = False
        transport = self._transport
        if transport is None or transport.is_closing() or self._congested:
            return
        self._reader.writable()
        self._reader.received(0)
        self._serve()
        if (
            not transport.is_closing() and not self.is_congested and not self._rests
        ):  # serving may have changed it
            transport.resume_reading()

    def _tell_drained(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None:
            drained.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._tell_drained()
        if self._timer is not None:
            self._timer.cancel()
        for future in self._peer.lost():
            if not future.done():
                future.set_exception(ConnectionLost(f"the connection to {self.remote} was lost"))
        self._service.on_close(self)

    # ---- deadlines -----------------------------------------------------------------------------------------

    def _arm(self, deadline_ms: int) -> None:
        if self._timer is not None:
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        delay_ms = max(0, deadline_ms - self._clock.monotonic_ms())
        self._timer_ms = deadline_ms
        self._timer = self._loop.call_later(delay_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now_ms = self._clock.monotonic_ms()
        unanswered = self._peer.expire(now_ms)
        for future in unanswered:
            if not future.done():
                future.set_exception(CallTimeout(f"no answer from {self.remote} in time"))
        if unanswered and self.silent_ms(now_ms) >= SILENT_MS:
            self._give_up()
        deadline_ms = self._peer.next_deadline_ms()
        if deadline_ms is not None:
            self._arm(deadline_ms)

    def _give_up(self) -> None:
        """A host that lost power, or a way that has forgotten us, says nothing for ever; a new connection may work."""
        log.info("giving up the connection to %s: calls time out and nothing comes", self.remote)
        self.abort()


def encode_host(host: str, port: int) -> bytes:
    """An address as records store it: 4 or 16 bytes, then the port in 4."""
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).packed + struct.pack(">i", port)
