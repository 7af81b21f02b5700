"""HalfChecks: half messages that nobody ends.  Their producers are asked (39), and in the end they are given up.

A look goes over all that are open, the oldest first, some in each turn of the loop.
"""

import logging

from bolide.broker.half_messages import QUEUE, Half, HalfMessages
from bolide.broker.property_room import room_in
from bolide.broker.state import BrokerState
from bolide.machines.immune_halves import ImmuneHalves
from bolide.model import names
from bolide.model.errors import BolideError, RecordTooLarge
from bolide.model.limit import KIB
from bolide.model.message import Property
from bolide.model.numbers import INT32_MAX, INT64_MAX
from bolide.model.offsets import LogOffset
from bolide.model.steps import Steps
from bolide.net.link import Link
from bolide.net.provoked import Provoked
from bolide.net.ticks import pause
from bolide.net.trouble import Trouble, goes_on
from bolide.net.turns import in_turns
from bolide.record.message_id import format_offset_id
from bolide.rules.transactions import CheckRules, Step, checks_so_far, immunity_ms, next_step
from bolide.store.new_message import NewMessage
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.transaction import CheckTransaction

log = logging.getLogger(__name__)

SLICE_HALVES = 16
SLICE_BYTES = 256 * KIB
"""Half messages that are looked at in one turn."""

SETTLE_S = 1.0

LOOKS_MAX = 64

LONGEST = {Property.TRANSACTION_CHECKS: str(INT32_MAX), Property.PREPARED_QUEUE_OFFSET: str(INT64_MAX)}
"""What a half message gets each time that it is stored again, at its longest."""


class HalfChecks:
    def __init__(self, state: BrokerState, halves: HalfMessages) -> None:
        self._state = state
        self._halves = halves
        self._turn = 0  # whose turn it is among the members of a group
        self.given_up = 0
        self.left = 0
        """Of the last look: those that cannot be stored again."""
        self._immune = ImmuneHalves()
        self._looks: list[tuple[int, int]] = []  # where the half messages ended, and the monotonic time then
        self._provoked = Provoked(state.clock)

    @goes_on("asking how transactions have ended")
    async def run(self) -> None:
        trouble = Trouble(log, "half messages cannot be asked for now")
        clock, settings = self._state.clock, self._state.settings
        last_ms = clock.monotonic_ms()
        while True:
            await pause(min(SETTLE_S, settings.now.transaction_check_interval_ms / 1000))
            try:
                if clock.monotonic_ms() - last_ms >= settings.now.transaction_check_interval_ms:
                    last_ms = clock.monotonic_ms()
                    await in_turns(self.checking())
                self._halves.keep_settled()
            except BolideError as error:
                trouble.met(error)
            else:
                trouble.over()

    def checking(self) -> Steps[None]:
        """Look at all half messages that are open now, the oldest first, and do what is due, some in each step.

        One that is too young ends it: those behind are younger.  One that has asked for a time of its own is passed
        over and stays where it is: however much time it asks for, waiting stores nothing.
        """
        self.left = 0
        self._note_look()
        self._immune.begin(self._halves.window.first)
        offset: int | None = self._halves.window.first
        end = self._halves.end
        while offset is not None:
            offset = self._check_some(offset, end)
            yield
        if self._halves.end > end:  # what was stored again counts as settled when it is durable
            self._state.door.sync_soon()

    def _check_some(self, offset: int, end: int) -> int | None:
        """Where to go on; None when there is nothing more to be done."""
        now_ms, rules = self._state.clock.now_ms(), self._rules()
        size = 0
        for _ in range(SLICE_HALVES):
            place = self._halves.window.next_open(offset, end)
            if place is None:
                return None
            offset = self._immune.behind(place, now_ms)
            if offset > place:
                continue
            offset = place + 1
            half = self._halves.number(place)
            if half is None:
                behind = self._pass_over(place)
                if behind is None:
                    return None
                offset = behind
                continue
            step = next_step(half.properties, self._age_ms(half, now_ms), rules)
            if step is Step.WAIT:
                return None
            if step is not Step.PASS:
                self._do(half, step)
            elif half.came_ms <= now_ms:
                self._immune.note(place, half.came_ms + (immunity_ms(half.properties) or 0))
            else:
                self._immune.stays()
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
        self._looks.append((self._halves.end, self._state.clock.monotonic_ms()))

    def _rules(self) -> CheckRules:
        settings = self._state.settings.now
        return CheckRules(
            settings.transaction_timeout_ms, settings.transaction_checks_max, settings.retention.reserved_ms
        )

    def _pass_over(self, offset: int) -> int | None:
        """Where to go on behind one that cannot be read; None while that may change."""
        start = self._state.store.reader.queue_range(names.HALF_TOPIC, QUEUE)[0]
        if offset < start:
            self._halves.window.finish_all_below(start)
            return int(start)
        if not self._halves.is_gone(offset):
            return None
        log.error("half message %d cannot be read, and is passed over", offset)
        self._halves.gone(offset)
        return offset + 1

    def _do(self, half: Half, step: Step) -> None:
        """All of it is stored, or nothing.  One that can never be stored again stays, and keeps nobody waiting."""
        if half.own_queue is None or room_in(half.message.with_pairs(**LONGEST).properties) < 0:
            step = Step.GIVE_UP  # of another broker; it cannot be asked for
        try:
            if step is Step.GIVE_UP:
                self._give_up(half)
            else:
                self._check(half)
        except (RecordTooLarge, ValueError) as error:  # it does not fit a segment, or a record
            self.left += 1
            self._immune.stays()
            text = "half message %d of the producer group %s cannot be stored again, and is passed over: %s"
            self._provoked.say(log, logging.ERROR, "", text, half.offset, half.group, error)

    def _check(self, half: Half) -> None:
        again = _again(half)
        place = self._state.door.append([again, *self._halves.marks_of_move(half)])[0]
        self._halves.moved(half, int(place.queue_offset))
        self._ask(
            half._replace(message=again, offset=int(place.queue_offset), log_offset=int(place.log_offset))
        )

    def _give_up(self, half: Half) -> None:
        copy = half.message._replace(
            topic=names.TRANS_CHECK_MAX_TOPIC, queue_id=0, prepared_offset=half.log_offset
        )
        self._state.door.append([copy, self._halves.op_record(half.offset)])
        self._halves.gone(half.offset)
        self.given_up += 1
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


def _again(half: Half) -> NewMessage:
    """A half message to be stored once more, with the first of its line; each time counts."""
    return half.message.with_pairs(
        **{
            Property.PREPARED_QUEUE_OFFSET: str(half.line),
            Property.TRANSACTION_CHECKS: str(checks_so_far(half.properties) + 1),
        }
    )
