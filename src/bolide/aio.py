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
from bolide.model.errors import (
    BolideError,
    CallTimeout,
    ClientError,
    ClientNotRunning,
    ConfigError,
    ConnectionLost,
    InvalidRequest,
    MalformedRecord,
    MessageIllegal,
    NoBroker,
    NoNameServer,
    NotWritable,
    ProtocolError,
    RemoteError,
    RequestError,
    RetryLater,
    RouteNotFound,
    SubscriptionMalformed,
)
from bolide.model.message import Message, StoredMessage
from bolide.model.offsets import MessageQueue
from bolide.model.response_code import ResponseCode

__all__ = [
    "BolideError",
    "CallTimeout",
    "ClientError",
    "ClientNotRunning",
    "ConfigError",
    "ConnectionLost",
    "InvalidRequest",
    "MalformedRecord",
    "Message",
    "MessageIllegal",
    "MessageQueue",
    "NoBroker",
    "NoNameServer",
    "NotWritable",
    "Producer",
    "ProtocolError",
    "PullBlock",
    "PullConsumer",
    "PullResult",
    "PullStatus",
    "PushConsumer",
    "RemoteError",
    "RequestError",
    "ResponseCode",
    "RetryLater",
    "RouteNotFound",
    "SendReceipt",
    "SendStatus",
    "StoredMessage",
    "SubscriptionMalformed",
]
