"""Our Python clients at work: a listener that remembers, and readers that wait for what comes."""

from collections.abc import Callable

from bolide import (
    LitePullConsumer,
    MessageQueue,
    PullConsumer,
    PullStatus,
    PushConsumer,
    SendReceipt,
    StoredMessage,
)
from bolide.model.errors import RouteNotFound
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until


class Seen:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.messages: list[StoredMessage] = []

    def __call__(self, messages: list[StoredMessage]) -> None:
        self.messages.extend(messages)

    @property
    def bodies(self) -> list[str]:
        return [message.body.decode() for message in self.messages]

    def wait(self, count: int) -> None:
        wait_until(
            lambda: len(self.messages) >= count, PATIENCE_SECONDS, lambda: f"{len(self.messages)} of {count}"
        )


def subscribed(
    server: Together,
    topic: str,
    group: str,
    listener: Callable[..., object],
    *,
    tags: str = "*",
    sql: str | None = None,
    **options: object,
) -> PushConsumer:
    consumer = PushConsumer(server.nameserver, group=group, listener=listener, **options)  # type: ignore[arg-type]
    consumer.subscribe(topic, tags, sql)
    return consumer


def polling(server: Together, topic: str, group: str) -> LitePullConsumer:
    consumer = LitePullConsumer(server.nameserver, group=group, start_from="first")
    consumer.subscribe(topic)
    return consumer


def polled(consumer: LitePullConsumer, count: int, messages_max: int = 500) -> list[int]:
    """The numbers that are the bodies of the next messages."""
    bodies: list[int] = []

    def have_come() -> bool:
        wanted = min(messages_max, count - len(bodies))
        bodies.extend(int(message.body) for message in consumer.poll(1_000, wanted))
        return len(bodies) >= count

    wait_until(have_come, PATIENCE_SECONDS, lambda: f"{len(bodies)} of {count}")
    return bodies


def stored_at(reader: PullConsumer, receipt: SendReceipt) -> StoredMessage:
    """The message of a receipt; the original shows it to readers a moment after it has acknowledged it."""
    return _message(reader, receipt.queue, receipt.queue_offset)


def first_of(reader: PullConsumer, queue: MessageQueue) -> StoredMessage:
    """The first message of a queue, when it has come."""
    return _message(reader, queue, 0)


def _message(reader: PullConsumer, queue: MessageQueue, offset: int) -> StoredMessage:
    """A pull may wait at the end of a queue, and not for what lies behind a message that is not shown yet either."""
    _wait_for_route(reader, queue.topic)
    found: list[StoredMessage] = []

    def is_shown() -> bool:
        found[:] = reader.pull(queue, offset, 1, wait_ms=PATIENCE_MS).messages
        return bool(found)

    wait_until(is_shown, PATIENCE_SECONDS, f"{queue} shows no message at {offset}")
    return found[0]


def everything(reader: PullConsumer, topic: str) -> list[StoredMessage]:
    """All messages of a topic, by pulling each queue to its end."""
    _wait_for_route(reader, topic)
    found: list[StoredMessage] = []
    for queue in reader.queues(topic):
        offset = int(reader.min_offset(queue))
        while (result := reader.pull(queue, offset)).status is not PullStatus.NO_NEW_MESSAGE:
            found += result.messages
            offset = result.next_offset
    return found


def _wait_for_route(reader: PullConsumer, topic: str) -> None:
    """The original tells the name server of a topic made on demand a moment after it has acknowledged its message."""

    def is_known() -> bool:
        try:
            return bool(reader.queues(topic))
        except RouteNotFound:
            return False

    wait_until(is_known, PATIENCE_SECONDS, f"the name server does not know {topic}")
