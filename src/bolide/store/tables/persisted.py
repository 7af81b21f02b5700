"""What all tables share: a version, a file in the original's shape, and knowing whether the file is behind.

Changes are cheap because they only mark the table; the owner decides when `persist` runs.  Whoever has others to
serve takes `pieces()` a few at a time, writes them through `file` elsewhere, and calls `mark_dirty()` if that fails.
A table that changes between two pieces is marked again, so its file is written once more.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from bolide.model import java_json, json_pieces
from bolide.model.clock import Clock
from bolide.model.data_version import DataVersion
from bolide.model.errors import InvalidRequest, TableFull
from bolide.store.disk import Disk
from bolide.store.small_file import SmallFile

T = TypeVar("T")


class PersistedTable(ABC):
    """A table with a file of its own."""

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        self.file = SmallFile(disk, path)
        self.version = DataVersion(timestamp_ms=clock.now_ms())
        self._clock = clock
        self._dirty = False
        self.on_dirty: Callable[[], None] = _nobody_listens
        """Called when the file falls behind the table."""

    def load(self) -> None:
        """Take over what the file holds; without one the table stays as it is.  `StoreError` when it is damaged."""
        self.file.load(self._read)

    @property
    def is_dirty(self) -> bool:
        return self._dirty

    def mark_dirty(self) -> None:
        if not self._dirty:
            self._dirty = True
            self.on_dirty()

    def persist(self) -> bool:
        """Write the file if anything changed since it was written; tells whether it did."""
        if not self.take_dirty():
            return False
        try:
            self.file.save(b"".join(self.pieces()))
        except BaseException:
            self.mark_dirty()
            raise
        return True

    def take_dirty(self) -> bool:
        """Whether the file is behind the table; from now on it counts as written."""
        dirty, self._dirty = self._dirty, False
        return dirty

    def pieces(self) -> Iterator[bytes]:
        """The file's text."""
        return json_pieces.pretty(self.members())

    def answer_pieces(self) -> Iterator[bytes]:
        """The same for slaves and tools that ask for the table."""
        return json_pieces.compact(self.members())

    @abstractmethod
    def members(self) -> dict[str, Any]:
        """The table as the original writes it; what grows with it is `Entries`."""

    def _read(self, data: bytes) -> None:
        members = java_json.loads(data, dialect_length_max=None)
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
        self.mark_dirty()


def member_table(members: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A member that is an object; empty when it is missing."""
    table = members.get(key)
    if table is None:
        return {}
    if not isinstance(table, Mapping):
        raise InvalidRequest(f"{key} is not a JSON object")
    return table


def entries_of(table: Mapping[str, T]) -> Iterator[tuple[str, T]]:
    """Each as it is when its turn comes; the table may change meanwhile.  No more than names is copied for that: many
    may be reading a large table at the same time."""
    for name in list(table):
        value = table.get(name)
        if value is not None:
            yield name, value


def read_entries(members: Mapping[str, Any], key: str, read: Callable[[object], T]) -> dict[str, T]:
    """The entries of such a member; the error of one names it."""
    found: dict[str, T] = {}
    for name, value in member_table(members, key).items():
        try:
            found[name] = read(value)
        except InvalidRequest as error:
            raise InvalidRequest(f"{name[:255]!r}: {error}") from None
    return found


def with_more(taken: int, more: int, bytes_max: int, what: str) -> int:
    """The bytes of a table that takes so many more in; `TableFull` where it may not have them."""
    if more > 0 and taken + more > bytes_max:
        raise TableFull(f"the {what} take {taken} bytes of {bytes_max}: delete some before you add more")
    return taken + more


def _nobody_listens() -> None:
    """Until somebody keeps the file in step."""
