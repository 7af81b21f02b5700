"""Link: a `Peer` on a socket.  Servers and clients use the same one.

The link moves bytes, hands requests to its `Service` and resolves calls.  A server's link serves nothing while the
other side does not read, or has as much under way as one connection may have: a slow or greedy client costs its own
connection and nothing else.  A caller's link always reads, or two sides with much to say would wait for each other for
ever.
"""

import asyncio
import ipaddress
import logging
import struct
from typing import cast

from bolide.model.errors import BolideError, CallTimeout, ConnectionLost, ProtocolError
from bolide.model.limits import IN_FLIGHT_OF_ONE_MAX, REQUESTS_PER_TURN, WRITE_BUFFER_BYTES_MAX
from bolide.net.commons import Commons
from bolide.net.outbox import Outbox
from bolide.net.round import MANY_BYTES
from bolide.net.service import HotService, Service
from bolide.wire.command import Command, encode_frame, encode_head
from bolide.wire.peer import Answer, Peer
from bolide.wire.pull_frame import PullFrame
from bolide.wire.send_run import SendRun

log = logging.getLogger(__name__)

BUSY_MS = 60_000
"""Who has brought a whole frame so lately is busy: clients that have nothing to say send heartbeats twice as often."""

CLOSING_S = 5.0
"""So long may what was written take to go out when the connection is to be closed."""

REQUESTS_PER_LOOK = 8
"""Sends that are not plain between two looks at the clock."""

# Why nothing is read and served at the moment; there may be several reasons.
_CONGESTED = 1  # the other side does not read
_RESTS = 2  # others have their turn
_BUSY = 4  # as many requests wait for something as one connection may have
_NO_ROOM = 8  # for a large frame
_ABORTED = 16
_HELD = 32  # what follows is not to be served before something is done


