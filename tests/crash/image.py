"""What a simulated disk holds: files and folders, each as programs see it and as it is on the medium.

A file has a volatile content, which programs see, and a durable one.  Until the next sync any subset of its dirty
pages may reach the medium, each as it is now or as it was at the last mark, one of them torn.  The length of a new
file is not durable before its first sync either.

A folder has volatile and durable names, and between them the changes since its last sync.  Power loss keeps any
subset of them in which no name is changed without the changes before it; a rename happens to both of its names or
to none.
"""

import random
from functools import cache

PAGE_BYTES = 4096
SECTOR_BYTES = 512

Change = tuple[tuple[str, "Node | None"], ...]
"""Names and what they stand for from now on, None for nothing: all of it happens, or none."""


class FileNode:
    """One file, whatever its names."""

    __slots__ = ("_data", "_durable", "_lengths", "_lost", "_marked", "_whole", "modified_ms", "size")

    def __init__(self, content: bytes, modified_ms: int, lengths: range | None = None) -> None:
        """`lengths` are those that a new file may be found with; None for one whose length is durable."""
        self.size = len(content)
        self.modified_ms = modified_ms
        self._durable = content
        self._lengths = lengths
        self._data: bytearray | None = None  # the volatile content where somebody may have changed it
        self._marked: bytes | None = None
        self._whole: set[int] = set()  # pages written since the mark under the kernel's lock
        self._lost: dict[int, bytes] = {}  # pages that a failed sync has left marked as clean

    @property
    def data(self) -> bytearray:
        """The volatile content, to be changed in place."""
        if self._data is None:
            self._data = bytearray(self._durable)
        return self._data

    @property
    def content(self) -> bytes:
        return self._durable if self._data is None else bytes(self._data)

    def read(self, at: int, count: int) -> bytes:
        return bytes((self._durable if self._data is None else self._data)[at : at + count])

    def write(self, at: int, data: bytes | memoryview) -> None:
        """Also makes pages dirty that a failed sync has left marked as clean."""
        self.data[at : at + len(data)] = data
        for page in range(at - at % PAGE_BYTES, at + len(data), PAGE_BYTES):
            self._lost.pop(page, None)
            self._whole.add(page)

    def mark(self) -> None:
        """Remember the content: a write that is under way now may be torn from here."""
        if self._data is not None:
            self._marked = bytes(self._data)
            self._whole.clear()

    def sync(self) -> None:
        self._lengths = None
        self._marked = None
        if self._data is None:
            return
        if not self._lost:
            self._durable = bytes(self._data)
            return
        durable = bytearray(self._durable)
        for at in self._dirty_pages():
            page = bytes(self._data[at : at + PAGE_BYTES])
            if self._lost.get(at) != page:
                durable[at : at + PAGE_BYTES] = page
                self._lost.pop(at, None)
        self._durable = bytes(durable)

    def fail_to_sync(self) -> None:
        """The kernel reports the error once and takes the pages for clean: no later sync writes them."""
        for at in self._dirty_pages():
            self._lost[at] = bytes(self.data[at : at + PAGE_BYTES])

    def write_back(self, rng: random.Random, keep: float) -> None:
        """The kernel writes some dirty pages in its own time."""
        durable = bytearray(self._durable)
        for at in self._dirty_pages():
            if at not in self._lost and rng.random() < keep:
                durable[at : at + PAGE_BYTES] = self.data[at : at + PAGE_BYTES]
        self._durable = bytes(durable)

    def after_power_loss(self, rng: random.Random, keep: float) -> "FileNode":
        content = self._durable
        pages = self._dirty_pages()
        if pages:
            assert self._data is not None
            torn = rng.choice((pages[-1], rng.choice(pages), -1))
            mixed = bytearray(content)
            for at in pages:
                if at == torn:
                    mixed[at : at + PAGE_BYTES] = self._torn_page(at, rng)
                elif rng.random() < keep:
                    mixed[at : at + PAGE_BYTES] = self._newer_page(at, rng)
            content = bytes(mixed)
        if self._lengths is not None and rng.random() >= keep:
            content = content[: rng.choice(self._lengths)]
        return FileNode(content, self.modified_ms)

    def _dirty_pages(self) -> list[int]:
        """Where pages begin that differ from the medium."""
        data, durable = self._data, self._durable
        if data is None or (data == durable and self._marked in (None, durable)):
            return []
        marked = durable if self._marked is None else self._marked
        return [
            at
            for at in range(0, self.size, PAGE_BYTES)
            if data[at : at + PAGE_BYTES] != durable[at : at + PAGE_BYTES]
            or marked[at : at + PAGE_BYTES] != durable[at : at + PAGE_BYTES]
        ]

    def _newer_page(self, at: int, rng: random.Random) -> bytes | bytearray:
        assert self._data is not None
        if self._marked is not None and rng.random() < 0.25:
            return self._marked[at : at + PAGE_BYTES]
        return self._data[at : at + PAGE_BYTES]

    def _torn_page(self, at: int, rng: random.Random) -> bytearray:
        """Some sectors old, some new; or written while a program was only half through with its change.

        The latter happens to mapped pages only: what is written by a call is copied under the page's lock.
        """
        assert self._data is not None
        new = self._data[at : at + PAGE_BYTES]
        old = new if self._marked is None or at in self._whole else self._marked[at : at + PAGE_BYTES]
        if new != old and rng.random() < 0.3:
            half = rng.randint(_same_bytes(new, old), len(new) - _same_bytes(new[::-1], old[::-1]))
            return new[:half] + old[half:]
        page = bytearray(self._durable[at : at + PAGE_BYTES])
        sectors = range(0, len(page), SECTOR_BYTES)
        first = rng.choice(sectors)
        in_order = rng.random() < 0.5
        for sector in sectors:
            if sector < first if in_order else rng.random() < 0.5:
                page[sector : sector + SECTOR_BYTES] = new[sector : sector + SECTOR_BYTES]
        return page


