"""What a change of a running broker's settings may cost: messages that go, clients that are turned away.

Of a setting that is not here, a change can be changed back, and nothing is lost meanwhile.
"""

from collections.abc import Callable, Mapping

from bolide.model.message import is_true
from bolide.model.numbers import parse_whole
from bolide.model.topic import Permission

Cost = Callable[[str, str], str]
"""From the old and the new value to what is lost by that; empty when nothing is."""


def stakes_of(before: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """A sentence for each setting whose change costs something.

    >>> stakes_of({"fileReservedTime": "72"}, {"fileReservedTime": "48"})
    ['fileReservedTime=48: messages go when they are older than 48 hours']
    >>> stakes_of({"fileReservedTime": "72"}, {"fileReservedTime": "96"})
    []
    """
    costs = {
        key: _COSTS[key](before.get(key, ""), value.strip())
        for key, value in given.items()
        if key in _COSTS and value.strip() != before.get(key, "").strip()
    }
    return [f"{key}={given[key].strip()}: {cost}" for key, cost in costs.items() if cost]


def _if_less(words: str) -> Cost:
    """Also when one of them is no number: who keeps it knows."""

    def cost(old: str, new: str) -> str:
        now, then = parse_whole(old.strip()), parse_whole(new)
        return "" if now is not None and then is not None and then >= now else words.format(new)

    return cost


def _if_becomes(value: bool, words: str) -> Cost:
    return lambda _, new: words if is_true(new) == value else ""


def _always(words: str) -> Cost:
    return lambda _, new: words.format(new)


def _permission(old: str, new: str) -> str:
    try:
        lost = (int(old) if old else Permission.READ_WRITE) & ~int(new)
    except ValueError:
        return "producers or consumers may be turned away"
    words = []
    if lost & Permission.WRITE:
        words.append("producers are turned away")
    if lost & Permission.READ:
        words.append("consumers get no messages")
    return " and ".join(words)


_COSTS: Mapping[str, Cost] = {
    "brokerPermission": _permission,
    "fileReservedTime": _if_less("messages go when they are older than {} hours"),
    "deleteWhen": _always("messages that are old enough go at these hours of the day"),
    "diskMaxUsedSpaceRatio": _if_less("messages that are old enough go when the disk is {} % full"),
    "diskSpaceCleanForciblyRatio": _if_less("messages go whatever their age when the disk is {} % full"),
    "diskSpaceWarningLevelRatio": _if_less("messages are refused when the disk is {} % full"),
    "cleanFileForciblyEnable": _if_becomes(True, "messages go whatever their age when the disk is too full"),
    "rejectTransactionMessage": _if_becomes(True, "transactions are refused"),
    "transactionCheckMax": _if_less("transactions that nobody decides are given up after {} checks"),
    "timerWheelEnable": _if_becomes(False, "messages for a time of their own are refused"),
    "enablePropertyFilter": _if_becomes(False, "groups that filter by SQL get no messages"),
    "disableConsumeIfConsumerReadSlowly": _if_becomes(True, "groups that are far behind get no messages"),
}
