"""Comings: lines about brokers that come and go.

Each is worth its line: whoever looks for a broker finds there what became of it.  But to register and to leave is free,
and who does it without end would fill the disk.  So a host gets many lines a minute, all of them together get more than
the largest cluster needs to start and to stop, and the rest is a number.  A part is for hosts with few.
"""

import logging
from collections import Counter

from bolide.model.addresses import host_of
from bolide.model.clock import Clock

PERIOD_MS = 60_000

LINES_OF_HOST_MAX = 200
"""In a period."""

LINES_MAX = 8_000
"""In a period, about all hosts."""

FEW = 4
"""Who has had fewer lines gets one from the last quarter, too."""


class Comings:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ms = clock.monotonic_ms()
        self._lines: Counter[str] = Counter()  # by host, of this period
        self._said = 0
        self._left_out = 0

    def say(self, log: logging.Logger, level: int, remote: str, text: str, *args: object) -> None:
        """Something about a broker that spoke from this address; `text` and `args` as in every log."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._since_ms >= PERIOD_MS:
            self._begin(log, now_ms)
        host = host_of(remote)
        of_host = self._lines[host]
        lines_max = LINES_MAX if of_host < FEW else LINES_MAX // 4 * 3
        if of_host >= LINES_OF_HOST_MAX or self._said >= lines_max:
            self._left_out += 1
            return
        self._said += 1
        self._lines[host] += 1
        log.log(level, text, *args)

    def _begin(self, log: logging.Logger, now_ms: int) -> None:
        if self._left_out:
            log.warning(
                "brokers came and went so often that %d lines about it were left out; most of the others are about %s",
                self._left_out,
                self._lines.most_common(1)[0][0],
            )
        self._since_ms = now_ms
        self._said = self._left_out = 0
        self._lines.clear()
