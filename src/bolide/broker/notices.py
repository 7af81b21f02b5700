"""Notices: members are told that their group has changed (40), so that they share the queues anew.

A member that was not told yet is told once, however often its group changes meanwhile; it asks for the members then.
In a large group that takes some turns of the event loop.
"""

from collections.abc import Iterable

from bolide.net.link import Link
from bolide.net.turns import Slices
from bolide.wire.codes import RequestCode
from bolide.wire.command import Command
from bolide.wire.headers.group import GroupRequest

TOLD_PER_TURN = 64


class Notices:
    def __init__(self) -> None:
        self._waiting: dict[tuple[Link, str], None] = {}
        self._telling = Slices(self._tell_some)

    def send(self, group: str, links: Iterable[Link]) -> None:
        self._waiting.update(dict.fromkeys((link, group) for link in links))
        self._telling.go()

    def _tell_some(self) -> bool:
        for _ in range(min(TOLD_PER_TURN, len(self._waiting))):
            link, group = next(iter(self._waiting))
            del self._waiting[link, group]
            if not link.is_congested:  # it looks for itself every 20 s; notices would only pile up
                link.notify(Command(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, GroupRequest(group).encode()))
        return bool(self._waiting)
