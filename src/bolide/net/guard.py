"""Guard: may this connection do that?  Asked on both ways in, so that no request goes around it.

The dispatcher asks before every handler.  Plain sends and planned pulls do not come through the dispatcher; for them
`Passes` asks once per connection and topic and remembers the answer, until the guard's rules change.  What a
connection has no pass for takes the general way, where the dispatcher refuses it with the reason.  Where everybody may
do everything there is nothing to remember.
"""

from typing import Protocol

from bolide.model.limits import PASSES_MAX
from bolide.net.link import Link
from bolide.wire.codes import Need
from bolide.wire.command import Command


class Guard(Protocol):
    """A rule for who may do what."""

    revision: int
    """Changes whenever the rule does: passes that were given before count no more."""

    def check(self, link: Link, need: Need, request: Command) -> None:
        """`PermissionDenied` when whoever sent this request does not have the right that it needs."""

    def passes(self, link: Link, need: Need, topic: str, group: str | None) -> bool:
        """Whether all plain requests of this kind may be served to this connection unasked."""


class OpenHouse:
    """Everybody may do everything."""

    revision = 0

    def check(self, link: Link, need: Need, request: Command) -> None:
        pass

    def passes(self, link: Link, need: Need, topic: str, group: str | None) -> bool:
        return True


class Passes:
    """What the guard has said, by connection."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._is_open = isinstance(guard, OpenHouse)

    def may_send(self, link: Link, topic: bytes) -> bool:
        """Of a topic that exists: what is asked about is remembered."""
        if self._is_open:
            return True
        known = self._known(link).get(topic)
        if known is not None:
            return known
        return self._ask(link, topic, Need.PUBLISH, topic.decode("utf-8", "replace"), None)

    def may_pull(self, link: Link, topic_and_group: tuple[str, str]) -> bool:
        if self._is_open:
            return True
        known = self._known(link).get(topic_and_group)
        if known is not None:
            return known
        return self._ask(link, topic_and_group, Need.SUBSCRIBE, *topic_and_group)

    def check_pull(self, link: Link, request: Command, topic_and_group: tuple[str, str]) -> None:
        """For a pull that was admitted some time ago: `PermissionDenied` when it would not be now."""
        if not self.may_pull(link, topic_and_group):
            self._guard.check(link, Need.SUBSCRIBE, request)

    def _known(self, link: Link) -> dict[bytes | tuple[str, str], bool]:
        if link.passes_revision != self._guard.revision:
            link.passes_revision = self._guard.revision
            link.passes.clear()
        return link.passes

    def _ask(
        self, link: Link, key: bytes | tuple[str, str], need: Need, topic: str, group: str | None
    ) -> bool:
        if len(link.passes) >= PASSES_MAX:
            link.passes.clear()
        answer = link.passes[key] = self._guard.passes(link, need, topic, group)
        return answer
