"""Notices: members are told that their group has changed (40), so that they share the queues anew.

A group that changes again before it was told is told once, of the last change: members ask for the list then.  Some
members are told at once, and after that so many in each round, whatever happens meanwhile: a group that never comes to
rest costs no more than one that changes now and then.
"""

import asyncio
from collections.abc import Iterator
from itertools import repeat

from bolide.net.link import Link
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.group import GroupRequest

TOLD_PER_ROUND = 32
ROUND_S = 0.005
"""Together some thousand notices a second, and a group of three hundred has heard in a twentieth of one."""


class Notices:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed: dict[str, tuple[Link, ...]] = {}  # groups to be told, with their members
        self._telling: Iterator[tuple[str, Link]] = iter(())  # what is left of one of them
        self._next_round: asyncio.TimerHandle | None = None

    def send(self, group: str, members: tuple[Link, ...]) -> None:
        self._changed[group] = members
        if self._next_round is None:
            self._tell_some()

    def close(self) -> None:
        if self._next_round is not None:
            self._next_round.cancel()

    def _tell_some(self) -> None:
        self._next_round = None
        for _ in range(TOLD_PER_ROUND):
            told = next(self._telling, None) or self._begin_next()
            if told is None:
                return
            self._next_round = self._next_round or self._loop.call_later(ROUND_S, self._tell_some)
            group, link = told
            if not link.is_congested:  # it looks for itself every 20 s; notices would only pile up
                link.notify(Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, GroupRequest(group).encode()))

    def _begin_next(self) -> tuple[str, Link] | None:
        """The first member of the group that has waited longest; None when none waits."""
        while self._changed:
            group = next(iter(self._changed))
            self._telling = zip(repeat(group), self._changed.pop(group))
            if (first := next(self._telling, None)) is not None:
                return first
        return None
