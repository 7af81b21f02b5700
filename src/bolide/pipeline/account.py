"""What brokers know of a batch of a stream that is written, perhaps not for the first time.

Before a task sends to a broker it begins there (request 30001): the broker cuts off whoever wrote the same part of the
batch before, and tells where its messages would be.  Those ranges are read back, and their unique keys are what is
stored.  After a lost connection the task begins again, and then knows what has become of all that it had not heard
of.  Two attempts at one part may both be alive; nothing is sent to a broker before all of them were one attempt's at
the same moment (`sender.py`), because what the other one has stored elsewhere is known only then.  Brokers that do not
know the request keep no account: there a message may be stored twice.
"""

import asyncio
import hashlib
import logging
from dataclasses import dataclass

from bolide.arrow.columns import ColumnBuilder
from bolide.arrow.rows import IdSet, Text
from bolide.client.answers import raise_for
from bolide.client.instance import ClientInstance
from bolide.client.queue_calls import QueueCalls
from bolide.model.errors import ProtocolError
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.topic import Subscription
from bolide.net.link import Link
from bolide.wire.bodies.write import StoredRange, decode_ranges
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.write import BeginWrite, WriteBegun

log = logging.getLogger(__name__)

BEGIN_TIMEOUT_MS = 15_000
PULL_MESSAGES_MAX = 32_768
PULL_BYTES_MAX = 4 * 1024 * 1024
QUEUES_AT_ONCE = 8


@dataclass(frozen=True)
class Scope:
    """The part of a stream's batch that one task writes."""

    query: str
    batch: int
    partition: int

    def prefix_and_seed(self, topic: str) -> tuple[str, int]:
        """What unique keys of its messages to a topic begin with, and what the rest of them is made from."""
        text = f"{self.query}/{self.batch}/{self.partition}/{topic}"
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        return digest[:8].hex().upper(), int.from_bytes(digest[8:], "little")


class Account:
    """One broker's account of a task's scope."""

    def __init__(
        self, instance: ClientInstance, group: str, scope: Scope, broker: str, *, delays: bool
    ) -> None:
        self.broker = broker
        self.is_kept = True
        """Whether the broker keeps accounts at all."""
        self.others: frozenset[str] = frozenset()
        """All brokers that the batch may have written to."""
        self.has_begun_again = False
        self._instance = instance
        self._calls = QueueCalls(instance, group)
        self._scope = scope
        self._delays = delays
        self._link: Link | None = None
        self._topics: dict[str, tuple[str, IdSet]] = {}
        """What has begun over that connection, in the order in which it did."""
        self._is_held = False
        """Whether all brokers of the batch were this task's at one moment since then."""

    async def held_link(self, topic: str) -> Link | None:
        """The connection over which frames of the topic may go now, if there is one."""
        link = await self._current()
        return link if self._is_held and link is self._link and topic in self._topics else None

    async def renew(self) -> Link:
        """Begin again, over the present connection, whatever had begun over one that is gone."""
        link = await self._current()
        if link is not self._link:
            self._is_held = False
            for name, known in self._topics.items():
                self.has_begun_again = True
                await self._begin(link, name, *known)
            self._link = link
        return link

    async def begin(self, topic: str, brokers: str, stored: IdSet) -> None:
        """All of that, and the topic; `stored` has gained whatever is stored here."""
        link = await self.renew()
        if self._topics.get(topic, ("",))[0] != brokers:
            await self._begin(link, topic, brokers, stored)
            self._topics[topic] = (brokers, stored)

    @property
    def has_begun(self) -> bool:
        return bool(self._topics)

    async def check(self) -> None:
        """Fails if somebody else has begun here meanwhile: that has cut this connection off."""
        if not self.is_kept:
            return
        assert self._link is not None
        topic, (brokers, _) = next(iter(self._topics.items()))
        raise_for(await self._ask(self._link, topic, brokers))

    def hold(self) -> None:
        self._is_held = True

    async def _current(self) -> Link:
        return await self._instance.link(await self._instance.routes.find_address(self.broker))

    async def _begin(self, link: Link, topic: str, brokers: str, stored: IdSet) -> None:
        if not self.is_kept:
            return
        answer = await self._ask(link, topic, brokers)
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            self.is_kept = False
            log.info(
                "the broker %s keeps no account of batches: a retry may store messages twice", self.broker
            )
            return
        begun = WriteBegun.decode(raise_for(answer).fields)
        self.others |= frozenset(name for name in begun.brokers.split(",") if name)
        prefix, _ = self._scope.prefix_and_seed(topic)
        room = asyncio.Semaphore(QUEUES_AT_ONCE)
        await asyncio.gather(*(self._read(one, prefix, stored, room) for one in decode_ranges(answer.body)))

    async def _ask(self, link: Link, topic: str, brokers: str) -> Command:
        scope = self._scope
        header = BeginWrite(scope.query, scope.batch, scope.partition, topic, brokers, self._delays)
        return await link.call(Command(RequestCode.BEGIN_WRITE, header.encode()), BEGIN_TIMEOUT_MS)

    async def _read(self, wanted: StoredRange, prefix: str, stored: IdSet, room: asyncio.Semaphore) -> None:
        """Take note of the unique keys of our own messages in a range."""
        queue = MessageQueue(wanted.topic, self.broker, wanted.queue_id)
        builder = ColumnBuilder(self.broker, ["msgId"], queue=(wanted.topic, wanted.queue_id))
        everything = Subscription.parse(wanted.topic, "*")
        offset = wanted.begin
        async with room:
            while offset < wanted.end:
                block = await self._calls.pull(
                    queue,
                    GroupOffset(offset),
                    everything,
                    messages_max=min(wanted.end - offset, PULL_MESSAGES_MAX),
                    bytes_max=PULL_BYTES_MAX,
                    bulk=True,
                )
                at = 0
                while at < len(block.data):
                    at = builder.append(block.data, at, offset, wanted.end)
                    _note(builder, prefix, stored)
                following = max(block.next_offset, block.min_offset)
                if following <= offset:
                    raise ProtocolError(f"{queue}: the broker does not go on at offset {offset}")
                offset = following


def _note(builder: ColumnBuilder, prefix: str, stored: IdSet) -> None:
    rows = builder.rows
    validity, offsets, data = builder.take()["msgId"]
    assert offsets is not None
    assert data is not None
    stored.add_keys(Text(validity, offsets, data, 0), rows, prefix)
