"""Transactions: half messages are set aside, ended (37) and, once they were given up, opened again by hand (323).

Those that nobody ends are asked for by `broker/half_checks.py`.

Two ways in for an end, as for a send.  `on_ends` takes those of one read that nobody waits for: plain ones are stored
by compiled code (`broker/plain_ends.py`), others decided one by one and stored together.  `end` takes any one of them
and gives every error; what the first way refuses comes here too.
"""

import logging
from collections import deque
from collections.abc import Coroutine, Mapping

from bolide.broker.diversions import set_aside
from bolide.broker.half_checks import LONGEST, HalfChecks
from bolide.broker.half_messages import QUEUE, Ending, Half, HalfMessages
from bolide.broker.handlers.send import answer_stored
from bolide.broker.part import Part, Work
from bolide.broker.plain_ends import END_BYTES_MAX, PlainEnds
from bolide.broker.property_room import check_room
from bolide.broker.state import BrokerState
from bolide.model import names
from bolide.model.errors import (
    InvalidRequest,
    MessageIllegal,
    PermissionDenied,
    RequestError,
    StoreRefusal,
)
from bolide.model.limit import KIB
from bolide.model.limits import HALF_ROOM_BYTES, PROPERTIES_ROOM_BYTES
from bolide.model.message import TRANSACTION_MASK, Property, SysFlag
from bolide.model.offsets import LogOffset
from bolide.model.properties import SCHEDULING
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.net.turns import Slices
from bolide.record.message_id import parse_offset_id
from bolide.rules.transactions import checks_so_far, is_half
from bolide.store.new_message import Appended, NewMessage
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.frame import decode_frame
from bolide.wire.headers.transaction import EndTransaction, ResumeCheck, Verdict
from bolide.wire.send_run import EndRow, SendRun

log = logging.getLogger(__name__)

SLICE_BYTES = 256 * KIB
"""Of half messages whose ends are stored together."""

ENDS_PER_REQUEST = 4
"""So many ends of a run are served in the time of one request of the general way."""

_COMMITTED = int(SysFlag.COMMIT)
_ENDS = (int(Verdict.COMMIT), int(Verdict.ROLLBACK))


