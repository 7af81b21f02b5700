"""What all tables share: a version, a file in the original's shape, and knowing whether the file is behind.

Changes are cheap because they only mark the table; the owner decides when `persist` runs.  Whoever wants the sync
off its own thread takes `pending()` here, writes it through `file` elsewhere, and calls `mark_dirty()` if that fails.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from bolide.model import java_json
from bolide.model.clock import Clock
from bolide.model.data_version import DataVersion
from bolide.model.errors import InvalidRequest
from bolide.store.disk import Disk
from bolide.store.small_file import SmallFile


class PersistedTable(ABC):
    """A table with a file of its own."""

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        self.file = SmallFile(disk, path)
        self.version = DataVersion(timestamp_ms=clock.now_ms())
        self._clock = clock
        self._dirty = False

    def load(self) -> None:
        """Take over what the file holds; without one the table stays as it is.  `StoreError` when it is damaged."""
        self.file.load(self._read)

    @property
    def is_dirty(self) -> bool:
        return self._dirty

    def mark_dirty(self) -> None:
        self._dirty = True

    def persist(self) -> bool:
        """Write the file if anything changed since it was written; tells whether it did."""
        data = self.pending()
        if data is None:
            return False
        try:
            self.file.save(data)
        except BaseException:
            self._dirty = True
            raise
        return True

    def pending(self) -> bytes | None:
        """The bytes that the file should hold, None when it holds them already; the table then counts as written."""
        if not self._dirty:
            return None
        self._dirty = False
        return java_json.dumps_pretty(self.as_json())

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """The table as the original writes it, to its file and to slaves that ask for it."""

    def _read(self, data: bytes) -> None:
        members = java_json.loads(data)
        if not isinstance(members, Mapping):
            raise InvalidRequest("the file is not a JSON object")
        version = self.version
        if "dataVersion" in members:  # 4.x writes none into consumerOffset.json
            version = DataVersion.from_json(members["dataVersion"])
        self._take(members)
        self.version = version

    @abstractmethod
    def _take(self, members: Mapping[str, Any]) -> None:
        """Fill the table from the file's members, or change nothing: `InvalidRequest` for what cannot be one."""

    def _changed(self) -> None:
        """One more change: a new version, and the file is behind."""
        self.version = self.version.next(self._clock.now_ms())
        self._dirty = True


def member_table(members: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A member that is an object; empty when it is missing."""
    table = members.get(key)
    if table is None:
        return {}
    if not isinstance(table, Mapping):
        raise InvalidRequest(f"{key} is not a JSON object")
    return table
