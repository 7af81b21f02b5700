"""The names of `rocketmq.client`: in code that was written for it, imports change and the rest does not.

Example::

    from bolide.compat.rocketmq.client import ConsumeStatus, Message, Producer, PushConsumer
"""

from bolide.compat.rocketmq.consts import MessageProperty
from bolide.compat.rocketmq.consumers import ConsumeStatus, MessageModel, PullConsumer, PushConsumer
from bolide.compat.rocketmq.messages import Message, ReceivedMessage
from bolide.compat.rocketmq.producers import (
    Producer,
    SendResult,
    SendStatus,
    TransactionMQProducer,
    TransactionStatus,
)

RecvMessage = ReceivedMessage
"""Its name in the first versions."""

__all__ = [
    "ConsumeStatus",
    "Message",
    "MessageModel",
    "MessageProperty",
    "Producer",
    "PullConsumer",
    "PushConsumer",
    "ReceivedMessage",
    "RecvMessage",
    "SendResult",
    "SendStatus",
    "TransactionMQProducer",
    "TransactionStatus",
]
