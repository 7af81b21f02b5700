"""The blocking transaction producer: the one of `client/transaction_producer.py`, behind a thread.

The local function of a transaction runs in the thread that sends, so that it can use what belongs to that thread, such
as a connection to a database.
"""

import inspect
from collections.abc import Awaitable, Iterable
from typing import Unpack

from bolide.client import transaction_producer as transacting
from bolide.client.blocking.producer import Producer
from bolide.client.gather import SendReceipt
from bolide.client.loop_thread import shared_loop
from bolide.client.preparation import PACK_FROM_BYTES, ZLIB
from bolide.client.producer import RETRIES, SEND_TIMEOUT_MS
from bolide.client.results import SendStatus, Transaction, TransactionReceipt
from bolide.client.soon import LINGER_MS
from bolide.client.terms import ClientOptions
from bolide.client.transactions import Check, Local, known, not_known
from bolide.model.message import Message


class TransactionProducer(Producer):
    """Sends messages that are delivered if something else has happened; the others too, as a `Producer`.

    Example::

        def pay(message: Message) -> Transaction:
            database.execute("INSERT INTO payments ...")
            return Transaction.COMMIT

        def has_paid(message: StoredMessage) -> Transaction:
            row = database.fetch("SELECT ... WHERE id = ?", message.keys[0])
            return Transaction.COMMIT if row else Transaction.ROLLBACK

        with TransactionProducer("127.0.0.1:9876", group="payments", check=has_paid) as producer:
            producer.send_in_transaction(Message("paid", b"...", keys=["42"]), pay)

    Args:
        nameserver: one or several addresses, `host:port;host:port`.
        group: the producer group.  A broker that was not told how a transaction ended asks any member of it.
        check: a function, called with the stored message, that says how its transaction has ended:
            `Transaction.COMMIT`, `ROLLBACK` or `UNKNOWN`, and then it is asked again later.  A plain one is called in
            threads, a coroutine function on the clients' event loop.
        topics: to which this group sends in transactions.  Their brokers can ask from the start on and not only after
            the first send; where brokers create topics on demand they can without it.
        concurrency: how many calls of `check` may run at once.
        timeout_ms: how long a send may take, with all its retries.
        retries: how many other brokers a failed send tries.
        pack_from_bytes: bodies of this size or more are sent compressed.
        compression: how: "zlib", which every consumer reads, "lz4" or "zstd".
        avoid_slow_brokers: whether a broker that took half a second or longer, or failed, gets no messages for a while
            if there are others.
        trace: whether to tell of every message in the topic of traces, in the background.
        linger_ms: how long `send_soon` waits for more messages before it sends those that it has.
        options: what every client takes: see `ClientOptions`.
    """

    _core: transacting.TransactionProducer

    def __init__(
        self,
        nameserver: str,
        *,
        group: str,
        check: Check,
        topics: Iterable[str] = (),
        concurrency: int = transacting.CHECKS_AT_ONCE,
        timeout_ms: int = SEND_TIMEOUT_MS,
        retries: int = RETRIES,
        pack_from_bytes: int = PACK_FROM_BYTES,
        compression: str = ZLIB,
        avoid_slow_brokers: bool = False,
        trace: bool = False,
        linger_ms: int = LINGER_MS,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._loop = shared_loop()
        self._core = transacting.TransactionProducer(
            nameserver,
            group=group,
            check=check,
            topics=topics,
            concurrency=concurrency,
            timeout_ms=timeout_ms,
            retries=retries,
            pack_from_bytes=pack_from_bytes,
            compression=compression,
            avoid_slow_brokers=avoid_slow_brokers,
            trace=trace,
            linger_ms=linger_ms,
            **options,
        )
        self._share()

    def start(self) -> None:
        """Called by `with`.  The brokers get to know this producer, so that they can ask it."""
        self._loop.run(self._core.start())

    def send_in_transaction(
        self, message: Message, local: Local, *, timeout_ms: int | None = None
    ) -> TransactionReceipt:
        """Store a message that consumers get if `local` says so, and call `local`.

        What `local` raises is logged, stands in the receipt and counts as `Transaction.UNKNOWN`: the broker asks
        `check` later.  So it does when `local` is interrupted, or this process dies.  A message that is stored, but not
        as safely as the broker is configured for, is rolled back without a call of `local`.

        Args:
            message: what to send; without a delay, because it waits for the end of its transaction.
            local: a function, called with the message when it is stored as a half message, that does its work and
                says how it went: `Transaction.COMMIT`, `ROLLBACK` or `UNKNOWN`.
            timeout_ms: how long storing the half message may take, instead of the producer's own time for a send.

        Returns:
            Where the half message is, and what the broker was told.

        Raises:
            MessageIllegal, InvalidRequest: the message itself cannot be sent.
            RouteNotFound, RemoteError, CallTimeout, ConnectionLost: the message is not known to be stored, as of
                `send`; `local` was not called.
        """
        self._loop.check_caller()
        begun: list[SendReceipt] = []
        try:
            return self._transact(message, local, timeout_ms, begun)
        except BaseException:
            # On the loop and behind what was cancelled there: until then nobody knows whether it has begun.
            self._loop.call_soon(self._core.transactions.leave_all, begun)
            raise

    def _transact(
        self, message: Message, local: Local, timeout_ms: int | None, begun: list[SendReceipt]
    ) -> TransactionReceipt:
        """`begun` is told on the loop: an interrupt may come before this thread hears of it."""
        transactions = self._core.transactions

        async def begin() -> SendReceipt:
            begun.append(await transactions.begin(message, local, timeout_ms))
            return begun[0]

        receipt = self._loop.run(begin())
        if receipt.status is not SendStatus.SEND_OK:
            return self._loop.run(transactions.end(receipt, Transaction.ROLLBACK))
        error: Exception | None = None
        try:
            outcome = self._call(local, message)
        except Exception as raised:
            outcome, error = not_known("local", receipt.message_id, raised), raised
        return self._loop.run(transactions.end(receipt, outcome, error))

    def _call(self, local: Local, message: Message) -> Transaction:
        found: object = local(message)
        if inspect.isawaitable(found):
            found = self._loop.run(_awaited(found))
        return known("local", found)


async def _awaited(found: Awaitable[object]) -> object:
    return await found
