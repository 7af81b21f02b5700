"""The clients for asyncio: the same names as in `bolide`, awaitable.

Example::

    from bolide.aio import Message, Producer

    async with Producer("127.0.0.1:9876", group="orders") as producer:
        receipt = await producer.send(Message("orders", b"...", tags="paid", keys=["42"]))
"""

from bolide.client.context import ConsumeContext
from bolide.client.dedup import DedupWindow
from bolide.client.gather import SendFuture, SendReceipt
from bolide.client.hooks import CallEvent, ConsumeEvent, Hooks, SendEvent
from bolide.client.lite import LitePullConsumer
from bolide.client.producer import Producer
from bolide.client.pull import PullConsumer
from bolide.client.push import PushConsumer
from bolide.client.requests import reply_to
from bolide.client.results import (
    PartlyStored,
    PullBlock,
    PullResult,
    PullStatus,
    RowsPartlyStored,
    SendStatus,
    TableReceipt,
    Transaction,
    TransactionReceipt,
)
from bolide.client.selectors import by_hash, by_machine_room, by_random
from bolide.client.terms import ClientOptions
from bolide.client.transaction_producer import TransactionProducer
from bolide.model.credentials import Credentials
from bolide.model.errors import (
    BadRow,
    BolideError,
    CallTimeout,
    ClientError,
    ClientNotRunning,
    ConfigError,
    ConnectionLost,
    DedupFailed,
    InvalidRequest,
    MalformedRecord,
    MessageIllegal,
    NoBroker,
    NoNameServer,
    NoReply,
    NoRoom,
    NotOurQueue,
    NotWritable,
    ProtocolError,
    RemoteError,
    RequestError,
    RequirementMissing,
    RouteNotFound,
    StrategyFailed,
    SubscriptionConflict,
    SubscriptionMalformed,
    TlsFailed,
    Vetoed,
)
from bolide.model.message import Message
from bolide.model.offsets import MessageQueue
from bolide.model.response_code import ResponseCode
from bolide.model.verdicts import Later, RetryLater, Suspend
from bolide.net.tls import Tls
from bolide.record.stored import StoredMessage
from bolide.rules.allocate.hash_ring import ConsistentHashStrategy
from bolide.rules.allocate.machine_rooms import MachineRoomNearbyStrategy, MachineRoomStrategy
from bolide.rules.allocate.plain import ConfigStrategy

__all__ = [
    "BadRow",
    "BolideError",
    "CallEvent",
    "CallTimeout",
    "ClientError",
    "ClientNotRunning",
    "ClientOptions",
    "ConfigError",
    "ConfigStrategy",
    "ConnectionLost",
    "ConsistentHashStrategy",
    "ConsumeContext",
    "ConsumeEvent",
    "Credentials",
    "DedupFailed",
    "DedupWindow",
    "Hooks",
    "InvalidRequest",
    "Later",
    "LitePullConsumer",
    "MachineRoomNearbyStrategy",
    "MachineRoomStrategy",
    "MalformedRecord",
    "Message",
    "MessageIllegal",
    "MessageQueue",
    "NoBroker",
    "NoNameServer",
    "NoReply",
    "NoRoom",
    "NotOurQueue",
    "NotWritable",
    "PartlyStored",
    "Producer",
    "ProtocolError",
    "PullBlock",
    "PullConsumer",
    "PullResult",
    "PullStatus",
    "PushConsumer",
    "RemoteError",
    "RequestError",
    "RequirementMissing",
    "ResponseCode",
    "RetryLater",
    "RouteNotFound",
    "RowsPartlyStored",
    "SendEvent",
    "SendFuture",
    "SendReceipt",
    "SendStatus",
    "StoredMessage",
    "StrategyFailed",
    "SubscriptionConflict",
    "SubscriptionMalformed",
    "Suspend",
    "TableReceipt",
    "Tls",
    "TlsFailed",
    "Transaction",
    "TransactionProducer",
    "TransactionReceipt",
    "Vetoed",
    "by_hash",
    "by_machine_room",
    "by_random",
    "reply_to",
]
