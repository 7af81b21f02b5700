"""Transactions: half messages are set aside, ended (37) and, when nobody ends them, asked for (39, 323).

Two ways in for an end, as for a send.  `on_ends` takes those of one read that nobody waits for: they are decided one by
one and stored together.  `end` takes any one of them and gives every error; what the first way refuses comes here too.
"""

import logging
from collections import deque
from collections.abc import Coroutine, Mapping

from bolide.broker.diversions import set_aside
from bolide.broker.half_messages import QUEUE, Ending, Half, HalfMessages
from bolide.broker.handlers.send import answer_stored
from bolide.broker.part import Part, Work
from bolide.broker.property_room import check_room, room_in
from bolide.broker.state import BrokerState
from bolide.model import names
from bolide.model.errors import (
    BolideError,
    InvalidRequest,
    MessageIllegal,
    PermissionDenied,
    RecordTooLarge,
    RequestError,
    StoreRefusal,
)
from bolide.model.limit import KIB
from bolide.model.limits import HALF_LINES_MAX, HALF_ROOM_BYTES, PROPERTIES_ROOM_BYTES
from bolide.model.message import TRANSACTION_MASK, Property, SysFlag
from bolide.model.numbers import INT32_MAX, INT64_MAX
from bolide.model.offsets import LogOffset
from bolide.model.properties import SCHEDULING
from bolide.model.steps import Steps
from bolide.net.link import Link
from bolide.net.provoked import Provoked
from bolide.net.registry import Handler
from bolide.net.ticks import pause
from bolide.net.trouble import Trouble, goes_on
from bolide.net.turns import Slices, in_turns
from bolide.record.message_id import format_offset_id, parse_offset_id
from bolide.rules.transactions import CheckRules, Step, checks_so_far, immunity_ms, is_half, next_step
from bolide.store.new_message import Appended, NewMessage
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.frame import decode_frame
from bolide.wire.headers.transaction import CheckTransaction, EndTransaction, ResumeCheck, Verdict
from bolide.wire.send_run import EndRow, SendRun

log = logging.getLogger(__name__)

SLICE_HALVES = 16
SLICE_BYTES = 256 * KIB
"""Half messages that are looked at in one turn."""

SETTLE_S = 1.0

LOOKS_MAX = 64

END_BYTES_MAX = 16 * KIB
"""Half messages whose ends are decided with others: all ends of a run are served in one turn."""

ENDS_PER_REQUEST = 4
"""So many ends of a run are served in the time of one request of the general way."""

_COMMITTED = int(SysFlag.COMMIT)
_ENDS = (int(Verdict.COMMIT), int(Verdict.ROLLBACK))

_LONGEST = {Property.TRANSACTION_CHECKS: str(INT32_MAX), Property.PREPARED_QUEUE_OFFSET: str(INT64_MAX)}
"""What a half message gets each time that it is stored again, at its longest."""


