"""DelayOffsetTable: how far the delayed messages of each level were delivered; `config/delayOffset.json`.

An offset is the number of the next message in the level's queue.  It is told only when what was delivered before it is
durable, so that power loss brings a message twice rather than never.
"""

from collections.abc import Mapping
from typing import Any

from bolide.model.clock import Clock
from bolide.model.errors import InvalidRequest
from bolide.model.limits import TOPIC_QUEUES_MAX
from bolide.model.numbers import is_int64, parse_count
from bolide.store.disk import Disk
from bolide.store.tables.persisted import PersistedTable, member_table

MOVES_PER_VERSION = 200
"""RocketMQ: delayOffsetUpdateVersionStep."""


class DelayOffsetTable(PersistedTable):
    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        super().__init__(disk, path, clock)
        self._offsets: dict[int, int] = {}
        self._moves = 0

    def get(self, level: int) -> int | None:
        return self._offsets.get(level)

    def levels(self) -> list[int]:
        return sorted(self._offsets)

    def move(self, level: int, offset: int) -> None:
        """Everything before the offset is delivered for good."""
        if self._offsets.get(level) == offset:
            return
        self._offsets[level] = offset
        self._moves += 1
        if self._moves % MOVES_PER_VERSION == 0:
            self._changed()
        else:
            self.mark_dirty()

    def members(self) -> dict[str, Any]:
        return {
            "dataVersion": self.version.as_json(),
            "offsetTable": {level: self._offsets[level] for level in sorted(self._offsets)},
        }

    def _take(self, members: Mapping[str, Any]) -> None:
        offsets: dict[int, int] = {}
        for text, offset in member_table(members, "offsetTable").items():
            level = parse_count(text)
            if level is None or not 0 < level <= TOPIC_QUEUES_MAX:
                raise InvalidRequest(f"{text[:64]!r} is no delay level")
            if not is_int64(offset) or offset < 0:
                raise InvalidRequest(f"the offset of the delay level {level} is no number of a message")
            offsets[level] = offset
        self._offsets = offsets