class Transactions(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self.halves = HalfMessages(state)
        self.checks = HalfChecks(state, self.halves)
        self._plain_ends = PlainEnds(state, self.halves)
        self._later: deque[tuple[Link, Command]] = deque()
        self._ending_later = Slices(self._end_one)
        state.diversions.add(self._divert, holds=True)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {
            RequestCode.END_TRANSACTION: self.end,
            RequestCode.RESUME_CHECK_HALF_MESSAGE: self.resume,
        }

    def work(self) -> list[Work]:
        return [("half messages", self.checks.run())]

    def figures(self) -> dict[str, str]:
        return {
            "openHalfMessages": str(self.halves.open_count),
            "halfMessagesGivenUp": str(self.checks.given_up),
            "halfMessagesWithoutRoom": str(self.checks.left),
        }

    def close(self) -> None:
        self._ending_later.close()
        self.halves.close()

    def _divert(
        self, message: NewMessage, properties: Mapping[str, str], *, is_taken: bool
    ) -> NewMessage | None:
        """A half message waits in the topic for such.  What its sender says of checks is not believed."""
        if not is_half(properties, message.reconsume_times):
            return None
        if self._state.settings.now.reject_half:
            raise PermissionDenied("this broker takes no transactional messages (rejectTransactionMessage)")
        own = {
            Property.TRANSACTION_ID: properties.get(Property.UNIQUE_KEY),
            Property.TRANSACTION_CHECKS: None,
            Property.PREPARED_QUEUE_OFFSET: None,
        }
        half = set_aside(message, names.HALF_TOPIC, QUEUE, **own)
        check_room(half.properties, PROPERTIES_ROOM_BYTES, of="those of the transaction")
        self._check_copies_fit(half)
        if not properties.keys().isdisjoint(SCHEDULING):  # or it could not be committed, asked for or not
            last = half.with_pairs(**LONGEST)
            self._as_committed(last, properties, message.topic, message.queue_id, None)
        return half._replace(sys_flag=half.sys_flag & ~TRANSACTION_MASK)

    def _check_copies_fit(self, half: NewMessage) -> None:
        """It is stored again with more properties, and each time with a record that marks it: in one segment."""
        size = len(half.body) + len(half.properties)
        room = self._state.settings.now.segment_bytes - HALF_ROOM_BYTES
        if size > room:
            raise MessageIllegal(
                f"body and properties have {size} bytes; a transactional message may have {room},"
                " or its copies would not fit a segment of the log (mappedFileSizeCommitLog)"
            )

    # ---- the end of a transaction --------------------------------------------------------------------------

    def end(self, link: Link, request: Command) -> Command | Coroutine[None, None, Command] | None:
        """37: most often one-way.  Nothing is done for a producer that does not know yet, and it is asked later.

        A transaction ends once: who says so again, or otherwise, is refused.
        """
        header = EndTransaction.decode(request.fields)
        if header.commit_or_rollback == Verdict.UNKNOWN:
            return request.answer()
        if header.commit_or_rollback not in (Verdict.COMMIT, Verdict.ROLLBACK):
            raise InvalidRequest(
                f"commitOrRollback is {header.commit_or_rollback}: 8 commits, 12 rolls back, 0 leaves it open"
            )
        half = self.halves.at(header.commit_log_offset)
        if half is None:
            raise RequestError(f"there is no half message at {header.commit_log_offset} of the log")
        kept_at = self.halves.ended([self._decided(header, half)]).end
        return answer_stored(self._state, link, request, request.answer(), names.HALF_TOPIC, kept_at)

    def on_ends(self, link: Link, run: SendRun, count: int) -> int:
        """Ends of one read, the first so many of a run; how many requests they count for.

        Whatever is refused, or large, goes the general way, where errors are made; nobody hears of them.
        """
        number = decided = 0
        while number < count:
            plain_end = self._plain_ends.store(link, run, number, count)
            # One that is not plain may be alone; behind two of them more are expected.
            rest_end = count if plain_end == number else min(plain_end + 1, count)
            self._end_others(link, run, range(plain_end, rest_end))
            decided += rest_end - plain_end
            number = rest_end
        return -(-decided // ENDS_PER_REQUEST)

    def _end_others(self, link: Link, run: SendRun, numbers: range) -> None:
        """Decide each of these, and store them together."""
        together: dict[int, tuple[int, Ending]] = {}  # by place, with its number in the run
        size = 0
        for number in numbers:
            ending = self._decided_row(link, run.end(number))
            if ending is None or ending.place in together or size >= SLICE_BYTES:
                self._store_ends(link, run, together)
                size = 0
            if ending is None or self.halves.is_ended(ending.place):
                self._end_later(link, decode_frame(run.end_frame(number)))
            else:
                together[ending.place] = (number, ending)
                size += ending.half.size
        self._store_ends(link, run, together)
        if self._later:
            self._ending_later.go()

    def _decided_row(self, link: Link, row: EndRow) -> Ending | None:
        """How it ends, if it may; None when the general way has to see it."""
        if row.commit_or_rollback not in _ENDS:
            return None
        try:
            half = self.halves.numbered(row.tran_state_table_offset, row.commit_log_offset, END_BYTES_MAX)
            ending = None if half is None else self._decided(row, half)
        except Exception:  # the general way meets the same and says so
            return None
        if half is None or half.own_queue is None:
            return None
        return ending if self._state.passes.may_send(link, half.own_queue[0].encode()) else None

    def _store_ends(self, link: Link, run: SendRun, together: dict[int, tuple[int, Ending]]) -> None:
        if not together:
            return
        try:
            self.halves.ended([ending for _, ending in together.values()])
        except (RequestError, StoreRefusal):  # each by itself may do
            for number, _ in together.values():
                self._end_later(link, decode_frame(run.end_frame(number)))
        together.clear()

    def _end_later(self, link: Link, request: Command) -> None:
        """By the general way, one in each turn of the loop: it may be of a large message, and there may be many."""
        link.began(request)
        self._later.append((link, request))

    def _end_one(self) -> bool:
        link, request = self._later.popleft()
        self._state.dispatcher.on_request(link, request)
        link.ended(request)
        return bool(self._later)

    def _decided(self, header: EndTransaction | EndRow, half: Half) -> Ending:
        """What is stored when this half message ends so; `RequestError` when it cannot."""
        self._check_named(header, half)
        place = self.halves.place_of(half)
        if place is None:
            raise RequestError(f"the transaction of half message {half.offset} has ended before")
        messages = [self._committed(half)] if header.commit_or_rollback == Verdict.COMMIT else []
        return Ending(half, place, messages)

    def _check_named(self, header: EndTransaction | EndRow, half: Half) -> None:
        """Whether that is the one that is meant, and it is theirs."""
        if half.group != header.producer_group:
            raise RequestError("that is not the producer group of this half message")
        if half.offset != header.tran_state_table_offset:
            raise RequestError(
                f"the half message at {header.commit_log_offset} is not number {header.tran_state_table_offset}"
            )
        # Power loss may have taken the one that is meant, and another one be in its place now.
        if header.transaction_id and half.unique_key not in (None, header.transaction_id, header.msg_id):
            raise RequestError(f"the half message at {header.commit_log_offset} is {half.unique_key}")

    def _committed(self, half: Half) -> NewMessage:
        """The message for its readers, or on its way to them if it asks for a later delivery.

        Its properties stay as they are, as in the original; the mark of a half message is not looked at any more.
        """
        own_queue = half.own_queue
        if own_queue is None:
            raise RequestError("the half message does not say to which topic and queue it belongs")
        name, queue_id = own_queue
        self._state.topics.require(name)
        queue_id = self._state.topics.queue_now(name, queue_id)
        return self._as_committed(half.message, half.properties, name, queue_id, half.log_offset)

    def _as_committed(
        self,
        message: NewMessage,
        properties: Mapping[str, str],
        topic: str,
        queue_id: int,
        half_at: int | None,
    ) -> NewMessage:
        """As it is stored when its transaction is over; `RequestError` when that cannot be.

        Without a place it is not taken yet, and its sender hears what cannot be.
        """
        committed = message._replace(
            topic=topic,
            queue_id=queue_id,
            sys_flag=message.sys_flag & ~TRANSACTION_MASK | _COMMITTED,
            prepared_offset=half_at or 0,
        )
        known = dict(properties)
        known.pop(Property.TRANSACTION_PREPARED, None)
        return self._state.diversions.of(committed, known, is_taken=half_at is not None)

    # ---- by hand -------------------------------------------------------------------------------------------

    def resume(self, link: Link, request: Command) -> Command | Coroutine[None, None, Command] | None:
        """323: a half message that was given up is open again, and its checks are counted from 0.

        Only such, and each once: the original makes a half message of any message, and as many as it is asked for.
        """
        header = ResumeCheck.decode(request.fields)
        _, log_offset = parse_offset_id(header.msg_id)
        record = self._state.store.reader.named_at(log_offset)
        message = None if record is None else NewMessage.of_record(record)
        if message is None or message.topic not in (names.TRANS_CHECK_MAX_TOPIC, names.HALF_TOPIC):
            raise RequestError(f"{header.msg_id} is no half message that was given up")
        anew = message._replace(topic=names.HALF_TOPIC, queue_id=QUEUE)
        if message.topic == names.HALF_TOPIC:
            stored = self._resume_open(log_offset, anew)
        elif self.halves.was_resumed(log_offset):
            raise RequestError(
                "this half message was resumed before; if it is given up again, resume that one"
            )
        else:
            own = {Property.TRANSACTION_CHECKS: "0", Property.PREPARED_QUEUE_OFFSET: None}
            (stored,) = self._state.door.append([anew._replace(prepared_offset=log_offset).with_pairs(**own)])
            self.halves.note_resumed(log_offset)
        end = LogOffset(0) if stored is None else stored.end
        return answer_stored(self._state, link, request, request.answer(), names.HALF_TOPIC, end)

    def _resume_open(self, log_offset: int, anew: NewMessage) -> Appended | None:
        half = self.halves.at(log_offset)
        place = None if half is None else self.halves.place_of(half)
        if half is None or place is None:
            raise RequestError("the transaction of this half message has ended")
        now = self.halves.number(place)
        if now is None:
            raise RequestError("this half message cannot be read")
        if checks_so_far(now.properties) == 0:
            return None  # as it is to be
        own = {Property.TRANSACTION_CHECKS: "0", Property.PREPARED_QUEUE_OFFSET: str(half.line)}
        stored = self._state.door.append([anew.with_pairs(**own), *self.halves.marks_of_move(now)])[0]
        self.halves.moved(now, int(stored.queue_offset))
        return stored
