"""SlowBrokers: which brokers a producer avoids for a while, because they answered slowly or not at all.

Told what happened and when; never chooses a queue, and asks nobody (RocketMQ: MQFaultStrategy, the numbers of 5.2 and
later).  What it remembers is only who is avoided now.
"""

from bisect import bisect_right
from typing import NamedTuple

LATENCIES_MS = (50, 100, 550, 1_800, 3_000, 5_000, 15_000)
AVOIDED_MS = (0, 0, 2_000, 5_000, 6_000, 10_000, 30_000)
"""Who took as long as a number of the first line, or longer, is avoided as long as the second line says."""

FAILURE_MS = 10_000
"""A failure counts as an answer that took so long."""


class _Avoided(NamedTuple):
    until_ms: int
    has_answered: bool


class SlowBrokers:
    """Times are those of a monotonic clock."""

    def __init__(self) -> None:
        self._avoided: dict[str, _Avoided] = {}

    def answered(self, broker: str, took_ms: int, now_ms: int) -> None:
        """It has stored a message, after so long."""
        self._note(broker, avoided_ms(took_ms), now_ms, has_answered=True)

    def failed(self, broker: str, now_ms: int, *, has_answered: bool) -> None:
        """It has refused a message, or has not answered at all."""
        self._note(broker, avoided_ms(FAILURE_MS), now_ms, has_answered=has_answered)

    def is_available(self, broker: str, now_ms: int) -> bool:
        """Whether there is nothing against it."""
        avoided = self._avoided.get(broker)
        return avoided is None or avoided.until_ms <= now_ms

    def is_reachable(self, broker: str, now_ms: int) -> bool:
        """Whether it may be slow or refuse, but answers as far as is known."""
        avoided = self._avoided.get(broker)
        return avoided is None or avoided.until_ms <= now_ms or avoided.has_answered

    def _note(self, broker: str, span_ms: int, now_ms: int, *, has_answered: bool) -> None:
        if span_ms:
            self._avoided = {  # so that nobody is remembered who is in no route any more
                name: avoided for name, avoided in self._avoided.items() if avoided.until_ms > now_ms
            }
            self._avoided[broker] = _Avoided(now_ms + span_ms, has_answered)
        else:
            self._avoided.pop(broker, None)


def avoided_ms(took_ms: int) -> int:
    """How long to avoid a broker that took so long.

    >>> avoided_ms(30), avoided_ms(549), avoided_ms(550), avoided_ms(60_000)
    (0, 0, 2000, 30000)
    """
    at = bisect_right(LATENCIES_MS, took_ms)
    return AVOIDED_MS[at - 1] if at else 0
