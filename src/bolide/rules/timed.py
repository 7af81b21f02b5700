"""When a timed message is due.

A client says it in one of three properties.  The original keeps the time in whole steps (RocketMQ: timerPrecisionMs),
of which the last millisecond belongs to the step before, and delivers when the step is over; so `TIMER_OUT_MS` is the
beginning of the step in which a message is due.  Here the step tells where a message waits, and its own properties the
very millisecond.
"""

from collections.abc import Mapping

from bolide.model.errors import MessageIllegal
from bolide.model.message import Property
from bolide.model.numbers import parse_whole

_UNITS_MS = (  # the first that is there counts
    (Property.TIMER_DELAY_SEC, 1000),
    (Property.TIMER_DELAY_MS, 1),
)
ASKING = (Property.TIMER_DELAY_SEC, Property.TIMER_DELAY_MS, Property.TIMER_DELIVER_MS)


def asked_ms(properties: Mapping[str, str], now_ms: int) -> int | None:
    """The time that a message asks for, when its delay begins now; None when it asks for none.

    A delay is counted from the end of this millisecond: somewhere in it the message was sent, and for its sender it
    must not be over sooner.

    >>> asked_ms({"TIMER_DELAY_SEC": "5"}, 1000), asked_ms({"TIMER_DELIVER_MS": "77"}, 1000), asked_ms({}, 1000)
    (6001, 77, None)
    """
    for name, unit_ms in _UNITS_MS:
        if name in properties:
            delay_ms = _whole(name, properties[name]) * unit_ms
            return now_ms + delay_ms + (delay_ms > 0)
    text = properties.get(Property.TIMER_DELIVER_MS)
    return None if text is None else _whole(Property.TIMER_DELIVER_MS, text)


def _whole(name: str, text: str) -> int:
    number = parse_whole(text)
    if number is None:
        raise MessageIllegal(f"{name} is {text[:64]!r}, which is not a whole number")
    return number


def step_of(due_ms: int, step_ms: int) -> int:
    """The step in which a time falls, as the original counts.

    >>> step_of(5001, 1000), step_of(6000, 1000), step_of(6001, 1000)
    (5000, 5000, 6000)
    """
    return (due_ms - 1) // step_ms * step_ms


def promised_ms(properties: Mapping[str, str], out_ms: int, stored_ms: int, step_ms: int) -> int:
    """The very millisecond of a message that waits: never before what was asked for, and never out of its step.

    A delay is counted from when the record was stored.  One that has been written again since keeps its step.
    """
    try:
        asked = asked_ms(properties, stored_ms)
    except MessageIllegal:
        asked = None
    latest = out_ms + step_ms
    return latest if asked is None else min(max(asked, out_ms + 1), latest)


def roll_time(step: int, stored_step: int, window_ms: int) -> int | None:
    """When a message with a long delay is written to the log again, so that it does not expire; None when it need not.

    The last piece is never short: what is left is at least a sixth of the window.
    """
    left = step - stored_step
    if left < window_ms:
        return None
    return stored_step + (window_ms // 2 if left - window_ms < window_ms // 3 else window_ms)
