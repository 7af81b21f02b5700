"""Producers as rocketmq-client-python has them."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import bolide
from bolide.compat.rocketmq.exceptions import (
    ProducerException,
    ProducerSendOnewayFailed,
    ProducerSendOrderlyFailed,
    ProducerSendSyncFailed,
    ProducerStartFailed,
)
from bolide.compat.rocketmq.messages import Message, ReceivedMessage, Text, half_message, text_of
from bolide.compat.rocketmq.settings import SettableClient
from bolide.model.java_hash import java_hash
from bolide.model.message import BODY_BYTES_MAX, Property

COMPRESS_LEVEL_MAX = 9


class SendStatus(IntEnum):
    """How safe a stored message is."""

    OK = 0
    FLUSH_DISK_TIMEOUT = 1
    FLUSH_SLAVE_TIMEOUT = 2
    SLAVE_NOT_AVAILABLE = 3


class SendResult(NamedTuple):
    """Where a message went: `offset` is its place in its queue."""

    status: SendStatus
    msg_id: str
    offset: int


class TransactionStatus(IntEnum):
    """How a transaction ends."""

    COMMIT = 0
    ROLLBACK = 1
    UNKNOWN = 2


_STATUS = {
    bolide.SendStatus.SEND_OK: SendStatus.OK,
    bolide.SendStatus.FLUSH_DISK_TIMEOUT: SendStatus.FLUSH_DISK_TIMEOUT,
    bolide.SendStatus.FLUSH_SLAVE_TIMEOUT: SendStatus.FLUSH_SLAVE_TIMEOUT,
    bolide.SendStatus.SLAVE_NOT_AVAILABLE: SendStatus.SLAVE_NOT_AVAILABLE,
}


class Producer(SettableClient[bolide.Producer]):
    """Sends messages.

    Example::

        producer = Producer("shop")
        producer.set_name_server_address("127.0.0.1:9876")
        producer.start()
        message = Message("orders")
        message.set_body("three apples")
        print(producer.send_sync(message).msg_id)
        producer.shutdown()

    Args:
        group_id: the producer group.
        orderly: means nothing here: every producer sends by sharding key if it is asked to.
        timeout: how long a send may take, in milliseconds.
        compress_level: 0 sends bodies as they are; any other one compresses large bodies.
        max_message_size: larger bodies are refused.
    """

    start_failed = ProducerStartFailed

    def __init__(
        self,
        group_id: Text,
        orderly: bool = False,
        timeout: int | None = None,
        compress_level: int | None = None,
        max_message_size: int | None = None,
    ) -> None:
        super().__init__(group_id)
        self._size_max = BODY_BYTES_MAX
        if timeout is not None:
            self.set_timeout(timeout)
        if compress_level is not None:
            self.set_compress_level(compress_level)
        if max_message_size is not None:
            self.set_max_message_size(max_message_size)

    def set_timeout(self, timeout: int) -> None:
        """How long a send may take, in milliseconds."""
        self._set("timeout_ms", timeout)

    def set_compress_level(self, level: int) -> None:
        """0 sends bodies as they are; any other one, up to 9, compresses those of 4,096 bytes and more."""
        if type(level) is not int or not 0 <= level <= COMPRESS_LEVEL_MAX:
            raise ProducerException(
                f"compress_level is a whole number from 0 to {COMPRESS_LEVEL_MAX}, not {level!r:.64}"
            )
        if level == 0:
            self._set("pack_from_bytes", BODY_BYTES_MAX + 1)
        else:
            self._options.pop("pack_from_bytes", None)

    def set_max_message_size(self, max_size: int) -> None:
        """Larger bodies are refused; above 4 MiB all are."""
        if type(max_size) is not int or max_size < 1:
            raise ProducerException(f"max_message_size is a number of bytes, not {max_size!r:.64}")
        self._size_max = max_size

    def send_sync(self, msg: Message) -> SendResult:
        """Store one message; returns when the broker has acknowledged it."""
        try:
            return _result(self._running.send(self._checked(msg)))
        except bolide.BolideError as error:
            raise ProducerSendSyncFailed(str(error)) from error

    def send_oneway(self, msg: Message) -> None:
        """Send without an acknowledgement: nobody learns whether the message was stored."""
        try:
            self._running.send_oneway(self._checked(msg))
        except bolide.BolideError as error:
            raise ProducerSendOnewayFailed(str(error)) from error

    def send_orderly_with_sharding_key(self, msg: Message, sharding_key: Text) -> SendResult:
        """Store one message in the queue of its sharding key, behind those that were sent before it."""
        key = text_of("sharding_key", sharding_key)
        try:
            message = self._checked(msg, **{Property.SHARDING_KEY: key})
            receipt = self._running.send(
                message, selector=lambda queues, _: queues[abs(java_hash(key)) % len(queues)]
            )
        except bolide.BolideError as error:
            raise ProducerSendOrderlyFailed(str(error)) from error
        return _result(receipt)

    def _made(self) -> bolide.Producer:
        return bolide.Producer(self._nameserver, group=self._group, **self._options)

    def _checked(self, msg: Message, **properties: str) -> bolide.Message:
        given: object = msg
        if not isinstance(given, Message):
            raise ProducerException(
                f"a message is a Message of bolide.compat.rocketmq.client, not {type(msg).__name__}"
            )
        message = msg.made(**properties)
        if len(message.body) > self._size_max:
            raise ProducerException(f"the body has {len(message.body)} bytes; {self._size_max} are allowed")
        return message


class TransactionMQProducer(Producer):
    """Sends messages that are delivered if something else has happened.

    Args:
        group_id: the producer group; a broker may ask any member of it how a transaction has ended.
        checker_callback: called with a message whose transaction is open; returns a `TransactionStatus`.
        user_args: means nothing here; the callback is a function that knows its own.
        timeout, compress_level, max_message_size: as of a `Producer`.
    """

    def __init__(
        self,
        group_id: Text,
        checker_callback: Callable[[ReceivedMessage], TransactionStatus],
        user_args: object = None,
        timeout: int | None = None,
        compress_level: int | None = None,
        max_message_size: int | None = None,
    ) -> None:
        if not callable(checker_callback):
            raise ProducerException(f"checker_callback is a function, not {checker_callback!r:.64}")
        super().__init__(group_id, False, timeout, compress_level, max_message_size)
        self._checker = checker_callback

    def send_message_in_transaction(
        self,
        message: Message,
        local_execute: Callable[[ReceivedMessage, Any], TransactionStatus],
        user_args: object = None,
    ) -> SendResult:
        """Store a message that waits, call `local_execute(message, user_args)`, and end the transaction by its answer.

        What it raises is logged and counts as `UNKNOWN`: the broker asks the checker later.  The id of the message is
        not known to `local_execute`.
        """
        core = self._running
        assert isinstance(core, bolide.TransactionProducer)
        try:
            receipt = core.send_in_transaction(
                self._checked(message),
                lambda half: _transaction(local_execute(half_message(half), user_args)),
            )
        except bolide.BolideError as error:
            raise ProducerSendSyncFailed(str(error)) from error
        return _result(receipt)

    def _made(self) -> bolide.Producer:
        return bolide.TransactionProducer(
            self._nameserver, group=self._group, check=self._check, **self._options
        )

    def _check(self, stored: bolide.StoredMessage) -> bolide.Transaction:
        return _transaction(self._checker(ReceivedMessage(stored)))


def _transaction(status: object) -> bolide.Transaction:
    """What bolide's own producers take."""
    if not isinstance(status, TransactionStatus):
        raise ProducerException(f"a transaction ends with a TransactionStatus, not {status!r:.64}")
    return bolide.Transaction[status.name]


def _result(receipt: bolide.SendReceipt | bolide.TransactionReceipt) -> SendResult:
    return SendResult(_STATUS[receipt.status], receipt.message_id, receipt.queue_offset)
