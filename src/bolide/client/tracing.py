"""Tracer: tells of each message that a producer has stored, in messages to the topic of traces, as the original does.

Traces are collected and sent in the background.  They never hold up a send nor make it fail: when they cannot be sent
they are dropped, and the log says so now and then.  What a trace looks like is the original's text (TraceDataEncoder):
fields with U+0001 between them, and U+0002 behind each trace.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from bolide.client.gather import SendReceipt
from bolide.client.instance import ClientInstance
from bolide.client.outgoing import Outgoing, prepare
from bolide.client.rounds import Seldom
from bolide.client.sending import Sending, Stored
from bolide.model.errors import BolideError
from bolide.model.limit import KIB
from bolide.model.limits import TRACES_WAITING_MAX
from bolide.model.message import Message, Property, SysFlag, is_true
from bolide.model.names import TRACE_TOPIC
from bolide.model.pairs import parse_properties
from bolide.model.properties import SCHEDULING
from bolide.net.tasks import Tasks
from bolide.net.ticks import pause
from bolide.record.codec import split_batch

log = logging.getLogger(__name__)

FIELD_END, TRACE_END = "\x01", "\x02"
GROUP_PREFIX = "_INNER_TRACE_PRODUCER-"
NORMAL, HALF, DELAYED = "0", "1", "3"
"""Kinds of messages (RocketMQ: MessageType)."""

LINGER_S = 0.2
"""How long traces are collected before they are sent together."""

TRACES_PER_MESSAGE = 100
BODY_CHARACTERS = 100_000
KEYS_CHARACTERS = 16 * KIB
TIMEOUT_MS = 3_000
CLOSE_S = 1.0
SAY_AGAIN_MS = 60_000


class _Trace(NamedTuple):
    text: str
    keys: str


class Tracer:
    """Traces of one producer.  `start` with the client, `close` before it is closed."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._clock = instance.clock
        self._instance = instance
        self._group = group
        self._sending = Sending(instance, GROUP_PREFIX + group, timeout_ms=TIMEOUT_MS, retries=1)
        self._waiting: deque[_Trace] = deque()
        self._wake = asyncio.Event()
        self._tasks = Tasks()
        self._say = Seldom(instance.clock, SAY_AGAIN_MS)

    def start(self) -> None:
        self._tasks.start(self._run(), "traces")

    async def close(self) -> None:
        """Send what waits, but not for long."""
        await self._tasks.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._flush()
        except TimeoutError:
            self._say_dropped(len(self._waiting), "there was no time")

    def stored(self, stored: Stored) -> None:
        """A request was acknowledged."""
        if stored.header.trace_on == "false":
            return
        for trace in self._traces(stored):
            if len(self._waiting) >= TRACES_WAITING_MAX:
                self._say_dropped(1, "too many wait")
                break
            self._waiting.append(trace)
        self._wake.set()

    def _traces(self, stored: Stored) -> Iterator[_Trace]:
        outgoing = stored.outgoing
        parts = [(0, outgoing.body, outgoing.properties.encode())]
        if outgoing.batch:
            parts = list(split_batch(outgoing.body))
        for receipt, (_, body, properties) in zip(stored.receipts(), parts, strict=True):
            yield self._trace(stored, receipt, len(body), parse_properties(properties.decode()))

    def _trace(self, stored: Stored, receipt: SendReceipt, size: int, properties: dict[str, str]) -> _Trace:
        keys = properties.get(Property.KEYS, "")
        fields = (
            "Pub",
            str(self._clock.now_ms() - stored.took_ms),
            stored.header.region,
            self._group,
            stored.outgoing.topic,
            receipt.message_id,
            properties.get(Property.TAGS, ""),
            keys,
            stored.address,
            str(size),
            str(stored.took_ms),
            _kind(stored.outgoing, properties),
            receipt.offset_message_id,
            "true",
        )
        return _Trace(FIELD_END.join(fields) + TRACE_END, f"{receipt.message_id} {keys}".strip())

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            await pause(LINGER_S)
            self._wake.clear()
            await self._flush()

    async def _flush(self) -> None:
        while self._waiting:
            message, count = self._next()
            try:
                await self._sending.store(prepare(message, self._instance.ids.next()))
            except BolideError as error:
                self._say_dropped(count, str(error))

    def _next(self) -> tuple[Message, int]:
        """As many traces as one message takes."""
        texts: list[str] = []
        keys: list[str] = []
        room, keys_room = BODY_CHARACTERS, int(KEYS_CHARACTERS)
        while self._waiting and len(texts) < TRACES_PER_MESSAGE:
            trace = self._waiting[0]
            room -= len(trace.text)
            keys_room -= len(trace.keys) + 1
            if texts and (room < 0 or keys_room < 0):
                break
            texts.append(trace.text)
            keys.append(trace.keys)
            self._waiting.popleft()
        return Message(TRACE_TOPIC, "".join(texts).encode(), keys=" ".join(keys)), len(texts)

    def _say_dropped(self, count: int, why: str) -> None:
        if count and self._say.is_due():
            log.warning("%d traces of messages are dropped, perhaps more: %s", count, why)


def _kind(outgoing: Outgoing, properties: dict[str, str]) -> str:
    if outgoing.sys_flag & SysFlag.PREPARED and is_true(properties.get(Property.TRANSACTION_PREPARED)):
        return HALF
    return NORMAL if properties.keys().isdisjoint(SCHEDULING) else DELAYED
