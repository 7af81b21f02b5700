"""Planted bugs of messages that wait: each breaks a broker in one way, from outside, and must be found."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from bolide.broker import delivered as delivered_module
from bolide.broker import deliveries
from bolide.broker import timer as timer_module
from bolide.broker.deliveries import Deliveries
from bolide.broker.door import Door
from bolide.broker.half_messages import Ending, HalfMessages
from bolide.broker.handlers import retry
from bolide.broker.handlers.timer import Timers
from bolide.broker.plain_ends import PlainEnds
from bolide.broker.timer import Timer
from bolide.machines.half_window import HalfWindow
from bolide.model.names import DEAD_LETTER_PREFIX
from bolide.model.steps import Steps
from bolide.net.link import Link
from bolide.store.new_message import Appended, NewMessage
from bolide.store.timer.delivered import Delivered
from bolide.store.timer.index import TimerIndex
from bolide.store.timer.layout import DELETE
from bolide.store.timer.units import Unit, Units
from bolide.store.timer.wheel import Slot
from bolide.wire.send_run import SendRun

LATER_S = 0.2

# ---- delayed messages ----------------------------------------------------------------------------------------


def deliver_and_not_find_it_again(stack: ExitStack) -> None:
    """A start believes the file that says how far a level was delivered."""

    def first_undelivered(
        store: object, topics: object, queue: object, first: int, now_ms: int
    ) -> Steps[int]:
        yield
        return first

    stack.enter_context(patch.object(deliveries, "first_undelivered", first_undelivered))


def forget_a_delayed_message_before_it_is_delivered(stack: ExitStack) -> None:
    """The place is remembered, and what is due is stored a moment later."""

    def append(door: Door, due: Sequence[Any], done: Callable[[Any, int], None], _: object) -> None:
        done(due, 0)
        messages = [one.message for one in due if one.message is not None]
        asyncio.get_running_loop().call_later(LATER_S, door.append, messages)

    stack.enter_context(patch.object(deliveries, "append_due", append))


def remember_a_delivery_before_it_is_durable(stack: ExitStack) -> None:
    def tell_table(self: Deliveries) -> None:
        while self._unsafe:
            _, level, offset = self._unsafe.popleft()
            self._table.move(level.number, offset)

    stack.enter_context(patch.object(Deliveries, "tell_table", tell_table))


def deliver_a_millisecond_early(stack: ExitStack) -> None:
    _minus(stack, Deliveries, "_due_ms", 1)


def deliver_by_the_level_below(stack: ExitStack) -> None:
    _minus(stack, Deliveries, "_due_ms", 1000)


def deliver_at_once_what_is_from_the_future(stack: ExitStack) -> None:
    """As the original does when its clock was set back."""

    def due_ms(self: Deliveries, level: Any, *given: Any) -> int:
        *_, time_ms, now_ms = given
        is_too_far = time_ms > now_ms + self._delays.delay_ms(level.number)
        return deliveries.LOOK_NOW if is_too_far else int(real(self, level, *given))

    real = Deliveries._due_ms
    stack.enter_context(patch.object(Deliveries, "_due_ms", due_ms))


def forget_what_came_while_the_clock_was_set_back(stack: ExitStack) -> None:
    """A start looks for delivered messages among those stored since they were due, as if time never went back."""

    def first_undelivered(store: Any, topics: Any, queue: Any, first: int, now_ms: int) -> Steps[int]:
        return real(store, topics, queue, first, 1 << 62)

    real = delivered_module.first_undelivered
    stack.enter_context(patch.object(deliveries, "first_undelivered", first_undelivered))


# ---- timed messages ------------------------------------------------------------------------------------------


def deliver_a_timed_message_a_millisecond_early(stack: ExitStack) -> None:
    _minus(stack, timer_module, "promised_ms", 1)


def forget_what_the_log_says_was_delivered(stack: ExitStack) -> None:
    def delivered_since(*_: object, **__: object) -> Steps[Delivered]:
        yield
        return Delivered(set(), 0, 0)

    stack.enter_context(patch.object(timer_module, "delivered_since", delivered_since))


def file_the_last_message_twice(stack: ExitStack) -> None:
    """A start writes one more unit for a message that has one: its slot names it twice."""

    def opening(self: Timer) -> Steps[None]:
        yield from real(self)
        self.queue_offset = max(0, self.queue_offset - 1)

    real = Timer.opening
    stack.enter_context(patch.object(Timer, "opening", opening))


def write_the_timers_point_ahead_of_the_log(stack: ExitStack) -> None:
    async def keep_once(self: Timers) -> None:
        if self._next is None and self._is_due():
            self._next = (self.timer.point(), 0, self.timer.changes)
        await real(self)

    real = Timers._keep_once
    stack.enter_context(patch.object(Timers, "_keep_once", keep_once))


def ignore_recalls_found_by_a_start(stack: ExitStack) -> None:
    def chain(self: TimerIndex, unit: Unit, at: int, slot: Slot) -> None:
        if not (unit.kind & DELETE and at < self.units.limit and self.units.read(at) is not None):
            real(self, unit, at, slot)

    real = TimerIndex._chain
    stack.enter_context(patch.object(TimerIndex, "_chain", chain))


def leave_the_recalls_out_at_a_stop(stack: ExitStack) -> None:
    """A stop in the middle of a slot takes what recalls for done."""

    def keep_only(self: TimerIndex, slot_ms: int, remaining: set[int]) -> None:
        of_slot = list(self.chain(self.wheel.slot(slot_ms).last))
        real(self, slot_ms, remaining - {at for at, unit in of_slot if unit.kind & DELETE})

    real = TimerIndex.keep_only
    stack.enter_context(patch.object(TimerIndex, "keep_only", keep_only))


def trust_the_units_of_a_killed_process(stack: ExitStack) -> None:
    stack.enter_context(patch.object(Units, "doubt_from", lambda units, at: None))


def begin_a_slot_before_its_recalls_are_filed(stack: ExitStack) -> None:
    stack.enter_context(patch.object(Timer, "_is_behind", lambda timer, now_ms: False))


def look_for_what_may_not_be_read_after_a_minute(stack: ExitStack) -> None:
    stack.enter_context(patch.object(Timer, "_queue_end", 0))


def leave_late_units_in_the_slot_where_they_were(stack: ExitStack) -> None:
    """A start that finds the clock set back takes them as they are, and they come when that slot does."""
    stack.enter_context(patch.object(TimerIndex, "_is_late", lambda index, unit: False))


def lose_the_slot_of_a_lost_unit(stack: ExitStack) -> None:
    """A slot that speaks of a unit which power loss has taken is taken for empty."""

    def chains_of(self: TimerIndex, slots: dict[int, Slot]) -> Steps[None]:
        yield

    stack.enter_context(patch.object(TimerIndex, "_chains_of", chains_of))


# ---- transactions --------------------------------------------------------------------------------------------


def commit_without_the_op_record(stack: ExitStack) -> None:
    def ended(self: HalfMessages, endings: Sequence[Ending]) -> Appended:
        for half, place, messages in endings:
            appended = self._state.door.append(messages or [self.op_record(place)])
            self._forget(half, place)
        return appended[-1]

    stack.enter_context(patch.object(HalfMessages, "ended", ended))
    _decide_each_end(stack)


def write_the_op_record_before_the_message(stack: ExitStack) -> None:
    def ended(self: HalfMessages, endings: Sequence[Ending]) -> Appended:
        for half, place, messages in endings:
            appended = self._state.door.append([self.op_record(place)])
            self._forget(half, place)
            if messages:
                asyncio.get_running_loop().call_later(LATER_S, self._state.door.append, messages)
        return appended[-1]

    stack.enter_context(patch.object(HalfMessages, "ended", ended))
    _decide_each_end(stack)


def forget_plain_ends(stack: ExitStack) -> None:
    """Those that are stored without a decision of their own stay open until a start reads their marks."""

    def store(ends: PlainEnds, link: Link, run: SendRun, first: int, last: int) -> int:
        with patch.object(HalfWindow, "finish"):
            return real(ends, link, run, first, last)

    real = PlainEnds.store
    stack.enter_context(patch.object(PlainEnds, "store", store))


def _decide_each_end(stack: ExitStack) -> None:
    stack.enter_context(patch.object(PlainEnds, "store", lambda ends, link, run, first, last: first))


def open_all_of_a_line_again(stack: ExitStack) -> None:
    """A start takes each place of a half message that was asked for as a transaction of its own."""
    stack.enter_context(patch.object(HalfMessages, "_recall_lines", lambda halves: None))


def forget_the_last_commit(stack: ExitStack) -> None:
    """A start does not look at the end of the log, where power loss parts a message from its op record."""
    stack.enter_context(patch.object(HalfMessages, "_end_last", lambda halves: None))


def settle_halves_before_it_is_durable(stack: ExitStack) -> None:
    def keep_settled(self: HalfMessages) -> None:
        self._next = replace(self._next, log_end=0)
        real(self)
        self._next = replace(self._next, log_end=0)
        real(self)

    real = HalfMessages.keep_settled
    stack.enter_context(patch.object(HalfMessages, "keep_settled", keep_settled))


# ---- failed messages -----------------------------------------------------------------------------------------


def acknowledge_a_failed_message_before_it_is_kept(stack: ExitStack) -> None:
    def answer_stored(state: object, link: object, request: object, answer: Any, *_: object) -> Any:
        return answer

    stack.enter_context(patch.object(retry, "answer_stored", answer_stored))


def write_dead_letters_twice(stack: ExitStack) -> None:
    def append(self: Door, messages: list[NewMessage]) -> list[Appended]:
        dead = [message for message in messages if message.topic.startswith(DEAD_LETTER_PREFIX)]
        return real(self, [*messages, *dead])

    real = Door.append
    stack.enter_context(patch.object(Door, "append", append))


def _minus(stack: ExitStack, owner: object, name: str, ms: int) -> None:
    real = getattr(owner, name)
    stack.enter_context(patch.object(owner, name, lambda *given: real(*given) - ms))


PLANTS: dict[str, Callable[[ExitStack], None]] = {
    plant.__name__.replace("_", "-"): plant
    for plant in (
        deliver_and_not_find_it_again,
        forget_a_delayed_message_before_it_is_delivered,
        remember_a_delivery_before_it_is_durable,
        deliver_a_millisecond_early,
        deliver_by_the_level_below,
        deliver_at_once_what_is_from_the_future,
        forget_what_came_while_the_clock_was_set_back,
        deliver_a_timed_message_a_millisecond_early,
        forget_what_the_log_says_was_delivered,
        file_the_last_message_twice,
        write_the_timers_point_ahead_of_the_log,
        ignore_recalls_found_by_a_start,
        leave_the_recalls_out_at_a_stop,
        trust_the_units_of_a_killed_process,
        begin_a_slot_before_its_recalls_are_filed,
        look_for_what_may_not_be_read_after_a_minute,
        leave_late_units_in_the_slot_where_they_were,
        lose_the_slot_of_a_lost_unit,
        commit_without_the_op_record,
        write_the_op_record_before_the_message,
        forget_plain_ends,
        open_all_of_a_line_again,
        forget_the_last_commit,
        settle_halves_before_it_is_durable,
        acknowledge_a_failed_message_before_it_is_kept,
        write_dead_letters_twice,
    )
}

THEMES = {
    "leave-late-units-in-the-slot-where-they-were": "timed",
    "leave-the-recalls-out-at-a-stop": "timed",
    "begin-a-slot-before-its-recalls-are-filed": "timed",
    "lose-the-slot-of-a-lost-unit": "together",
    "trust-the-units-of-a-killed-process": "timed",
    "forget-the-last-commit": "half",
    "settle-halves-before-it-is-durable": "half",
    "write-the-timers-point-ahead-of-the-log": "timed",
    "look-for-what-may-not-be-read-after-a-minute": "timed",
    "acknowledge-a-failed-message-before-it-is-kept": "failing",
}
"""Which lives to look at for those that show rarely."""

FIRST_SEEDS = {
    "forget-the-last-commit": 249,
    "look-for-what-may-not-be-read-after-a-minute": 222,
    "forget-what-came-while-the-clock-was-set-back": 153,
    "ignore-recalls-found-by-a-start": 136,
    "leave-late-units-in-the-slot-where-they-were": 116,
}
"""The first life that shows a rare one, where the code is as it was when this was written; the hunt goes on from it."""
