"""Consumers as rocketmq-client-python has them."""

from collections.abc import Callable, Iterator
from enum import IntEnum

import bolide
from bolide.compat.rocketmq.exceptions import (
    ConsumerException,
    PullConsumerFetchMessageFailed,
    PullConsumerFetchMQFailed,
    PullConsumerStartFailed,
    PushConsumerStartFailed,
)
from bolide.compat.rocketmq.messages import ReceivedMessage, Text, text_of
from bolide.compat.rocketmq.settings import SettableClient

ATTEMPTS_MAX = 16
PULL_MESSAGES = 32


class MessageModel(IntEnum):
    """Who gets a message: every member of a group, or one of them."""

    BROADCASTING = 0
    CLUSTERING = 1


class ConsumeStatus(IntEnum):
    """What a callback says of its message."""

    CONSUME_SUCCESS = 0
    RECONSUME_LATER = 1


Callback = Callable[[ReceivedMessage], ConsumeStatus | None]


class PushConsumer(SettableClient[bolide.PushConsumer]):
    """Consumes topics as a member of a group.

    Example::

        def callback(message):
            print(message.id, message.body)
            return ConsumeStatus.CONSUME_SUCCESS

        consumer = PushConsumer("billing")
        consumer.set_name_server_address("127.0.0.1:9876")
        consumer.subscribe("orders", callback)
        consumer.start()

    Args:
        group_id: the group; all its members must subscribe to the same topics and tags.
        orderly: messages of a queue come one after the other, in their order.
        message_model: whether every member gets all messages.
    """

    start_failed = PushConsumerStartFailed

    def __init__(
        self,
        group_id: Text,
        orderly: bool = False,
        message_model: MessageModel = MessageModel.CLUSTERING,
    ) -> None:
        super().__init__(group_id)
        self._callbacks: dict[str, Callback] = {}
        self._expressions: dict[str, str] = {}
        if orderly:
            self._set("orderly", True)
        self.set_message_model(message_model)

    def set_message_model(self, model: MessageModel) -> None:
        """Whether every member gets all messages."""
        if model not in tuple(MessageModel):
            raise ConsumerException(f"message_model is a MessageModel, not {model!r:.64}")
        if model == MessageModel.BROADCASTING:
            self._set("broadcasting", True)
        else:
            self._options.pop("broadcasting", None)

    def set_thread_count(self, thread_count: int) -> None:
        """How many callbacks may run at once."""
        self._set("concurrency", thread_count)

    def set_message_batch_max_size(self, max_size: int) -> None:
        """Nothing to set: a callback gets one message at a time."""
        if type(max_size) is not int or max_size < 1:
            raise ConsumerException(f"max_size is a number of messages, not {max_size!r:.64}")

    def subscribe(self, topic: Text, callback: Callback, expression: Text = "*") -> None:
        """Consume a topic; each has a callback of its own.

        A callback gets one message and returns a `ConsumeStatus`.  None is a success; whatever is raised brings the
        message again, as `RECONSUME_LATER` does.

        Args:
            topic: one that does not exist yet is consumed when it does.
            callback: takes a `ReceivedMessage`.
            expression: `*` for all messages, or those of some tags: `A || B`.
        """
        if not callable(callback):
            raise ConsumerException(f"callback is a function that takes a message, not {callback!r:.64}")
        name = text_of("topic", topic)
        tags = text_of("expression", expression)
        if self._core is not None:
            self._core.subscribe(name, tags)
        self._callbacks[name] = callback
        self._expressions[name] = tags

    def _made(self) -> bolide.PushConsumer:
        if not self._callbacks:
            raise PushConsumerStartFailed("it has no topic: call subscribe(topic, callback) first")
        core = bolide.PushConsumer(
            self._nameserver, group=self._group, listener=self._listen, **self._options
        )
        for topic, tags in self._expressions.items():
            core.subscribe(topic, tags)
        return core

    def _listen(self, messages: list[bolide.StoredMessage]) -> None:
        for message in messages:
            status: object = self._callbacks[message.topic](ReceivedMessage(message))
            if status == ConsumeStatus.RECONSUME_LATER:
                raise bolide.RetryLater("as its callback says")
            if status is not None and status != ConsumeStatus.CONSUME_SUCCESS:
                raise ConsumerException(f"a callback returns a ConsumeStatus, not {status!r:.64}")


class PullConsumer(SettableClient[bolide.PullConsumer]):
    """Reads topics from their beginning to their end.  It belongs to no group's members, and keeps no place.

    Args:
        group_id: in whose name to read.
    """

    start_failed = PullConsumerStartFailed

    def pull(
        self, topic: Text, expression: Text = "*", max_num: int = PULL_MESSAGES
    ) -> Iterator[ReceivedMessage]:
        """All messages of a topic that are there, queue by queue.  It ends where the topic ends.

        Args:
            topic: what to read.
            expression: `*` for all messages, or those of some tags: `A || B`.
            max_num: how many messages one request brings at most.
        """
        core = self._running
        name, tags = text_of("topic", topic), text_of("expression", expression)
        try:
            queues = core.queues(name)
        except bolide.BolideError as error:
            raise PullConsumerFetchMQFailed(str(error)) from error
        for queue in queues:
            for message in _messages(core, queue, tags, max_num):
                yield ReceivedMessage(message)

    def _made(self) -> bolide.PullConsumer:
        return bolide.PullConsumer(self._nameserver, group=self._group, **self._options)


def _messages(
    core: bolide.PullConsumer, queue: bolide.MessageQueue, tags: str, count_max: int
) -> Iterator[bolide.StoredMessage]:
    try:
        offset: int = core.min_offset(queue)
        while (
            result := core.pull(queue, offset, count_max, tags=tags)
        ).status is not bolide.PullStatus.NO_NEW_MESSAGE:
            if result.next_offset <= offset:
                raise PullConsumerFetchMessageFailed(
                    f"{queue}: the broker goes on at {result.next_offset} after a pull at {offset}"
                )
            yield from result.messages
            offset = result.next_offset
    except bolide.BolideError as error:
        raise PullConsumerFetchMessageFailed(str(error)) from error
