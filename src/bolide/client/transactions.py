"""Transactions: how those of one producer end, told to brokers (37), also when they ask (39).

A transaction whose local function still runs here is not checked: nobody knows yet how it ends, and the broker hears it
as soon as somebody does.  What a broker asks for has a new place in its log each time; it is told of the newest, or it
would ask again for what has ended.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from bolide.client import checks
from bolide.client.application import Calls
from bolide.client.gather import SendReceipt
from bolide.client.instance import ClientInstance
from bolide.client.preparation import Preparation
from bolide.client.results import Transaction, TransactionReceipt
from bolide.client.rounds import Seldom
from bolide.client.sending import Sending
from bolide.model.errors import (
    BolideError,
    ClientError,
    InvalidRequest,
    MalformedRecord,
    MessageIllegal,
    ProtocolError,
    RequestError,
)
from bolide.model.limits import CHECKS_WAITING_BYTES_MAX, CHECKS_WAITING_MAX, REMARK_LENGTH_MAX
from bolide.model.message import Message, Property, SysFlag
from bolide.model.pairs import parse_properties
from bolide.model.printable import printable_part
from bolide.model.properties import SCHEDULING
from bolide.net.link import Link
from bolide.record.decode import each_message
from bolide.record.layout import open_record
from bolide.record.message_id import parse_offset_id
from bolide.record.stored import StoredMessage
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.transaction import CheckTransaction, EndTransaction, Verdict

log = logging.getLogger(__name__)

SAY_AGAIN_MS = 10_000
TAKES = "a message"

Local = Callable[[Message], Transaction | Awaitable[Transaction]]
Check = Callable[[StoredMessage], Transaction | Awaitable[Transaction]]


class _Place(NamedTuple):
    """Where a half message lies now."""

    number: int
    log_offset: int


@dataclass(slots=True)
class _Open:
    """A transaction whose local function runs here."""

    place: _Place
    broker_name: str


@dataclass(slots=True)
class _Question:
    """What a broker wants to know; asked again meanwhile, the newest counts."""

    place: _Place
    link: Link


class Transactions:
    """The transactions of one producer group's member.

    Args:
        instance: the client.
        group: the producer group.
        sending: the way to the brokers.
        preparation: makes messages ready.
        check: asked how a transaction has ended.
        concurrency: how many calls of `check` may run at once.
    """

    def __init__(
        self,
        instance: ClientInstance,
        group: str,
        sending: Sending,
        preparation: Preparation,
        *,
        check: Check,
        concurrency: int,
    ) -> None:
        self._instance = instance
        self._group = group
        self._sending = sending
        self._preparation = preparation
        self._check = check
        self._calls = Calls(instance.surroundings, "bolide-check", concurrency)
        self._room = asyncio.Semaphore(concurrency)
        self._open: dict[str, _Open] = {}
        self._asked: dict[str, _Question] = {}
        self._asked_bytes = 0
        self._say = Seldom(instance.clock, SAY_AGAIN_MS)

    def close(self) -> None:
        self._calls.close()

    # ---- ended by who began it -----------------------------------------------------------------------------

    async def begin(self, message: Message, local: Local, timeout_ms: int | None) -> SendReceipt:
        """Store the half message.  What follows is the call of `local`, and `end` or `leave`."""
        checks.can_take(
            "local", checks.function("local", local, TAKES, InvalidRequest), 1, TAKES, InvalidRequest
        )
        own = {Property.TRANSACTION_PREPARED: "true", Property.PRODUCER_GROUP: self._group}
        outgoing = self._preparation.prepared(message, own)._replace(sys_flag=int(SysFlag.PREPARED))
        _check_comes_at_once(message)
        outgoing = await self._preparation.packed(outgoing)
        (receipt,) = await self._sending.watched(
            (message,), None, lambda: self._sending.store(outgoing, timeout_ms)
        )
        try:
            _, log_offset = parse_offset_id(receipt.offset_message_id)
        except RequestError as error:
            raise ProtocolError(f"the place of a half message that cannot be read: {error}") from error
        self._open[receipt.message_id] = _Open(
            _Place(receipt.queue_offset, log_offset), receipt.queue.broker_name
        )
        return receipt

    def leave(self, receipt: SendReceipt) -> None:
        """Nobody here will say how it ends: the broker asks."""
        self._open.pop(receipt.message_id, None)

    def leave_all(self, receipts: Iterable[SendReceipt]) -> None:
        for receipt in receipts:
            self.leave(receipt)

    async def end(
        self, receipt: SendReceipt, outcome: Transaction, error: Exception | None = None
    ) -> TransactionReceipt:
        """Tell the broker.  If that fails it asks, so nobody has to know."""
        known = self._open.pop(receipt.message_id, None)
        if known is None:
            raise ClientError(f"nobody waits for the end of the transaction of {receipt.message_id} any more")
        place = known.place
        command = self._end(place, receipt.message_id, receipt.queue.topic, outcome, error, asked=False)
        try:
            address = self._instance.routes.address(receipt.queue.broker_name)
            await self._instance.notify(address, command)
        except ClientError as trouble:
            log.warning(
                "the broker does not hear now how the transaction of %s has ended (%s), and will ask: %s",
                *(receipt.message_id, outcome.name, trouble),
            )
        return TransactionReceipt(
            receipt.message_id,
            receipt.offset_message_id,
            receipt.queue,
            receipt.queue_offset,
            receipt.status,
            outcome=outcome,
            error=error,
        )

    # ---- asked by a broker ---------------------------------------------------------------------------------

    def serve(self, link: Link, request: Command) -> Coroutine[None, None, None] | None:
        """39: how did this transaction end?"""
        try:
            header = CheckTransaction.decode(request.fields)
            record = open_record(request.body, 0, len(request.body))
        except (RequestError, MalformedRecord) as error:
            if self._say.is_due():
                log.warning("%s asks for a transaction that cannot be read: %s", link.remote, error)
            return None
        properties = parse_properties(
            str(request.body[record.properties_at : record.end], "utf-8", "replace")
        )
        message_id = properties.get(Property.UNIQUE_KEY) or header.msg_id
        if message_id is None or properties.get(Property.PRODUCER_GROUP) != self._group:
            return None
        place = _Place(header.tran_state_table_offset, header.commit_log_offset)
        broker_name = header.broker_name or self._instance.routes.name_at(link.remote)
        if (running := self._open.get(message_id)) is not None:
            if (
                running.broker_name == broker_name
            ):  # and not a copy that a lost acknowledgement has left elsewhere
                running.place = place
        elif (asked := self._asked.get(message_id)) is not None:
            asked.place, asked.link = place, link
        elif self._has_room_for(len(request.body)):
            question = self._asked[message_id] = _Question(place, link)
            self._asked_bytes += len(request.body)
            return self._answer(message_id, question, request.body, broker_name)
        return None

    def _has_room_for(self, size: int) -> bool:
        if len(self._asked) < CHECKS_WAITING_MAX and self._asked_bytes + size <= CHECKS_WAITING_BYTES_MAX:
            return True
        if self._say.is_due():
            log.warning(
                "brokers ask for more transactions than can be checked: %d wait (a larger `concurrency`, a faster"
                " `check`); they will ask again",
                len(self._asked),
            )
        return False

    async def _answer(self, message_id: str, question: _Question, body: bytes, broker_name: str) -> None:
        try:
            async with self._room:
                message = next(each_message(body, broker_name))
                call = self._calls.call(self._check, message)
                outcome, error = await outcome_of("check", call, message_id)
        finally:
            del self._asked[message_id]
            self._asked_bytes -= len(body)
        if question.link.is_open:
            end = self._end(question.place, message_id, message.topic, outcome, error, asked=True)
            question.link.notify(end)

    def _end(
        self,
        place: _Place,
        message_id: str,
        topic: str,
        outcome: Transaction,
        error: Exception | None,
        *,
        asked: bool,
    ) -> Command:
        header = EndTransaction(
            producer_group=self._group,
            tran_state_table_offset=place.number,
            commit_log_offset=place.log_offset,
            commit_or_rollback=Verdict[outcome.name],
            from_transaction_check=asked,
            msg_id=message_id,
            transaction_id=message_id,
            topic=topic,
        )
        remark = (
            None if error is None else printable_part(f"{type(error).__name__}: {error}", REMARK_LENGTH_MAX)
        )
        return Command(RequestCode.END_TRANSACTION, header.encode(), remark=remark)


def _check_comes_at_once(message: Message) -> None:
    """Brokers of the original would deliver a half message that is delayed, or lose its end."""
    asks = message.delay_level or message.deliver_at is not None or message.delay is not None
    if asks or any(name in message.properties for name in SCHEDULING):
        raise MessageIllegal(
            "a message that is sent in a transaction has no delay: it comes when the transaction is committed"
        )


async def outcome_of(
    what: str, call: Awaitable[object], message_id: str
) -> tuple[Transaction, Exception | None]:
    """What a function of the application says; what it raises means that it does not know, and is logged."""
    try:
        return known(what, await call), None
    except Exception as error:
        return not_known(what, message_id, error), error


def known(what: str, found: object) -> Transaction:
    if not isinstance(found, Transaction):
        raise BolideError(
            f"{what} returns Transaction.COMMIT, Transaction.ROLLBACK or Transaction.UNKNOWN,"
            f" not {checks.described(found)}"
        )
    return found


def not_known(what: str, message_id: str, error: Exception) -> Transaction:
    log.error(
        "%s failed for the transaction of %s, so how it ended is not known; the broker will ask for it",
        *(what, message_id),
        exc_info=error,
    )
    return Transaction.UNKNOWN
