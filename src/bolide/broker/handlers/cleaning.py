"""Cleaning on an operator's word: 306, 316 and 329."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from bolide.model import names
from bolide.net.link import Link
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command

if TYPE_CHECKING:
    from bolide.broker.app import Broker

LIGHT_QUEUE_PREFIX = "%LMQ%"
"""Queues of the original that never are in its topic table; a store that was taken over may have some."""


def delete_expired_log(broker: "Broker", link: Link, request: Command) -> Command:
    """329: delete expired segments in the next runs, at whatever hour.  Age counts as always."""
    broker.cleaner.ask()
    return request.answer()


async def clean_expired_queues(broker: "Broker", link: Link, request: Command) -> Command:
    """306: delete queue files whose messages are gone.

    The original also forgets queues that have no message left, and their next message gets offset 0 again: a group
    that had consumed them would miss it.  Here a queue keeps its number for as long as its topic lives.
    """
    await broker.cleaner.clean_queues()
    _drop_unknown_topics(broker, with_messages=False)
    return request.answer()


def clean_unused_topics(broker: "Broker", link: Link, request: Command) -> Command:
    """316: forget the queues of topics that do not exist any more."""
    _drop_unknown_topics(broker, with_messages=True)
    return request.answer()


def _drop_unknown_topics(broker: "Broker", *, with_messages: bool) -> None:
    for topic, has_messages in broker.cleaner.topics().items():
        if topic in broker.topics or names.is_system_topic(topic) or topic.startswith(LIGHT_QUEUE_PREFIX):
            continue
        if with_messages or not has_messages:
            broker.topic_remover.delete(topic)


HANDLERS: dict[RequestCode, Callable[["Broker", Link, Command], Command | Awaitable[Command]]] = {
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: clean_expired_queues,
    RequestCode.CLEAN_UNUSED_TOPIC: clean_unused_topics,
    RequestCode.DELETE_EXPIRED_COMMITLOG: delete_expired_log,
}
