"""What clients give back."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from bolide.client.gather import SendReceipt
from bolide.model.errors import BolideError, ClientError
from bolide.model.offsets import GroupOffset, MessageQueue, QueueOffset
from bolide.record.stored import StoredMessage


class SendStatus(Enum):
    """How safe a stored message is.  Only `SEND_OK` reached what the broker is configured for.

    Example::

        receipt = producer.send(Message("orders", b"paid"))
        if receipt.status is not SendStatus.SEND_OK:
            print("stored, but:", receipt.status.value)
    """

    SEND_OK = "stored as safely as the broker is configured for"
    FLUSH_DISK_TIMEOUT = "stored, but not known to be on disk in time"
    FLUSH_SLAVE_TIMEOUT = "stored, but not known to be on a replica in time"
    SLAVE_NOT_AVAILABLE = "stored, but there is no replica in reach"


class Transaction(Enum):
    """How a transaction ends: what the functions of a `TransactionProducer` return.

    Example::

        def was_paid(message: StoredMessage) -> Transaction:
            return Transaction.COMMIT if store(message) else Transaction.ROLLBACK

        TransactionProducer("127.0.0.1:9876", group="payments", check=was_paid)
    """

    COMMIT = "consumers get the message"
    ROLLBACK = "nobody ever gets it"
    UNKNOWN = "not known yet: the broker asks later"


@dataclass(frozen=True, slots=True)
class TransactionReceipt:
    """What came of a message that was sent in a transaction: a receipt, and how the transaction ended.

    Example::

        with TransactionProducer("127.0.0.1:9876", group="payments", check=check) as payments:
            receipt = payments.send_in_transaction(Message("paid", b"42"), lambda message: Transaction.COMMIT)
            print(receipt.outcome, receipt.error)

    Its place is that of the half message, which waits for the end of the transaction: consumers get a copy.
    """

    message_id: str
    offset_message_id: str
    queue: MessageQueue
    queue_offset: QueueOffset
    status: SendStatus
    recall_handle: str | None = None
    outcome: Transaction = Transaction.UNKNOWN
    """What the broker was told."""
    error: Exception | None = None
    """What the local function raised; then the outcome is `UNKNOWN`."""


class PartlyStored(ClientError):
    """Some of several messages are stored, and then something went wrong.

    Example::

        try:
            producer.send_many(Message("orders", b"%d" % number) for number in range(1000))
        except PartlyStored as error:
            print([number for number, receipt in enumerate(error.receipts) if receipt is None], error.cause)

    `receipts` has an entry for each message in its order: its receipt, or None where nobody has acknowledged it.  One
    that was under way when the connection was lost may be stored nevertheless.  `cause` is what went wrong.
    """

    def __init__(self, receipts: Sequence[SendReceipt | None], cause: BolideError) -> None:
        stored = sum(receipt is not None for receipt in receipts)
        super().__init__(
            f"{stored} of {len(receipts)} messages are stored, see `receipts` of this error; then: {cause}"
        )
        self.receipts = list(receipts)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class TableReceipt:
    """What came of a table that was sent: all of it is stored.

    Example::

        receipt = producer.send_arrow(pa.table({"body": ["first", "second"]}), topic="orders")
        print(receipt.rows, "rows in", receipt.requests, "requests")
    """

    rows: int
    requests: int
    less_safe: int
    """How many of the rows are stored, but not as safely as their brokers are configured for (see `SendStatus`)."""


class RowsPartlyStored(ClientError):
    """Some rows of a table are stored, and then something went wrong.

    Example::

        table = pa.table({"body": ["first", "second"]})
        try:
            producer.send_arrow(table, topic="orders")
        except RowsPartlyStored as error:
            print("again:", table.take(error.missing), "and what is behind", error.taken, error.cause)

    `missing` has the numbers of those that nobody has acknowledged, of the first `taken` rows; those behind were not
    looked at.  A row that was under way when the connection was lost may be stored nevertheless.  `cause` is what went
    wrong.
    """

    def __init__(self, stored: int, missing: Sequence[int], taken: int, cause: BolideError) -> None:
        super().__init__(
            f"{stored} rows are stored, {len(missing)} of the first {taken} are not (`missing` of this error has them),"
            f" and those behind were not sent; then: {cause}"
        )
        self.stored = stored
        self.missing = list(missing)
        self.taken = taken
        self.cause = cause


class PullStatus(Enum):
    """What a pull found.

    Example::

        result = reader.pull(queue, offset=0)
        if result.status is PullStatus.NO_NEW_MESSAGE:
            print("read to the end")
    """

    FOUND = "messages were found"
    NO_NEW_MESSAGE = "the offset is at the end of the queue"
    NO_MATCHED_MESSAGE = "messages were examined and none matched; go on at next_offset"
    OFFSET_ILLEGAL = "the offset is outside the queue; go on at next_offset"


@dataclass(frozen=True, slots=True)
class PullBlock:
    """A pull's answer with the records as the broker stores them, not decoded.

    Example::

        block = reader.pull_block(queue, offset=0)
        print(len(block.data), "bytes of records; the next pull is made at", block.next_offset)
    """

    status: PullStatus
    next_offset: GroupOffset
    min_offset: QueueOffset
    max_offset: QueueOffset
    data: bytes
    suggested_broker_id: int = 0


@dataclass(frozen=True, slots=True)
class PullResult:
    """A pull's answer.  Continue at `next_offset`; the queue reaches from `min_offset` to before `max_offset`.

    Example::

        result = reader.pull(queue, offset=0)
        print([message.body for message in result.messages], "then", result.next_offset)
    """

    status: PullStatus
    next_offset: GroupOffset
    min_offset: QueueOffset
    max_offset: QueueOffset
    messages: list[StoredMessage]
