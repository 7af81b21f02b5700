"""Provoked: lines that strangers can make a server write.

Connections are free, and so is being refused: a line for each would fill the disk.  So a host gets one line of a kind
in a while, or some if each is about something else; all of them together get `machines/said.py`'s number, and the next
line says how many were left out.
"""

import logging
from collections.abc import Hashable

from bolide.machines.said import Said
from bolide.model.addresses import host_of
from bolide.model.clock import Clock


class Provoked:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said = Said()
        self._left_out = 0

    def say(
        self,
        log: logging.Logger,
        level: int,
        remote: str,
        text: str,
        *args: object,
        about: Hashable = None,
    ) -> None:
        """Something about whoever is at this address; `text` and `args` as in every log.

        `about` tells apart what operators want to read of singly, as long as it is little.
        """
        host = host_of(remote)
        what = (text, host, about)
        if not self._said.is_news(self._clock.monotonic_ms(), what, by=None if about is None else host):
            self._left_out += 1
            return
        if self._left_out:
            text, args = f"{text} (%d lines like this one were left out)", (*args, self._left_out)
            self._left_out = 0
        log.log(level, text, *args)
