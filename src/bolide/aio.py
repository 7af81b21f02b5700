"""The clients for asyncio: the same names as in `bolide`, awaitable.

Example::

    from bolide.aio import Message, Producer

    async with Producer("127.0.0.1:9876", group="orders") as producer:
        receipt = await producer.send(Message("orders", b"...", tags="paid", keys=["42"]))
"""

from bolide.client.producer import Producer
from bolide.client.pull import PullConsumer
from bolide.client.push import PushConsumer
from bolide.client.results import PullBlock, PullResult, PullStatus, SendReceipt, SendStatus
from bolide.model.message import Message, StoredMessage
from bolide.model.offsets import MessageQueue

__all__ = [
    "Message",
    "MessageQueue",
    "Producer",
    "PullBlock",
    "PullConsumer",
    "PullResult",
    "PullStatus",
    "PushConsumer",
    "SendReceipt",
    "SendStatus",
    "StoredMessage",
]
