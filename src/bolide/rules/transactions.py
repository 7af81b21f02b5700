"""Transactions: which messages are half ones, and what becomes of a half message that nobody has ended.  Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from bolide.model.limits import CHECK_IMMUNITY_MS_MAX
from bolide.model.message import TRANSACTION_MASK, Property, SysFlag, is_true
from bolide.model.numbers import parse_whole

_UNENDED = (int(SysFlag.PREPARED), int(SysFlag.ROLLBACK))


class Step(Enum):
    """What to do with an open half message."""

    WAIT = "its producer has some time left to end it by itself"
    PASS = "the same, but its producer has asked for a time of its own: others behind it may be due"
    CHECK = "its producer group is asked"
    GIVE_UP = "it was asked for often enough, or is too old"


@dataclass(frozen=True, slots=True)
class CheckRules:
    """The settings that decide it (RocketMQ: transactionTimeOut, transactionCheckMax, fileReservedTime)."""

    timeout_ms: int
    checks_max: int
    reserved_ms: int


def is_half(properties: Mapping[str, str], reconsume_times: int) -> bool:
    """Whether a message that is sent waits for the end of its transaction.

    One that was consumed and is sent to be tried again later is none, though old clients leave the mark in it.
    """
    if not is_true(properties.get(Property.TRANSACTION_PREPARED)):
        return False
    return not (reconsume_times > 0 and _number(properties, Property.DELAY) > 0)


def is_whole(sys_flag: int) -> bool:
    """Whether a message is of no transaction, or of one that was committed."""
    return sys_flag & TRANSACTION_MASK not in _UNENDED


def checks_so_far(properties: Mapping[str, str]) -> int:
    return max(0, _number(properties, Property.TRANSACTION_CHECKS))


def immunity_ms(properties: Mapping[str, str]) -> int | None:
    """The time that a message has asked for before its producer is asked; None when it has that of all others."""
    seconds = parse_whole(properties.get(Property.CHECK_IMMUNITY, ""))
    return None if seconds is None or seconds < 0 else min(seconds * 1000, CHECK_IMMUNITY_MS_MAX)


def next_step(properties: Mapping[str, str], age_ms: int, rules: CheckRules) -> Step:
    """What becomes of an open half message that came so long ago.

    While it is immune its checks are not counted, other than in the original, which gives up a message that asks for
    a quarter of an hour before its producer was asked once.
    """
    own_ms = immunity_ms(properties)
    if age_ms > max(rules.reserved_ms, rules.timeout_ms) or checks_so_far(properties) >= rules.checks_max:
        return Step.GIVE_UP
    if own_ms is not None:
        return Step.PASS if age_ms <= own_ms else Step.CHECK
    return Step.WAIT if age_ms <= rules.timeout_ms else Step.CHECK


def _number(properties: Mapping[str, str], name: str) -> int:
    return parse_whole(properties.get(name, "")) or 0
