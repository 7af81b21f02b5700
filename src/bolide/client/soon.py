"""Soon: sends what `send_soon` has collected, on the event loop.

Each lane (`gather.py`) has as many requests under way as it may use queues: one, where messages go to a certain queue
and keep their order; one for each queue of the topic, where they go to any.  A batch goes when it is full, when it has
waited its time, or when a request of its lane has come back: then there is nothing to wait for.  So few messages go
soon, and many go in large batches.  A request that takes much longer than most holds up nobody: its broker may be
silent, and the next batch goes to another.

Messages are given in any thread, and everything else is done on the loop.
"""

import asyncio
import contextlib
import logging
import math
import os
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol
from weakref import WeakSet

from bolide.client import checks
from bolide.client.gather import Batch, Lane, Lanes, Pool, SendFuture, SendReceipt
from bolide.client.gather_twin import Callback
from bolide.client.instance import ClientInstance
from bolide.client.outgoing import Outgoing, prepare
from bolide.client.rounds import saying_if_slow, wait_at_most
from bolide.client.selectors import SELECTOR_TAKES, Selector, selected
from bolide.client.sending import Sending
from bolide.model.errors import (
    BolideError,
    CallTimeout,
    ClientError,
    ClientNotRunning,
    InvalidRequest,
    NoRoom,
    ProtocolError,
)
from bolide.model.limits import (
    SOON_BATCH_BYTES_MAX,
    SOON_BATCH_MESSAGES_MAX,
    SOON_BYTES_MAX,
    SOON_MESSAGES_MAX,
)
from bolide.model.message import Message, Property
from bolide.model.offsets import MessageQueue
from bolide.net.tasks import Tasks
from bolide.rules.choose import hashed

log = logging.getLogger(__name__)

LINGER_MS = 5
LINGER_MS_MAX = 60_000
REQUESTS_MAX = 16
"""Of one topic at once, however many queues it has."""

HELD_UP_MS = 100
"""Longer than most requests take: a batch waits no longer for one that was sent before it, if it can go elsewhere."""

OUTCOME_MS_MAX = 120_000
"""However well a lane goes on: what has waited so long in it fails, unless a send may take longer."""

SendOne = Callable[[Message, MessageQueue | None], Awaitable[SendReceipt]]


def check_callback(callback: object) -> None:
    """Said to whoever gives it: later there would be nobody but the log."""
    if not callable(callback):
        checks.function("callback", callback, "a receipt and an error, one of them None", InvalidRequest)


class Shell(Protocol):
    """What differs between a producer of an event loop and one of threads."""

    @property
    def guard(self) -> AbstractContextManager[Any]:
        """Held while a batch is changed."""

    def wait(self, batch: Batch, timeout_ms: int | None) -> None: ...

    def wait_for(self, batch: Batch) -> Generator[Any, None, None]: ...

    def on_loop(self, work: Callable[[Lane], None], lane: Lane) -> None:
        """Have it done on the loop, whatever thread this is."""
        ...