class Link(asyncio.BufferedProtocol):
    """One connection.  `remote` is `ip:port`; `remote_host` the same as record bytes (address, port).

    `account` is what the server keeps because of it: see `net/budget.py`.
    """

    def __init__(self, commons: Commons, service: Service, *, hot: HotService | None = None) -> None:
        self._commons = commons
        self._clock = commons.clock
        self._peer = Peer(commons.intake, hot=hot is not None, header_bytes_max=commons.header_bytes_max)
        self._hot = hot
        self._reader = self._peer.reader
        self._service = service
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._closing: asyncio.TimerHandle | None = None
        self._stops = 0
        self.round = commons.round
        self._late: Command | None = None  # a request that came when others had their turn
        self._in_flight = 0
        self.used_ms = self.waited_ms = 0  # see net/round.py
        self.brought_many = False
        self._going_on: asyncio.Handle | None = None
        self._drained: asyncio.Future[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.remote = ""
        self.remote_host = b""
        self.passes: dict[bytes | tuple[str, str], bool] = {}  # see net/guard.py
        self.passes_revision = 0
        self.account = commons.budget.open(self)
        self._part = 0  # the bytes of an unfinished frame, and of requests that have to wait
        self._outbox = Outbox(self.account)
        self._large = 0  # the length of a large frame that has room, or waits for it
        self._finished = False
        self._finished_ms = self._read_ms = self._clock.monotonic_ms()
        self._left_then = 0
        self._busy_until_ms = 0

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
        return bool(self._stops & _CONGESTED)

    @property
    def is_behind(self) -> bool:
        """Whether the other side is far behind in reading what it is sent, on a caller's link too."""
        return self._drained is not None

    def answer(self, answer: Command) -> None:
        """Send a response.  A link that has closed meanwhile swallows it: nobody is there to read it."""
        if not self.is_open:
            return
        if len(answer.body) > 4096:  # large bodies are not copied into the frame
            self.write_parts(encode_head(answer, len(answer.body)), answer.body)
        else:
            self.write(encode_frame(answer))

    def write(self, data: bytes) -> None:
        """Send frames that are encoded already."""
        self._outbox.write(data)

    def write_parts(self, head: bytes, body: bytes) -> None:
        """Send a frame that is encoded already and whose body had better not be copied."""
        if len(body) >= MANY_BYTES:
            self.round.was_much()
        self._outbox.write(head, body)

    def call(self, request: Command, timeout_ms: int) -> "asyncio.Future[Command]":
        """Send a request; the future gives its answer, `CallTimeout` or `ConnectionLost`."""
        future: asyncio.Future[Command] = self._loop.create_future()
        if not self.is_open:
            future.set_exception(ConnectionLost(f"the connection to {self.remote} is closed"))
            return future
        now_ms = self._clock.monotonic_ms()
        deadline_ms = now_ms + timeout_ms
        try:
            frame = self._peer.call(request, deadline_ms, future, now_ms)
        except ProtocolError as error:
            future.set_exception(error)
            return future
        self.write(frame)
        self._arm(deadline_ms)
        return future

    async def drained(self) -> None:
        """Wait while the other side is far behind in reading: nothing else holds up who never waits for answers."""
        while self._drained is not None:
            await asyncio.shield(self._drained)

    def notify(self, request: Command) -> None:
        """Send a one-way request."""
        if self.is_open:
            self.write(self._peer.notify(request))

    def close(self) -> None:
        """Close after what was written has gone out, but wait for nobody who does not read it."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            self._outbox.release()
            transport.close()
            if transport.get_write_buffer_size():
                self._closing = self._loop.call_later(CLOSING_S, self.abort)

    def abort(self) -> None:
        """Close at once, whatever was not read."""
        self._stops |= _ABORTED
        if self._transport is not None:
            self._outbox.release()  # what was written before goes as far as it goes
            self._transport.abort()

    def began(self, request: Command) -> None:
        """A request waits for something; one connection can have so many of them."""
        self.account.charge(request.frame_bytes)
        self._in_flight += 1
        if self._in_flight >= IN_FLIGHT_OF_ONE_MAX:
            self._stop(_BUSY)

    def ended(self, request: Command) -> None:
        """It waits no more."""
        self.account.release(request.frame_bytes)
        self._in_flight -= 1
        if self._stops & _BUSY and self._in_flight <= IN_FLIGHT_OF_ONE_MAX // 2:
            self._start(_BUSY)

    def hold(self) -> None:
        """Serve nothing that has come behind the request that is being served, until `let_on`."""
        self._stop(_HELD)

    def let_on(self) -> None:
        self._start(_HELD)

    # ---- what the server asks now and then -----------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether it has brought a whole frame lately."""
        return self._finished or self._clock.monotonic_ms() < self._busy_until_ms

    def idle_ms(self, now_ms: int) -> int:
        """For how long it has brought no whole frame, or has read nothing of what waits for it.

        For whoever asks regularly: the clock is read here and not at every read.
        """
        if self._finished:
            self._finished = False
            self._finished_ms = now_ms
            self._busy_until_ms = now_ms + BUSY_MS
        left = self._left()
        self._outbox.unread.recount(left)
        if not left or left < self._left_then:
            self._read_ms = now_ms
        self._left_then = left
        return now_ms - min(self._finished_ms, self._read_ms)

    # ---- what the transport does ---------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = self._outbox.transport = cast(asyncio.Transport, transport)
        if self._stops & _ABORTED:  # given up before anybody was there
            self._transport.abort()
            return
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
        self.waited_ms = 0
        self._reader.received(nbytes)
        self.brought_many = nbytes >= MANY_BYTES and self._commons.serves
        self._serve()
        if self.brought_many:
            self._rest(0)

    def _serve(self) -> None:
        """Take what has been received, as long as nothing speaks against it, and not too much at once."""
        left: int = REQUESTS_PER_TURN
        began_ms = 0
        self._outbox.hold()
        try:
            reader, round_ = self._reader, self.round
            if self._late is not None and not self._stops:
                began_ms, late, self._late = round_.begin(), self._late, None
                self._service.on_request(self, late)
                left = left - 1 if round_.goes_on() else 0
            while reader.at < reader.end and not self._stops and left > 0:
                if round_.is_over and reader.end == reader.large_bytes:
                    left = 0  # a large frame is much even where it is a plain send
                    break
                # It scans a run of sends before anybody knows of it, and that counts, too.
                since_ms = began_ms or (0 if self._hot is None else round_.look())
                item = self._peer.next()
                if item is None:
                    break
                self._finished = True
                if type(item) is SendRun:
                    assert self._hot is not None
                    requests_max = min(left, 1 if round_.is_over else REQUESTS_PER_LOOK)
                    requests = self._serve_run(self._hot, item, requests_max)
                    if requests or self._large:
                        began_ms = round_.began(since_ms)
                        left = left - requests if round_.goes_on() else 0
                elif type(item) is Command:
                    if round_.is_over:
                        self._late, left = item, 0
                        break
                    began_ms = began_ms or round_.begin()
                    self._service.on_request(self, item)
                    left = left - 1 if round_.goes_on() else 0
                elif type(item) is PullFrame:
                    assert self._hot is not None
                    if round_.is_over:
                        reader.give_back_pull(item)
                        left = 0
                        break
                    began_ms = since_ms
                    self._hot.on_pull(self, item)
                    left = left - 1 if round_.goes_on_after_little() else 0
                else:
                    assert isinstance(item, Answer)
                    if item.token is None:  # nobody asked for it, or waits for it any more
                        began_ms = began_ms or round_.look()
                        left = left - 1 if round_.goes_on_after_little() else 0
                    elif not item.token.done():
                        item.token.set_result(item.command)
            self._outbox.release()
            if left <= 0:
                self._rest(round_.look() - began_ms if began_ms else 0)
            elif began_ms:
                round_.charge(self, round_.now_ms - began_ms)
            if self._stops:
                reader.set_aside()
            if reader.kept != self._part or reader.large_bytes != self._large or self._late is not None:
                self._count_part()
        except BolideError as error:
            self._commons.provoked.say(
                log, logging.WARNING, self.remote, "closing the connection of %s: %s", self.remote, error
            )
            self.abort()
        except Exception:  # it would stay open and never be read from again
            log.exception("closing the connection of %s after an unforeseen error", self.remote)
            self.abort()

    def _serve_run(self, hot: HotService, run: SendRun, requests_max: int) -> int:
        """Sends, and the ends of transactions that came before the first one that is not served; how many requests."""
        row, requests = hot.on_sends(self, run, requests_max) if run.count else (0, 0)
        if run.end_count and (ends := run.ends_before(row)):
            requests += hot.on_ends(self, run, ends)
        if row < run.count:
            self._reader.give_back(run, row)
        return requests

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = self._outbox.transport = None
        self._stops |= _ABORTED
        self._reader.close()
        self.account.settle()
        if self._large:
            self._commons.large_frames.leave(self)
        self._tell_drained()
        for timer in (self._timer, self._closing):
            if timer is not None:
                timer.cancel()
        for future in self._peer.lost():
            if not future.done():
                future.set_exception(
                    ConnectionLost(f"the connection to {self.remote} {self._how_it_ended()}")
                )
        self._service.on_close(self)

    def _how_it_ended(self) -> str:
        return "was lost"

    # ---- stopping and going on -----------------------------------------------------------------------------

    def _stop(self, reason: int) -> None:
        """Neither read nor serve; what was received and not served waits."""
        self._stops |= reason
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def _start(self, reason: int) -> None:
        self._stops &= ~reason
        if not self._stops and self._going_on is None:
            self._going_on = self._loop.call_soon(self._go_on)

    def _rest(self, used_ms: int) -> None:
        """Let others have their turn."""
        if not self._stops & _RESTS:
            self._stop(_RESTS)
            self.round.wait(self, used_ms)

    def rested(self) -> None:
        """It is its turn again."""
        self._stops &= ~_RESTS
        self.brought_many = False
        self._go_on()

    def _go_on(self) -> None:
        """Serve what was set aside, then read again."""
        self._going_on = None
        if self._may_read():
            self._reader.writable()
            self._reader.received(0)
            self._serve()
        if self._may_read() and self._transport is not None:  # serving may have changed it
            self._transport.resume_reading()

    def _may_read(self) -> bool:
        return not self._stops and self.is_open

    def pause_writing(self) -> None:
        if self._drained is None:
            self._drained = self._loop.create_future()
        if self._commons.serves:
            self._stop(_CONGESTED)

    def resume_writing(self) -> None:
        self._tell_drained()
        self.recount()
        if self._stops & _CONGESTED:
            self._start(_CONGESTED)

    def _tell_drained(self) -> None:
        drained, self._drained = self._drained, None
        if drained is not None:
            drained.set_result(None)

    # ---- what is kept for it -------------------------------------------------------------------------------

    @property
    def received_bytes(self) -> int:
        """How much of a large frame has come."""
        return self._reader.end

    @property
    def waits_for_others(self) -> bool:
        return bool(self._stops & _RESTS)

    @property
    def is_stopped(self) -> bool:
        return self._stops != 0

    def has_room(self) -> None:
        """A large frame has waited for this."""
        self._set_part(0)
        self._start(_NO_ROOM)

    def recount(self) -> None:
        """Release answers that were read."""
        self._outbox.unread.recount(self._left())

    def _left(self) -> int:
        """What the socket has not taken of what was written."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def _count_part(self) -> None:
        """A frame has begun, or is whole.  A large one is charged as such, once it has room."""
        large = self._reader.large_bytes
        if large != self._large:
            if self._large:
                self._commons.large_frames.leave(self)
            self._large = large
            if large and not self._commons.large_frames.ask(self, large):
                self._stop(_NO_ROOM)
        part = 0 if large and not self._stops & _NO_ROOM else self._reader.kept
        self._set_part(part if self._late is None else part + self._late.frame_bytes)

    def _set_part(self, size: int) -> None:
        more, self._part = size - self._part, size
        if more > 0:
            self.account.charge(more)
        elif more < 0:
            self.account.release(-more)

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
        late_ms = now_ms - self._timer_ms
        for future, timeout_ms in self._peer.expire(now_ms):
            if not future.done():
                future.set_exception(CallTimeout(f"no answer from {self.remote} within {timeout_ms} ms"))
        self._judge(now_ms, late_ms)
        deadline_ms = self._peer.next_deadline_ms()
        if deadline_ms is not None:
            self._arm(deadline_ms)

    def _judge(self, now_ms: int, late_ms: int) -> None:
        """Calls have expired, `late_ms` after their deadline: is the other side still there?  A server does not ask."""


def encode_host(host: str, port: int) -> bytes:
    """An address as records store it: 4 or 16 bytes, then the port in 4."""
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).packed + struct.pack(">i", port)
