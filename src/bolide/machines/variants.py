"""Variants: do the members of a group subscribe to the same?

They must: a group has one set of subscriptions, the newest one, and members that expect another lose messages without
an error.  So each member's wish is compared with those of the others, and those that differ are kept to be shown.  A
machine: it is told who wants what, and who has left.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from bolide.model.limits import VARIANTS_BYTES_MAX
from bolide.model.names import retry_topic
from bolide.model.topic import TAG, Subscription

WISH_BYTES = 256
"""What one wish takes beside its texts."""

Wish = tuple[str, str]
"""A topic and the expression for it; one that is not by tags has its kind before it."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Members of a group that want the same."""

    wishes: tuple[Wish, ...] | None
    """None where there was no room to keep them."""
    client_ids: tuple[str, ...]


@dataclass(slots=True)
class _Group:
    wants: dict[str, int] = field(default_factory=dict)  # by client id, as the hash of all its wishes
    wishes: dict[int, tuple[Wish, ...]] = field(default_factory=dict)
    members: Counter[int] = field(default_factory=Counter)


class Variants:
    """What the members of all groups want."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._bytes = 0

    def heard(self, name: str, client_id: str, subscriptions: Iterable[Subscription]) -> bool:
        """A member says what it wants; tells whether that is new of it and not what all others want."""
        wishes = _wishes(name, subscriptions)
        wanted = hash(wishes)
        group = self._groups.setdefault(name, _Group())
        if wanted not in group.wishes and self._bytes + _size(wishes) <= VARIANTS_BYTES_MAX:
            self._bytes += _size(wishes)
            group.wishes[wanted] = wishes
        before = group.wants.get(client_id)
        if before == wanted:
            return False
        group.wants[client_id] = wanted
        group.members[wanted] += 1
        if before is not None:
            self._one_less(group, before)
        return len(group.members) > 1

    def left(self, name: str, client_id: str) -> None:
        group = self._groups.get(name)
        wanted = None if group is None else group.wants.pop(client_id, None)
        if group is None or wanted is None:
            return
        self._one_less(group, wanted)
        if not group.wants:
            del self._groups[name]

    def of(self, name: str) -> list[Variant]:
        """The wishes of a group's members, those of most members first; one or none where all want the same."""
        group = self._groups.get(name, _Group())
        members: dict[int, list[str]] = {}
        for client_id, wanted in group.wants.items():
            members.setdefault(wanted, []).append(client_id)
        ordered = sorted(members.items(), key=lambda row: (-len(row[1]), row[1]))
        return [Variant(group.wishes.get(wanted), tuple(ids)) for wanted, ids in ordered]

    def _one_less(self, group: _Group, wanted: int) -> None:
        group.members[wanted] -= 1
        if not group.members[wanted]:
            del group.members[wanted]
            self._bytes -= _size(group.wishes.pop(wanted, ()))


def _wishes(group: str, subscriptions: Iterable[Subscription]) -> tuple[Wish, ...]:
    """Without the retry topic, which push consumers add by themselves."""
    own = retry_topic(group)
    listed = (
        (
            one.topic,
            one.expression if one.expression_type == TAG else f"{one.expression_type}: {one.expression}",
        )
        for one in subscriptions
        if one.topic != own
    )
    return tuple(sorted(listed))


def _size(wishes: tuple[Wish, ...]) -> int:
    return sum(WISH_BYTES + 4 * (len(topic) + len(expression)) for topic, expression in wishes)
