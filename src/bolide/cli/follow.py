"""Reading a topic from a moment on, all queues together: what `bolide tail` does between its options and its output.

What is stored already comes in the order of its store times, merged from all queues with one block of each in memory.
What arrives later comes as it arrives.  A broker that goes away is waited for; queues that are added are found.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import NamedTuple

from bolide.aio import MessageQueue, PullConsumer, PullStatus, StoredMessage
from bolide.model.errors import BolideError, CallTimeout, ConnectionLost, RemoteError, RouteNotFound
from bolide.model.topic import Subscription
from bolide.rules.filters import SQL

WAIT_MS = 15_000
PAUSE_S = 1.0
NEW_QUEUES_S = 5.0
BLOCK_MESSAGES = 32
BACKPRESSURE_MESSAGES = 256

Waiting = tuple[int, int, int, StoredMessage]
"""Store time, place in the log (the order within one millisecond of one broker), number of the reader, message."""

Inbox = asyncio.Queue[StoredMessage | BolideError]

_COMES_BACK = (ConnectionLost, CallTimeout, RouteNotFound, RemoteError)


class Choice(NamedTuple):
    """What a broker is asked to leave out."""

    tags: str = "*"
    sql: str | None = None


EVERYTHING = Choice()


def choice_of(subscription: Subscription) -> Choice:
    if subscription.expression_type == SQL:
        return Choice(sql=subscription.expression)
    return Choice(tags=subscription.expression)


@dataclass(frozen=True, slots=True)
class Span:
    """A part of one queue: from `start` to before `end`, the end as it was when we looked."""

    queue: MessageQueue
    start: int
    end: int


async def spans_since(
    consumer: PullConsumer, topic: str, since_ms: int | None, until_ms: int | None = None
) -> list[Span]:
    """From a moment on; 0 is the beginning, None the end.  Up to a moment, or to the present end."""
    return [await _span_since(consumer, queue, since_ms, until_ms) for queue in await consumer.queues(topic)]


async def spans_of_last(
    consumer: PullConsumer, topic: str, count: int, until_ms: int | None = None
) -> list[Span]:
    """The last `count` messages of each queue: among them are the last `count` of the topic."""
    spans: list[Span] = []
    for queue in await consumer.queues(topic):
        first, end = await consumer.min_offset(queue), await _end(consumer, queue, until_ms)
        spans.append(Span(queue, max(first, end - count), end))
    return spans


async def stored(consumer: PullConsumer, spans: list[Span], choice: Choice) -> AsyncIterator[StoredMessage]:
    """Everything inside the spans, oldest first."""
    readers = [_read_span(consumer, span, choice) for span in spans]
    heap: list[Waiting] = []
    for number, reader in enumerate(readers):
        await _refill(heap, number, reader)
    while heap:
        _, _, number, message = heapq.heappop(heap)
        yield message
        await _refill(heap, number, readers[number])


async def last_stored(
    consumer: PullConsumer, spans: list[Span], count: int, choice: Choice
) -> list[StoredMessage]:
    """The last `count` of them, and of these those that are chosen."""
    kept: deque[StoredMessage] = deque(maxlen=count)
    async for message in stored(consumer, spans, EVERYTHING):
        kept.append(message)
    if choice == EVERYTHING:
        return list(kept)
    places = {_place(message) for message in kept}
    chosen = [message async for message in stored(consumer, spans, choice)]
    return [message for message in chosen if _place(message) in places]


def _place(message: StoredMessage) -> tuple[str, int, int]:
    return message.broker_name, message.queue_id, message.queue_offset


async def arriving(
    consumer: PullConsumer, topic: str, spans: list[Span], choice: Choice, on_trouble: Callable[[str], None]
) -> AsyncIterator[StoredMessage]:
    """Every message behind the ends of the spans, for ever."""
    inbox: Inbox = asyncio.Queue(BACKPRESSURE_MESSAGES)
    readers = {
        span.queue: asyncio.create_task(_read_on(consumer, span.queue, span.end, choice, inbox, on_trouble))
        for span in spans
    }
    try:
        while True:
            try:
                async with asyncio.timeout(NEW_QUEUES_S):
                    item = await inbox.get()
            except TimeoutError:
                for queue in set(await consumer.queues(topic)) - readers.keys():
                    work = _read_on(consumer, queue, 0, choice, inbox, on_trouble)
                    readers[queue] = asyncio.create_task(work)
            else:
                if isinstance(item, BolideError):
                    raise item
                yield item
    finally:
        for reader in readers.values():
            reader.cancel()
        await asyncio.gather(*readers.values(), return_exceptions=True)


async def _end(consumer: PullConsumer, queue: MessageQueue, until_ms: int | None) -> int:
    return await consumer.max_offset(queue) if until_ms is None else await consumer.offset_at(queue, until_ms)


async def _span_since(
    consumer: PullConsumer, queue: MessageQueue, since_ms: int | None, until_ms: int | None
) -> Span:
    end = await _end(consumer, queue, until_ms)
    if since_ms is None:
        return Span(queue, end, end)
    if since_ms == 0:
        return Span(queue, await consumer.min_offset(queue), end)
    return Span(queue, await consumer.offset_at(queue, since_ms), end)


async def _read_span(consumer: PullConsumer, span: Span, choice: Choice) -> AsyncIterator[StoredMessage]:
    at = span.start
    while at < span.end:
        result = await consumer.pull(span.queue, at, BLOCK_MESSAGES, tags=choice.tags, sql=choice.sql)
        for message in result.messages:
            if message.queue_offset < span.end:
                yield message
        if result.status is PullStatus.NO_NEW_MESSAGE or result.next_offset == at:
            return
        at = result.next_offset


async def _refill(heap: list[Waiting], number: int, reader: AsyncIterator[StoredMessage]) -> None:
    message = await anext(reader, None)
    if message is not None:
        heapq.heappush(heap, (message.store_timestamp_ms, message.log_offset, number, message))


async def _read_on(
    consumer: PullConsumer,
    queue: MessageQueue,
    at: int,
    choice: Choice,
    inbox: Inbox,
    on_trouble: Callable[[str], None],
) -> None:
    while True:
        try:
            result = await consumer.pull(
                queue, at, BLOCK_MESSAGES, tags=choice.tags, sql=choice.sql, wait_ms=WAIT_MS
            )
        except _COMES_BACK as error:
            on_trouble(str(error))
            await _pause()
            continue
        except BolideError as error:
            await inbox.put(error)
            return
        at = result.next_offset
        for message in result.messages:
            await inbox.put(message)


async def _pause() -> None:
    try:
        async with asyncio.timeout(PAUSE_S):
            await asyncio.get_running_loop().create_future()
    except TimeoutError:
        pass
