"""TransactionProducer: sends messages that are delivered if something else has happened, on asyncio.

A message is stored as a half message, which no consumer sees; then the application's local function does its work and
says how it went; then the broker is told (`client/transactions.py`).  A producer that dies in between is asked later,
or another member of its group is.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Iterable
from typing import Unpack

from bolide.client import checks
from bolide.client.application import Calls, awaited
from bolide.client.gather import SendReceipt
from bolide.client.instance import Serve
from bolide.client.preparation import PACK_FROM_BYTES, ZLIB
from bolide.client.producer import RETRIES, SEND_TIMEOUT_MS, Producer
from bolide.client.results import SendStatus, Transaction, TransactionReceipt
from bolide.client.rounds import Periodic
from bolide.client.soon import LINGER_MS
from bolide.client.terms import ClientOptions
from bolide.client.transactions import TAKES, Check, Local, Transactions, outcome_of
from bolide.model.errors import ClientError, ConfigError, RouteNotFound
from bolide.model.functions import is_coroutine_function
from bolide.model.message import Message
from bolide.model.names import DEFAULT_TOPIC
from bolide.net.surroundings import Surroundings
from bolide.net.tasks import Tasks
from bolide.wire.codes import RequestCode

CHECKS_AT_ONCE = 4
CHECKS_AT_ONCE_MAX = 1000
LOCALS_AT_ONCE = 32
"""Plain local functions that run at once, each in a thread."""

MEET_PERIOD_MS = 5_000
MET_PERIOD_MS = 60_000
"""Between two looks for topics that nobody has yet, and for the one that brokers have only if they create topics."""


class TransactionProducer(Producer):
    """Sends messages that are delivered if something else has happened; the others too, as a `Producer`.

    Example::

        async def pay(message: Message) -> Transaction:
            await database.execute("INSERT INTO payments ...")
            return Transaction.COMMIT

        async def has_paid(message: StoredMessage) -> Transaction:
            row = await database.fetch("SELECT ... WHERE id = ?", message.keys[0])
            return Transaction.COMMIT if row else Transaction.ROLLBACK

        async with TransactionProducer("127.0.0.1:9876", group="payments", check=has_paid) as producer:
            await producer.send_in_transaction(Message("paid", b"...", keys=["42"]), pay)

    Args:
        nameserver: one or several addresses, `host:port;host:port`.
        group: the producer group.  A broker that was not told how a transaction ended asks any member of it.
        check: a function, called with the stored message, that says how its transaction has ended:
            `Transaction.COMMIT`, `ROLLBACK` or `UNKNOWN`, and then it is asked again later.  A plain one is called in
            threads, a coroutine function on the event loop.
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

    def __init__(
        self,
        nameserver: str,
        *,
        group: str,
        check: Check,
        topics: Iterable[str] = (),
        concurrency: int = CHECKS_AT_ONCE,
        timeout_ms: int = SEND_TIMEOUT_MS,
        retries: int = RETRIES,
        pack_from_bytes: int = PACK_FROM_BYTES,
        compression: str = ZLIB,
        avoid_slow_brokers: bool = False,
        trace: bool = False,
        linger_ms: int = LINGER_MS,
        surroundings: Surroundings | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        checks.can_take("check", checks.function("check", check, TAKES), 1, TAKES)
        concurrency = checks.number("concurrency", concurrency, 1, CHECKS_AT_ONCE_MAX)
        self._unknown_topics = {DEFAULT_TOPIC, *map(checks.topic, _several(topics))}
        super().__init__(
            nameserver,
            group=group,
            timeout_ms=timeout_ms,
            retries=retries,
            pack_from_bytes=pack_from_bytes,
            compression=compression,
            avoid_slow_brokers=avoid_slow_brokers,
            trace=trace,
            linger_ms=linger_ms,
            surroundings=surroundings,
            **options,
        )
        self.transactions = Transactions(
            self._instance, group, self.sending, self.preparation, check=check, concurrency=concurrency
        )
        self._locals = Calls(self._instance.surroundings, "bolide-local", LOCALS_AT_ONCE)
        self._tasks = Tasks()
        self._ends = Tasks()  # of transactions whose senders were cancelled

    def _serves(self) -> dict[int, Serve]:
        return {
            **super()._serves(),
            RequestCode.CHECK_TRANSACTION_STATE: self.transactions.serve,
        }

    async def start(self) -> None:
        """Called by `async with`.  The brokers get to know this producer, so that they can ask it."""
        await super().start()
        meeting = Periodic("the greeting of brokers", MEET_PERIOD_MS, self._meet)
        meeting.soon()
        self._tasks.start(meeting.run(), "meeting brokers")

    async def close(self) -> None:
        """Called by `async with`.  Waits for local functions whose senders were cancelled, as long as a send may take;
        says goodbye to the brokers and closes the connections.
        """
        self._instance.check_place()
        await self._ends.end_within(self.sending.time(None))
        await self._tasks.close()
        self.transactions.close()
        self._locals.close()
        await super().close()

    async def send_in_transaction(
        self, message: Message, local: Local, *, timeout_ms: int | None = None
    ) -> TransactionReceipt:
        """Store a message that consumers get if `local` says so, and call `local`.

        What `local` raises is logged, stands in the receipt and counts as `Transaction.UNKNOWN`: the broker asks
        `check` later.  So it does when `local` is interrupted, or this process dies.  A plain `local` that runs in its
        thread when this call is cancelled goes on, and the broker is told how it ended.  A message that is stored, but
        not as safely as the broker is configured for, is rolled back without a call of `local`.

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
        receipt = await self.transactions.begin(message, local, timeout_ms)
        if receipt.status is not SendStatus.SEND_OK:
            return await self.transactions.end(receipt, Transaction.ROLLBACK)
        if is_coroutine_function(local):
            return await self._end(receipt, self._locals.call(local, message))
        function = _InThread(local)
        thread = asyncio.ensure_future(self._locals.call(function, message))
        try:
            await asyncio.wait((thread,))
        except BaseException:
            if function.forestall():
                thread.cancel()
                self.transactions.leave(receipt)
            else:  # nobody can stop it, and a check would come before what it is about to do
                self._ends.start(self._end_later(receipt, thread), f"the end of {receipt.message_id}")
            raise
        return await self._end(receipt, _found(thread))

    async def _end(self, receipt: SendReceipt, call: Awaitable[object]) -> TransactionReceipt:
        try:
            outcome, error = await outcome_of("local", call, receipt.message_id)
        except BaseException:
            self.transactions.leave(receipt)
            raise
        return await self.transactions.end(receipt, outcome, error)

    async def _end_later(self, receipt: SendReceipt, thread: "asyncio.Future[tuple[object]]") -> None:
        """Nobody waits for it any more but the broker."""
        await self._end(receipt, _found(thread))

    async def _meet(self) -> int | None:
        """Be known to the brokers of all topics; gives the pause until those that nobody has are asked for again."""
        for topic in sorted(self._unknown_topics):
            try:
                await self._instance.routes.route(topic)
            except RouteNotFound:
                continue
            self._unknown_topics.discard(topic)
            await self._instance.greet_all()
        return None if self._unknown_topics - {DEFAULT_TOPIC} else MET_PERIOD_MS


class _InThread:
    """A plain local function on its way to a thread: it is called or kept from it, whatever comes first."""

    def __init__(self, local: Local) -> None:
        self._local = local
        self._turns = [True]

    def forestall(self) -> bool:
        """Keep it from being called; False if it was already."""
        try:
            return self._turns.pop()
        except IndexError:
            return False

    def __call__(self, message: Message) -> tuple[object]:
        if not self.forestall():
            raise ClientError("who sent in this transaction was cancelled before")
        return (self._local(message),)  # as it is: something to be awaited belongs to its sender


async def _found(thread: "asyncio.Future[tuple[object]]") -> object:
    """What came of it at last."""
    (found,) = await thread
    return await awaited(found) if inspect.isawaitable(found) else found


def _several(topics: object) -> Iterable[object]:
    if isinstance(topics, str | bytes) or not isinstance(topics, Iterable):
        raise ConfigError(f"topics is a list of topics, as in ['orders'], not {checks.described(topics)}")
    return topics
