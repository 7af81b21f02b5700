"""A store with a small key index: messages with keys, what is found, and the files that hold it."""

from pathlib import Path
from typing import Any, NamedTuple

from bolide.store.index_file import IndexSizes
from bolide.store.index_keys import KeyIndex
from bolide.store.index_layout import ENTRY, ENTRY_BYTES, HEADER_BYTES, SLOT_BYTES, IndexHeader
from bolide.store.index_query import Lookup, places_of, read_matching
from bolide.store.new_message import NewMessage
from bolide.store.store import MessageStore
from tests.unit.store.stage import body_of, message, opened, put

SIZES = IndexSizes(slots=10, entries=50)
ALWAYS = (0, 2**62)


class Entry(NamedTuple):
    hash: int
    log_offset: int
    seconds: int
    older: int


def opened_with_index(root: Path, sizes: IndexSizes = SIZES, **changes: Any) -> MessageStore:
    return opened(root, index=sizes, **changes)


def index_of(store: MessageStore) -> KeyIndex:
    assert store.index is not None
    return store.index


def keyed(body: bytes, unique: str = "", keys: str = "", tag: str = "", **changes: Any) -> NewMessage:
    pairs = (("UNIQ_KEY", unique), ("KEYS", keys), ("TAGS", tag))
    text = "".join(f"{name}\x01{value}\x02" for name, value in pairs if value)
    return message(body=body, properties=text.encode(), **changes)


def put_keyed(store: MessageStore, count: int, first: int = 0) -> None:
    """Messages b0, b1, … with unique keys U0, U1, … and the key `all`."""
    put(store, *(keyed(b"b%d" % n, f"U{n}", "all") for n in range(first, first + count)))


def log_synced(store: MessageStore) -> None:
    """Everything in the log is durable: only of such messages entries are durable too."""
    point = store.durability.next_point()
    if point is not None:
        point.run()
        store.durability.reached(point)


def caught_up(store: MessageStore) -> KeyIndex:
    index = index_of(store)
    index.catch_up(store.log, store.log.end, 2**62)
    return index


def found(
    store: MessageStore,
    word: str,
    *,
    count_max: int = 64,
    window: tuple[int, int] = ALWAYS,
    tag: bool = False,
    size_bytes_max: int = 1 << 20,
) -> list[bytes]:
    """Bodies of the messages of topic T that are found by a word, oldest first, everything indexed before."""
    lookup = Lookup("T", word, count_max, *window, size_bytes_max, by_tag=tag)
    offsets = caught_up(store).find(lookup.hash, count_max, *window)
    places = places_of(store.log, offsets, store.queues.deletions.place_of("T"), store.log.end)
    return [body_of(record) for record in read_matching(lookup, places)]


def all_found(store: MessageStore, count: int) -> bool:
    """Whether each message of `put_keyed` is found by its unique key, once."""
    return all(found(store, f"U{n}") == [b"b%d" % n] for n in range(count))


def files(root: Path) -> list[Path]:
    return sorted((root / "index").iterdir())


def header_of(path: Path) -> IndexHeader:
    return IndexHeader.read(memoryview(path.read_bytes()))


def entries_of(path: Path, sizes: IndexSizes = SIZES) -> list[Entry]:
    """All entries, the unused entry 0 first."""
    start = HEADER_BYTES + SLOT_BYTES * sizes.slots
    end = start + ENTRY_BYTES * max(1, header_of(path).next_entry)
    return [Entry(*numbers) for numbers in ENTRY.iter_unpack(path.read_bytes()[start:end])]