class _Way:
    """A lane, and what is under way of it."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.width = 1
        self.sending: dict[Batch, _Trip] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.acknowledged_ms = 0  # when something of it was stored last

    def expected_s(self) -> float:
        """How long the next batch waits for the requests that are under way; 0 if most would have come back by now."""
        began_s = max((trip.began_s for trip in self.sending.values()), default=-math.inf)
        return max(0, began_s + HELD_UP_MS / 1000 - asyncio.get_running_loop().time())

    def is_held_up_by(self, broker_name: str) -> bool:
        """Whether this broker has left a request unanswered for longer than most take."""
        late_s = asyncio.get_running_loop().time() - HELD_UP_MS / 1000
        return any(
            trip.broker_name == broker_name and trip.began_s <= late_s for trip in self.sending.values()
        )


class _Trip:
    """A request that is under way: since when, and to which broker."""

    def __init__(self, way: _Way) -> None:
        self._way = way
        self.broker_name = ""
        self.began_s = asyncio.get_running_loop().time()

    def likes(self, broker_name: str) -> bool:
        return not self._way.is_held_up_by(broker_name)

    def goes_to(self, broker_name: str) -> None:
        self.broker_name = broker_name
        self.began_s = asyncio.get_running_loop().time()


class Soon:
    """One producer's lanes.

    Args:
        instance: the client.
        sending: the way to the brokers.
        send_one: sends a message that cannot be part of a batch.
        shell: the kind of producer.
        linger_ms: how long a batch waits for more messages.
        body_below: bodies of this size or more are sent alone.
    """

    def __init__(
        self,
        instance: ClientInstance,
        sending: Sending,
        send_one: SendOne,
        shell: Shell,
        *,
        linger_ms: int,
        body_below: int,
    ) -> None:
        self._clock = instance.clock
        self.pool = Pool(instance.next_head, self._clock.monotonic_ms, SOON_MESSAGES_MAX, SOON_BYTES_MAX)
        self.shell = shell
        self.lanes = Lanes(self.pool)
        """Those in use, for whoever gives messages; none before the start and after the end."""
        self._instance = instance
        self._sending = sending
        self._send_one = send_one
        self._linger_ms = linger_ms
        self._body_below = body_below
        self._ways: dict[Lane, _Way] = {}
        self._tasks = Tasks()
        self._room = asyncio.Event()
        self._is_closed = False
        _collecting.add(self)

    # ---- giving messages -----------------------------------------------------------------------------------

    async def lane_for(self, message: Message, queue: MessageQueue | None, selector: Selector | None) -> Lane:
        """Where a message goes; says what is wrong with it if it can go nowhere."""
        self._instance.check_running()
        outgoing = prepare(message, "")
        topic, key = outgoing.topic, outgoing.sharding_key
        if selector is not None:
            if queue is not None:
                raise InvalidRequest("a send takes a queue or a selector, not both")
            checks.function("selector", selector, SELECTOR_TAKES, InvalidRequest)
            queue = selected(selector, message, await self._sending.queues(topic))
        elif queue is None and key is not None:
            queue = hashed(key, await self._sending.queues(topic))
        elif queue is not None and checks.queue(queue).topic != topic:
            raise InvalidRequest(f"{queue} is no queue of {topic!r}, where the message goes")
        return self._lane(topic, queue)

    def known_lane(self, message: Message, queue: MessageQueue | None) -> Lane | None:
        """The same if everything is known that says so; any thread may ask."""
        if type(message) is not Message or type(message.properties) is not dict:
            return None
        if queue is None:
            key = message.sharding_key
            if key is None:  # of a message that is forwarded it is among the properties
                key = message.properties.get(Property.SHARDING_KEY)
            if key is None:
                return self.lanes.get(message.topic)
            queues = self._sending.known_queues(message.topic)
            if not queues or type(key) is not str or not key:
                return None
            queue = hashed(key, queues)
        return self.lanes.get(queue) if type(queue) is MessageQueue else None

    def give(self, lane: Lane, message: Message, callback: Callback | None) -> SendFuture:
        """Put it into a batch, or behind the others of its lane if it cannot be part of one."""
        future = lane.add(message, callback)
        if future is None:
            outgoing = prepare(message, "")  # what is wrong with it is said now
            future = lane.add_alone(message, len(outgoing.body) + len(outgoing.properties), callback)
        return future

    def _lane(self, topic: str, queue: MessageQueue | None) -> Lane:
        place = topic if queue is None else queue
        lane = self.lanes.get(place)
        if lane is None:
            lane = Lane(
                topic,
                queue,
                self.pool,
                self.shell,
                lambda lane: self.shell.on_loop(self._woken, lane),
                self.shell.guard,
                body_below=self._body_below,
                batch_bytes_max=SOON_BATCH_BYTES_MAX,
                batch_messages_max=SOON_BATCH_MESSAGES_MAX,
            )
            lane = self.lanes.setdefault(place, lane)
        return lane

    async def room(self) -> None:
        """Until there is room for more messages; `NoRoom` when there is none within the time of a send."""
        timeout_ms = self._sending.time(None)
        if self.pool.is_full:
            self._room.clear()
            if not await wait_at_most(self._room, timeout_ms):
                raise NoRoom(
                    f"{self.pool.messages} messages wait to be sent, and there was no room for another within"
                    f" {timeout_ms} ms: the brokers take them more slowly than they come"
                )

    async def flush(self, timeout_ms: int | None = None) -> None:
        """Send what was given, and wait for its outcome; `CallTimeout` when some of it has none in time."""
        if timeout_ms is None:
            await self._flush()
            return
        try:
            async with asyncio.timeout(self._sending.time(timeout_ms) / 1000):
                await self._flush()
        except TimeoutError:
            raise CallTimeout(
                f"{self.pool.messages} messages of send_soon were not acknowledged within {timeout_ms} ms;"
                " they are still being sent"
            ) from None

    async def _flush(self) -> None:
        await _all_done(self._cut())

    def _cut(self) -> list[Batch]:
        """All that has no outcome yet, on its way or next in its lane."""
        batches: list[Batch] = []
        for lane in list(self.lanes.values()):
            way = self._way(lane)
            batches += (*way.sending, *lane.cut())
            self._go(way)
        return batches

    async def at_exit(self) -> int:
        """Send what was given while the program ends; how many of its messages nobody has acknowledged in time."""
        batches = self._cut()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.time_ms / 1000):
                await _all_done(batches)
        return sum(batch.count for batch in batches if not batch.is_done or batch.error is not None)

    @property
    def time_ms(self) -> int:
        """How long a send may take."""
        return self._sending.time(None)

    async def close(self, timeout_ms: int) -> None:
        """Send what was given; what is not stored in time fails."""

        def what() -> str:
            count = self.pool.messages
            return f"{count} messages of send_soon to be acknowledged, for {timeout_ms / 1000:g} s at most"

        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await saying_if_slow(self._flush(), what)
        except TimeoutError:
            log.warning(
                "%d messages of send_soon were not acknowledged within %g s: they fail",
                *(self.pool.messages, timeout_ms / 1000),
            )
        finally:
            self._is_closed = True
            self.lanes.clear()
            try:
                await self._tasks.close()
            finally:
                self._give_up_all()

    def _give_up_all(self) -> None:
        for way in self._ways.values():
            if way.timer is not None:
                way.timer.cancel()
            for batch in way.sending:  # a task that ends before its first step has failed nothing
                batch.failed(_closed())
            way.sending.clear()
            _give_up(way.lane)

    # ---- sending -------------------------------------------------------------------------------------------

    def _way(self, lane: Lane) -> _Way:
        way = self._ways.get(lane)
        if way is None:
            way = self._ways[lane] = _Way(lane)
        return way

    def _woken(self, lane: Lane) -> None:
        if self._is_closed:  # somebody had the lane in hand when it was
            _give_up(lane)
            return
        way = self._way(lane)
        if lane.has_full:
            self._go(way)
        self._wait_for_more(way, self._linger_ms / 1000)

    def _wait_for_more(self, way: _Way, time_s: float) -> None:
        may_go_beside = not way.sending or way.lane.queue is None
        if may_go_beside and way.timer is None and not way.lane.is_empty:
            way.timer = asyncio.get_running_loop().call_later(time_s, self._waited, way)

    def _waited(self, way: _Way) -> None:
        way.timer = None
        self._widen(way)
        expected_s = way.expected_s()
        if not expected_s:
            self._go(way, also_open=True)
        self._wait_for_more(way, expected_s or HELD_UP_MS / 1000)

    def _go(self, way: _Way, *, also_open: bool = False) -> None:
        if also_open and way.timer is not None:  # what it was set for goes, or with the next that comes back
            way.timer.cancel()
            way.timer = None
        while len(way.sending) < way.width and not self._is_closed:
            batch = way.lane.take(also_open=also_open)
            if batch is None:
                break
            trip = way.sending[batch] = _Trip(way)
            self._tasks.start(self._send(way, batch, trip), f"send_soon to {way.lane.topic}")

    async def _send(self, way: _Way, batch: Batch, trip: _Trip) -> None:
        try:
            await self._store(way, batch, trip)
        except BolideError as error:
            batch.failed(error)
        except asyncio.CancelledError:
            batch.failed(_closed())
            raise
        except Exception as error:  # its senders wait for an outcome, and the log has the trace
            batch.failed(ClientError(f"an unforeseen error, a fault in bolide: {error!r}"))
            raise
        finally:
            way.sending.pop(batch, None)
            if not self.pool.is_full:
                self._room.set()
            self._go(way, also_open=True)

    async def _store(self, way: _Way, batch: Batch, trip: _Trip) -> None:
        if self._is_late(way, batch):
            raise CallTimeout(
                f"the message to {batch.topic} has waited {self._clock.monotonic_ms() - batch.born_ms} ms for those"
                " before it: the brokers take them more slowly than they come, or not at all"
            )
        self._widen(way)
        if batch.alone is not None:
            batch.stored_alone(await self._send_one(batch.alone, batch.queue))
        else:
            outgoing = Outgoing(batch.topic, (), batch.body(), "", 0, 0, batch=True)
            stored = await self._sending.acknowledged(outgoing, queue=batch.queue, course=trip)
            offset_ids = stored.header.msg_id
            if (count := offset_ids.count(",") + 1) != batch.count:
                raise ProtocolError(f"{batch.count} messages sent, {count} acknowledged")
            batch.stored(stored.queue, stored.status, stored.header.queue_offset, offset_ids)
        way.acknowledged_ms = self._clock.monotonic_ms()
        self._widen(way)

    def _is_late(self, way: _Way, batch: Batch) -> bool:
        """Whether it has waited too long for those before it to be sent still.

        As long as something of its lane was acknowledged within the time of a send it may wait, because brokers that
        are busy lose nothing.  Where nothing is, all that have waited as long fail together, and not each after a time
        of its own.  What is sent has the whole time of a send: a request with less would end connections that are well.
        """
        send_ms = self._sending.time(None)
        given_ms = batch.born_ms + self._linger_ms
        end_ms = min(max(given_ms, way.acknowledged_ms) + send_ms, given_ms + max(send_ms, OUTCOME_MS_MAX))
        return self._clock.monotonic_ms() > end_ms

    def _widen(self, way: _Way) -> None:
        if way.lane.queue is None:
            known = len(self._sending.known_queues(way.lane.topic))
            way.width = max(1, min(known, REQUESTS_MAX))


_collecting: WeakSet[Soon] = WeakSet()


def _forget_lanes() -> None:
    """In a process that is forked nobody would send what is given to it: whoever tries hears of that."""
    for soon in list(_collecting):
        soon.lanes.clear()


os.register_at_fork(after_in_child=_forget_lanes)


async def _all_done(batches: Sequence[Batch]) -> None:
    for batch in batches:
        if not batch.is_done:
            done = asyncio.Event()
            batch.when_done(done.set)
            await done.wait()


def _closed() -> ClientNotRunning:
    return ClientNotRunning("the producer was closed before the message was acknowledged")


def _give_up(lane: Lane) -> None:
    while (batch := lane.take(also_open=True)) is not None:
        batch.failed(_closed())
