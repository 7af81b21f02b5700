"""Sending stored messages once more: one by one, or the dead letters of a group.

A copy has the body, tags, keys and properties of the application, and a new id.  What a dead letter was about stands in
its property RETRY_TOPIC; sent to the group's own topic of retries it reaches that group alone, as a message of its old
topic, and sent to the old topic it reaches every group there.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace

from bolide.admin.connection import AdminConnection
from bolide.admin.groups import group_configs
from bolide.admin.queues import Place, messages_from, offset_at, queues_of
from bolide.admin.topics import create_topic
from bolide.client.producer import Producer
from bolide.model.errors import MessageIllegal, RouteNotFound
from bolide.model.message import Message, Property
from bolide.model.names import DEAD_LETTER_PREFIX, RETRY_PREFIX, retry_topic
from bolide.model.properties import SCHEDULING, is_written_by_others
from bolide.model.topic import TopicConfig
from bolide.net.ticks import pause
from bolide.record.stored import StoredMessage

BLOCK_MESSAGES = 32
SENDER = "bolide-replay"
"""The group of producers in whose name copies are sent."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of one queue: from `start` to before `end`."""

    place: Place
    start: int
    end: int

    @property
    def messages(self) -> int:
        return max(0, self.end - self.start)


def group_of(name: str) -> str:
    """The group whose dead letters are meant, by its own name or by that of a topic of its own."""
    return name.removeprefix(DEAD_LETTER_PREFIX).removeprefix(RETRY_PREFIX)


async def dead_letters(
    servers: AdminConnection, group: str, since_ms: int, until_ms: int | None
) -> list[Span]:
    """Where the dead letters of a group lie now; what dies later is not among them."""
    try:
        queues = await queues_of(servers, DEAD_LETTER_PREFIX + group)
    except RouteNotFound:
        await group_configs(servers, group)  # a group that is not there is the better reason
        return []
    spans: list[Span] = []
    for queue in queues:
        start, end = queue.bounds.offset_min, queue.bounds.offset_max
        if since_ms > 0:
            start = max(start, await offset_at(servers, queue.place, since_ms))
        if until_ms is not None:
            end = min(end, await offset_at(servers, queue.place, until_ms + 1))
        spans.append(Span(queue.place, start, end))
    return spans


async def letters_in(
    servers: AdminConnection, spans: Sequence[Span], key: str | None = None, skip: int = 0
) -> AsyncIterator[StoredMessage]:
    """The messages of the spans, the oldest first, all or those with a key; not the first few."""
    sources = [_letters_of(servers, span, key) for span in spans]
    heads = [await anext(source, None) for source in sources]
    while there := [(head.store_timestamp_ms, at, head) for at, head in enumerate(heads) if head is not None]:
        _, at, letter = min(there, key=lambda one: one[:2])
        if skip > 0:
            skip -= 1
        else:
            yield letter
        heads[at] = await anext(sources[at], None)


async def _letters_of(servers: AdminConnection, span: Span, key: str | None) -> AsyncIterator[StoredMessage]:
    at = span.start
    while at < span.end:
        block = await messages_from(servers, span.place, at, min(BLOCK_MESSAGES, span.end - at))
        if not block:
            return
        for message in block:
            if message.queue_offset < span.end and (key is None or key in message.keys):
                yield message
        at = block[-1].queue_offset + 1


def copy_of(message: StoredMessage, topic: str) -> Message:
    """To be sent to a topic; `MessageIllegal` for one whose body nobody can read."""
    if message.body_error is not None:
        raise MessageIllegal(f"the body of {message.message_id} does not unpack: {message.body_error}")
    properties = {
        name: value
        for name, value in message.properties.items()
        if name not in SCHEDULING and not is_written_by_others(name)
    }
    return Message(
        topic, message.body, tags=message.tags, keys=message.keys, properties=properties, flag=message.flag
    )


def letter_again(message: StoredMessage, group: str, *, to_topic: bool) -> Message:
    """A dead letter, to its group alone or to everybody who reads its old topic."""
    old_topic = message.properties.get(Property.RETRY_TOPIC)
    if to_topic:
        if old_topic is None:
            raise MessageIllegal(
                f"{message.message_id} does not say which topic it was of: send it to its group"
            )
        return copy_of(message, old_topic)
    copy = copy_of(message, retry_topic(group))
    if old_topic is None:
        return copy
    return replace(copy, properties={**copy.properties, Property.RETRY_TOPIC: old_topic})


async def send_again(servers: AdminConnection, message: Message) -> str:
    """Send one message; returns its new id."""
    async with Producer(";".join(servers.nameservers), group=SENDER, **servers.access) as producer:
        return (await producer.send(message)).message_id


async def replay(
    servers: AdminConnection,
    spans: Sequence[Span],
    group: str,
    *,
    key: str | None,
    skip: int,
    count_max: int | None,
    to_topic: bool,
    rate: int | None,
    on_sent: Callable[[StoredMessage], None],
) -> None:
    """Send dead letters once more, in order; `on_sent` hears of each that was stored."""
    if not to_topic:
        await _make_retry_topic(servers, group)
    sent = 0
    async with Producer(";".join(servers.nameservers), group=SENDER, **servers.access) as producer:
        async for letter in letters_in(servers, spans, key, skip):
            if sent == count_max:
                return
            await producer.send(letter_again(letter, group, to_topic=to_topic))
            sent += 1
            on_sent(letter)
            if rate is not None:
                await pause(1 / rate)


async def _make_retry_topic(servers: AdminConnection, group: str) -> None:
    """As a first member would: a send to a topic that is not there makes one of another shape."""
    for broker, config in (await group_configs(servers, group)).items():
        queues = max(1, config.retry_queues)
        topic = TopicConfig(retry_topic(group), queues, queues)
        await create_topic(servers, topic, broker=broker, if_not_exists=True)