class Transactions(Part):
    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self.halves = HalfMessages(state)
        self._turn = 0  # whose turn it is among the members of a group
        self._given_up = 0
        self._left = 0  # of the last look: those that cannot be stored again
        self._immune: dict[int, int] = {}  # until when a half message is not to be looked at
        self._looks: list[tuple[int, int]] = []  # where the half messages ended, and the monotonic time then
        self._provoked = Provoked(state.clock)
        self._later: deque[tuple[Link, Command]] = deque()
        self._ending_later = Slices(self._end_one)
        state.diversions.add(self._divert)

    def handlers(self) -> dict[RequestCode, Handler]:
        return {
            RequestCode.END_TRANSACTION: self.end,
            RequestCode.RESUME_CHECK_HALF_MESSAGE: self.resume,
        }

    def work(self) -> list[Work]:
        return [("half messages", self._check_now_and_then())]

    def figures(self) -> dict[str, str]:
        return {
            "openHalfMessages": str(self.halves.open_count),
            "halfMessagesGivenUp": str(self._given_up),
            "halfMessagesWithoutRoom": str(self._left),
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
            last = half.with_pairs(**_LONGEST)
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
        together: dict[int, tuple[int, Ending]] = {}  # by place, with its number in the run
        size = 0
        for number in range(count):
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
        return -(-count // ENDS_PER_REQUEST)

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
        topic = self._state.topics.require(name)
        if queue_id >= topic.queues > 0:  # it has fewer now
            queue_id %= topic.queues
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

    # ---- when nobody ends it -------------------------------------------------------------------------------

    @goes_on("asking how transactions have ended")
    async def _check_now_and_then(self) -> None:
        trouble = Trouble(log, "half messages cannot be asked for now")
        clock, settings = self._state.clock, self._state.settings
        last_ms = clock.monotonic_ms()
        while True:
            await pause(min(SETTLE_S, settings.now.transaction_check_interval_ms / 1000))
            try:
                if clock.monotonic_ms() - last_ms >= settings.now.transaction_check_interval_ms:
                    last_ms = clock.monotonic_ms()
                    await in_turns(self.checking())
                self.halves.keep_settled()
            except BolideError as error:
                trouble.met(error)
            else:
                trouble.over()

    def checking(self) -> Steps[None]:
        """Look at all half messages that are open now, the oldest first, and do what is due, some in each step.

        One that is too young ends it: those behind are younger.  One that has asked for a time of its own is passed
        over and stays where it is: however much time it asks for, waiting stores nothing.
        """
        self._left = 0
        self._note_look()
        offset: int | None = self.halves.window.first
        end = self.halves.end
        while offset is not None:
            offset = self._check_some(offset, end)
            yield
        if self.halves.end > end:  # what was stored again counts as settled when it is durable
            self._state.door.sync_soon()

    def _check_some(self, offset: int, end: int) -> int | None:
        """Where to go on; None when there is nothing more to be done."""
        now_ms, rules = self._state.clock.now_ms(), self._rules()
        size = 0
        for _ in range(SLICE_HALVES):
            place = self.halves.window.next_open(offset, end)
            if place is None:
                return None
            offset = place + 1
            if now_ms <= self._immune.get(place, -1):
                continue
            half = self.halves.number(place)
            if half is None:
                behind = self._pass_over(place)
                if behind is None:
                    return None
                offset = behind
                continue
            step = next_step(half.properties, self._age_ms(half, now_ms), rules)
            if step is Step.WAIT:
                return None
            if step is Step.PASS:
                if half.came_ms <= now_ms:
                    self._note_immune(half)
            else:
                self._do(half, step)
            size += len(half.message.body) + len(half.message.properties)
            if size >= SLICE_BYTES:
                break
        return offset

    def _age_ms(self, half: Half, now_ms: int) -> int:
        """How long ago it came.  If that is in the future the clock was set back: then for how long it is known of."""
        if half.came_ms <= now_ms:
            return now_ms - half.came_ms
        known_ms = next((known_ms for end, known_ms in self._looks if half.line < end), None)
        return 0 if known_ms is None else self._state.clock.monotonic_ms() - known_ms

    def _note_look(self) -> None:
        """So that it is known how long half messages are known of.  Of many looks the older ones tell it less exactly:
        never too long."""
        if len(self._looks) >= LOOKS_MAX:
            del self._looks[1::2]
        self._looks.append((self.halves.end, self._state.clock.monotonic_ms()))

    def _note_immune(self, half: Half) -> None:
        """So that it need not be read to be passed over; what is forgotten is read again."""
        if len(self._immune) >= HALF_LINES_MAX:
            self._immune.clear()
        self._immune[half.offset] = half.came_ms + (immunity_ms(half.properties) or 0)

    def _rules(self) -> CheckRules:
        settings = self._state.settings.now
        return CheckRules(
            settings.transaction_timeout_ms, settings.transaction_checks_max, settings.retention.reserved_ms
        )

    def _pass_over(self, offset: int) -> int | None:
        """Where to go on behind one that cannot be read; None while that may change."""
        start = self._state.store.reader.queue_range(names.HALF_TOPIC, QUEUE)[0]
        if offset < start:
            self.halves.window.finish_all_below(start)
            return int(start)
        if not self.halves.is_gone(offset):
            return None
        log.error("half message %d cannot be read, and is passed over", offset)
        self.halves.gone(offset)
        return offset + 1

    def _do(self, half: Half, step: Step) -> None:
        """All of it is stored, or nothing.  One that can never be stored again stays, and keeps nobody waiting."""
        if half.own_queue is None or room_in(half.message.with_pairs(**_LONGEST).properties) < 0:
            step = Step.GIVE_UP  # of another broker; it cannot be asked for
        try:
            if step is Step.GIVE_UP:
                self._give_up(half)
            else:
                self._check(half)
        except (RecordTooLarge, ValueError) as error:  # it does not fit a segment, or a record
            self._left += 1
            text = "half message %d of the producer group %s cannot be stored again, and is passed over: %s"
            self._provoked.say(log, logging.ERROR, "", text, half.offset, half.group, error)

    def _check(self, half: Half) -> None:
        again = _again(half)
        place = self._state.door.append([again, *self.halves.marks_of_move(half)])[0]
        self.halves.moved(half, int(place.queue_offset))
        self._ask(
            half._replace(message=again, offset=int(place.queue_offset), log_offset=int(place.log_offset))
        )

    def _give_up(self, half: Half) -> None:
        copy = half.message._replace(
            topic=names.TRANS_CHECK_MAX_TOPIC, queue_id=0, prepared_offset=half.log_offset
        )
        self._state.door.append([copy, self.halves.op_record(half.offset)])
        self.halves.gone(half.offset)
        self._given_up += 1
        text = "half message %d of the producer group %s is given up: nobody has ended its transaction"
        self._provoked.say(log, logging.WARNING, "", text, half.offset, half.group, about=half.group)

    def _ask(self, half: Half) -> None:
        """39: whoever of the group can be reached; the next time it is another one."""
        member = self._somebody_of(half.group)
        if member is None or half.own_queue is None:
            return
        topic, queue_id = half.own_queue
        identity = self._state.identity
        header = CheckTransaction(
            tran_state_table_offset=half.offset,
            commit_log_offset=half.log_offset,
            msg_id=half.unique_key,
            transaction_id=half.unique_key,
            offset_msg_id=format_offset_id(identity.store_host, LogOffset(half.log_offset)),
            topic=names.HALF_TOPIC,
            broker_name=identity.name,
        )
        message = half.message._replace(topic=topic, queue_id=queue_id)
        body = message.record(
            half.offset, half.log_offset, self._state.clock.now_ms(), identity.store_host, sealed=False
        )
        member.notify(Command(RequestCode.CHECK_TRANSACTION_STATE, header.encode(), body))

    def _somebody_of(self, group: str) -> Link | None:
        links = [member.connection for member in self._state.clients.producers(group)]
        self._turn += 1
        for number in range(len(links)):
            link = links[(self._turn + number) % len(links)]
            if link.is_open and not link.is_behind:
                return link
        return None

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


def _again(half: Half) -> NewMessage:
    """A half message to be stored once more, with the first of its line; each time counts."""
    return half.message.with_pairs(
        **{
            Property.PREPARED_QUEUE_OFFSET: str(half.line),
            Property.TRANSACTION_CHECKS: str(checks_so_far(half.properties) + 1),
        }
    )