class FolderNode:
    """One folder."""

    __slots__ = ("_durable", "_pending", "names")

    def __init__(self, names: "dict[str, Node] | None" = None) -> None:
        self.names: dict[str, Node] = names or {}
        self._durable = dict(self.names)
        self._pending: list[Change] = []

    def change(self, change: Change) -> None:
        _apply(self.names, change)
        self._pending.append(change)

    def sync(self) -> None:
        for change in self._pending:
            _apply(self._durable, change)
        self._pending.clear()

    def write_back(self, rng: random.Random) -> None:
        """The kernel makes the oldest changes durable in its own time."""
        count = rng.randint(0, len(self._pending))
        for change in self._pending[:count]:
            _apply(self._durable, change)
        del self._pending[:count]

    def after_power_loss(self, rng: random.Random, keep: float, seen: "dict[int, Node]") -> "FolderNode":
        """`seen` keeps a file with several names one file."""
        names = dict(self._durable)
        held: set[str] = set()  # names that have missed a change and stay as they are
        for change in self._pending:
            touched = {name for name, _ in change}
            if touched & held or rng.random() >= keep:
                held |= touched
            else:
                _apply(names, change)
        survivors: dict[str, Node] = {}
        for name, node in names.items():
            if isinstance(node, FileNode) or id(node) not in seen:  # a folder that was moved is in one place
                survivors[name] = _survivor(node, rng, keep, seen)
        return FolderNode(survivors)


Node = FileNode | FolderNode


@cache
def zeros(size: int) -> bytes:
    """One object per size: most pages of most files are never written."""
    return bytes(size)


def _same_bytes(one: bytes | bytearray, other: bytes | bytearray) -> int:
    """How many bytes at the front are the same."""
    low, high = 0, len(one)
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _apply(names: dict[str, Node], change: Change) -> None:
    for name, node in change:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def _survivor(node: Node, rng: random.Random, keep: float, seen: dict[int, Node]) -> Node:
    known = seen.get(id(node))
    if known is None:
        if isinstance(node, FileNode):
            known = node.after_power_loss(rng, keep)
        else:
            known = node.after_power_loss(rng, keep, seen)
        seen[id(node)] = known
    return known
