"""Delay levels: a message does not say how long it is to wait, but which of the broker's levels, the first being 1.

What a level means is the broker's to say (RocketMQ: messageDelayLevel).  A level above the highest acts as the highest.
"""

import re
from dataclasses import dataclass

from bolide.model.errors import ConfigError
from bolide.model.limits import DELAY_LEVELS_MAX

_UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DELAY = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)

DELAY_MS_MAX = 100 * 365 * _UNIT_MS["d"]


@dataclass(frozen=True, slots=True)
class DelayLevels:
    """How long each level waits."""

    delays_ms: tuple[int, ...]
    names: tuple[str, ...]
    """As they are written."""

    @classmethod
    def parse(cls, text: str) -> "DelayLevels":
        """From `1s 5s 10s`; `ConfigError` says what cannot be one."""
        names = tuple(text.split())
        if not 0 < len(names) <= DELAY_LEVELS_MAX:
            raise ConfigError(
                f"messageDelayLevel has {len(names)} levels; 1 to {DELAY_LEVELS_MAX} are possible"
            )
        return cls(tuple(map(parse_delay, names)), names)

    @property
    def highest(self) -> int:
        return len(self.delays_ms)

    def level(self, asked: int) -> int:
        """The level that acts for one above 0."""
        return min(asked, self.highest)

    def delay_ms(self, asked: int) -> int:
        return self.delays_ms[self.level(asked) - 1]

    def __str__(self) -> str:
        return " ".join(self.names)


def parse_delay(text: str) -> int:
    """Milliseconds of a delay such as `10s` or `2h`.

    >>> parse_delay("2h")
    7200000
    """
    found = _DELAY.fullmatch(text)
    delay_ms = int(found[1]) * _UNIT_MS[found[2]] if found else DELAY_MS_MAX + 1
    if delay_ms > DELAY_MS_MAX:
        raise ConfigError(
            f"{text[:64]!r} is no delay: a number and s, m, h or d, such as 10s; 100 years at most"
        )
    return delay_ms


DEFAULT_LEVELS = DelayLevels.parse("1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h")
