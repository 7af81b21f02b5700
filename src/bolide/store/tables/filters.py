"""FilterTable: which groups filter which topics by an expression, now or until lately; `config/consumerFilter.json`.

A broker here judges messages by what its clients say in heartbeats, and needs none of this.  It is kept for the
original: which computes bit maps for the groups in its file, and believes them for messages that are younger than the
subscription (`bornTime`).  So a subscription that changes is born anew, one that nobody has any more is dead, and is
forgotten some time later.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bolide.model.clock import Clock
from bolide.model.errors import InvalidRequest, StoreError
from bolide.model.json_pieces import Entries
from bolide.model.limits import FILTER_TABLE_BYTES_MAX
from bolide.model.numbers import is_int64
from bolide.model.topic import Subscription
from bolide.rules.bloom import BITS, bit_positions
from bolide.store.disk import Disk
from bolide.store.small_file import DAMAGED
from bolide.store.tables.persisted import PersistedTable, entries_of, member_table

log = logging.getLogger(__name__)

SILENT_BEFORE_STOP_MS = 30_000
"""So long before a start its groups count as gone; they come back with their heartbeats."""
ENTRY_BYTES = 512
"""What an entry takes beside its texts."""


@dataclass(frozen=True, slots=True)
class KeptFilter:
    """One group's expression for one topic (RocketMQ: ConsumerFilterData)."""

    group: str
    topic: str
    expression: str
    kind: str
    born_ms: int
    dead_ms: int
    """0 while somebody has it."""
    client_version: int

    @property
    def is_dead(self) -> bool:
        return self.dead_ms >= self.born_ms

    @property
    def kept_bytes(self) -> int:
        return ENTRY_BYTES + 4 * (2 * len(self.group) + 2 * len(self.topic) + len(self.expression))

    def as_json(self) -> dict[str, Any]:
        return {
            "bloomFilterData": {"bitNum": BITS, "bitPos": bit_positions(self.group, self.topic)},
            "bornTime": self.born_ms,
            "clientVersion": self.client_version,
            "consumerGroup": self.group,
            "dead": self.is_dead,
            "deadTime": self.dead_ms,
            "expression": self.expression,
            "expressionType": self.kind,
            "topic": self.topic,
        }

    @classmethod
    def from_json(cls, topic: str, group: str, members: object) -> "KeptFilter":
        if not isinstance(members, Mapping):
            raise InvalidRequest(f"the filter of {group[:255]!r} for {topic[:255]!r} is not a JSON object")
        born_ms, dead_ms, version = (members.get(key, 0) for key in ("bornTime", "deadTime", "clientVersion"))
        expression, kind = members.get("expression"), members.get("expressionType")
        if not (is_int64(born_ms) and is_int64(dead_ms) and is_int64(version)):
            raise InvalidRequest(f"the filter of {group[:255]!r} for {topic[:255]!r} has no times")
        if not isinstance(expression, str) or not isinstance(kind, str):
            raise InvalidRequest(f"the filter of {group[:255]!r} for {topic[:255]!r} has no expression")
        return cls(group, topic, expression, kind, born_ms, dead_ms, version)


class FilterTable(PersistedTable):
    """Filters by topic and group."""

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        super().__init__(disk, path, clock)
        self._topics: dict[str, dict[str, KeptFilter]] = {}
        self._groups: dict[str, set[str]] = {}  # the topics of each
        self._dead: dict[tuple[str, str], None] = {}  # topic and group, who died first first
        self._bytes = 0

    def load(self) -> None:
        """As others do, but a broker that needs none of this begins without what it cannot read."""
        try:
            super().load()
        except StoreError as error:
            self.file.set_aside()
            log.warning(
                "%s begins anew; what was there has the ending %s now: %s", self.file.path, DAMAGED, error
            )

    def __iter__(self) -> Iterator[KeptFilter]:
        return (kept for groups in self._topics.values() for kept in groups.values())

    def get(self, topic: str, group: str) -> KeptFilter | None:
        return self._topics.get(topic, {}).get(group)

    def subscribed(self, group: str, subscriptions: Iterable[Subscription]) -> None:
        """These are all the expressions that the group has now, if any; what it had for other topics is dead."""
        wanted = {one.topic: one for one in subscriptions}
        for topic in self._groups.get(group, set()) - wanted.keys():
            self._bury(topic, group)
        for one in wanted.values():
            self._take_over(group, one)

    def forget_dead(self, after_ms: int) -> None:
        """Those that have been dead for so long."""
        now = self._clock.now_ms()
        while self._dead:
            topic, group = next(iter(self._dead))
            if now - self._topics[topic][group].dead_ms < after_ms:
                return
            self._drop(topic, group)
            self.mark_dirty()

    def members(self) -> dict[str, Any]:
        return {"filterDataByTopic": Entries(self._rows())}

    def _rows(self) -> Iterator[tuple[str, Any]]:
        for topic, groups in entries_of(self._topics):
            filters = Entries((group, kept.as_json()) for group, kept in entries_of(groups))
            yield topic, Entries([("groupFilterData", filters), ("topic", topic)])

    def _take(self, members: Mapping[str, Any]) -> None:
        read = [
            KeptFilter.from_json(topic, group, kept)
            for topic, row in member_table(members, "filterDataByTopic").items()
            for group, kept in _groups_of(topic, row)
        ]
        at_latest = self._clock.now_ms() - SILENT_BEFORE_STOP_MS
        found = [one if one.is_dead else replace(one, dead_ms=max(one.born_ms, at_latest)) for one in read]
        for kept in found:
            self._put(kept)
        died = sorted(found, key=lambda one: one.dead_ms)
        self._dead = {(one.topic, one.group): None for one in died if self.get(one.topic, one.group) is one}

    # ---- one filter ----------------------------------------------------------------------------------------

    def _take_over(self, group: str, wanted: Subscription) -> None:
        known = self.get(wanted.topic, group)
        is_same = known is not None and (known.expression, known.kind) == (
            wanted.expression,
            wanted.expression_type,
        )
        changed = _born(
            group, wanted, known.born_ms if known is not None and is_same else self._clock.now_ms()
        )
        if changed != known and self._put(changed):
            self.mark_dirty()

    def _bury(self, topic: str, group: str) -> None:
        known = self._topics[topic][group]
        if not known.is_dead and self._put(replace(known, dead_ms=max(known.born_ms, self._clock.now_ms()))):
            self.mark_dirty()

    def _put(self, kept: KeptFilter) -> bool:
        """In place of what was there; the longest dead make room, and where that is not enough it is left out.

        Tells whether that has changed anything."""
        changed = self._drop(kept.topic, kept.group)
        while self._dead and self._bytes + kept.kept_bytes > FILTER_TABLE_BYTES_MAX:
            changed = self._drop(*next(iter(self._dead)))
        if self._bytes + kept.kept_bytes > FILTER_TABLE_BYTES_MAX:
            return changed
        self._topics.setdefault(kept.topic, {})[kept.group] = kept
        self._groups.setdefault(kept.group, set()).add(kept.topic)
        self._bytes += kept.kept_bytes
        if kept.is_dead:
            self._dead[kept.topic, kept.group] = None
        return True

    def _drop(self, topic: str, group: str) -> bool:
        groups = self._topics.get(topic, {})
        kept = groups.pop(group, None)
        if kept is None:
            return False
        self._bytes -= kept.kept_bytes
        self._dead.pop((topic, group), None)
        self._groups[group].discard(topic)
        if not groups:
            del self._topics[topic]
        if not self._groups[group]:
            del self._groups[group]
        return True


def _groups_of(topic: str, row: object) -> Iterable[tuple[str, object]]:
    if not isinstance(row, Mapping):
        raise InvalidRequest(f"the filters of the topic {topic[:255]!r} are not a JSON object")
    return member_table(row, "groupFilterData").items()


def _born(group: str, wanted: Subscription, born_ms: int) -> KeptFilter:
    return KeptFilter(
        group,
        wanted.topic,
        wanted.expression,
        wanted.expression_type,
        born_ms=born_ms,
        dead_ms=0,
        client_version=wanted.version,
    )
