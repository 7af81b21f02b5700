"""The manifest of an archive: which files are in it, and which offsets of which queues these hold.

Every commit is one file of JSON, `manifest/NUMBER.json`, written whole and renamed: it is there or it is not.  What no
entry names is not in the archive.  An entry says which files it adds and removes, and which ranges of queues it adds.
A range is dense: it holds every offset from `first` up to `end`, which is not in it any more.  An entry that is a base
says everything anew, and those before it are not needed.

Nothing here knows of Spark.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from bolide.model.errors import BolideError, ConfigError
from bolide.model.limits.spark import ARCHIVE_ENTRY_BYTES_MAX
from bolide.model.offsets import MessageQueue
from bolide.pipeline.archive.place import ArchiveDamaged, Place
from bolide.pipeline.archive.spans import Span, merged
from bolide.pipeline.whole_files import write_whole

VERSION = 1
KINDS = ("batch", "compaction", "base")
PATH_PARTS = 3
CHECKSUM_MASK = 2**64 - 1
LOOKS_MAX = 20
"""How often a reader looks again when entries go while it reads, because a base has replaced them."""


class EntryTooLong(BolideError):
    """A commit that names too much."""


@dataclass(frozen=True, order=True)
class Range:
    """All messages of a queue between two offsets, and the sum of their checksums (`measure.py`)."""

    queue: MessageQueue
    first: int
    end: int
    checksum: int

    @property
    def span(self) -> Span:
        return Span(self.first, self.end)


@dataclass(frozen=True)
class DataFile:
    path: str
    """Below `data`, with `/`; its folders are the values of `date` and `topic`, escaped as Spark does it."""
    rows: int
    size_bytes: int


@dataclass(frozen=True)
class Entry:
    number: int
    kind: str
    """batch, compaction or base."""
    written_ms: int
    files: Sequence[DataFile] = ()
    """Those that it adds; of a base all there are."""
    ranges: Sequence[Range] = ()
    """Those that it adds; of a base all there are."""
    removed: Sequence[str] = ()
    """Paths of files that others of this entry replace."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """Of a batch: its number in Spark's stream, for people."""
    last_batch: int | None = None
    """Of a base: the number of the newest batch that is in it."""


@dataclass
class State:
    """All entries together."""

    last: Entry | None = None
    entries: int = 0
    """How many files of the manifest this was read from."""
    files: dict[str, DataFile] = field(default_factory=dict)
    ranges: dict[MessageQueue, list[Range]] = field(default_factory=dict)
    batches: list[int] = field(default_factory=list)
    """Numbers of the entries that are batches, of those in the base the newest."""

    @property
    def next_number(self) -> int:
        return 0 if self.last is None else self.last.number + 1

    def spans(self, queue: MessageQueue) -> list[Span]:
        """What is archived of a queue, neighbours made one."""
        return merged(one.span for one in self.ranges.get(queue, ()))

    def end_of(self, queue: MessageQueue) -> int | None:
        return max((one.end for one in self.ranges.get(queue, ())), default=None)

    def take(self, entry: Entry) -> None:
        if entry.kind == "base":
            self.files, self.ranges = {}, {}
            self.batches = [] if entry.last_batch is None else [entry.last_batch]
        elif entry.kind == "batch":
            self.batches.append(entry.number)
        for path in entry.removed:
            self.files.pop(path, None)
        self.files |= {file.path: file for file in entry.files}
        for one in entry.ranges:
            self.ranges.setdefault(one.queue, []).append(one)
        self.last = entry
        self.entries += 1


def read_state(place: Place, *, up_to: int | None = None) -> State:
    """What is committed now; with `up_to` without batches that come later."""
    for _ in range(LOOKS_MAX):
        try:
            return _state_of(place, up_to)
        except FileNotFoundError:
            if not place.manifest.is_dir():
                raise ArchiveDamaged(f"{place.manifest} is gone: nobody knows what is archived") from None
    raise ArchiveDamaged(f"{place.manifest}: entries come and go; try again when nobody compacts the archive")


def _state_of(place: Place, up_to: int | None) -> State:
    state = State()
    for number in _needed(place):
        if state.last is not None and number != state.last.number + 1:
            raise ArchiveDamaged(
                f"{file_of(place, state.last.number + 1)} is missing: the archive's manifest has a hole"
            )
        entry = _read(file_of(place, number), number)
        if state.last is None and number and entry.kind != "base":
            raise ArchiveDamaged(f"{file_of(place, number)} is the first of the manifest, and is no base")
        if up_to is None or entry.kind != "batch" or number <= up_to:
            state.take(entry)
    for queue in state.ranges:
        _check_apart(state.ranges[queue])
    return state


def _needed(place: Place) -> Iterator[int]:
    """From the newest base on; a base has `base` in its name, so that older entries need not be read."""
    names = sorted(one.name for one in place.manifest.iterdir() if one.name.endswith(".json"))
    bases = [name for name in names if name.endswith(".base.json")]
    begin = int(bases[-1].split(".")[0]) if bases else 0
    for name in names:
        number = name.split(".")[0]
        if number.isdigit() and int(number) >= begin:
            yield int(number)


def file_of(place: Place, number: int) -> Path:
    base = place.manifest / f"{number:012}.base.json"
    return base if base.exists() else place.manifest / f"{number:012}.json"


def commit(place: Place, entry: Entry, ready: Callable[[], None] = lambda: None) -> None:
    """The moment at which the entry holds, for good; `ready` is called just before it."""
    if file_of(place, entry.number).exists():
        raise ArchiveDamaged(
            f"{file_of(place, entry.number)} is there already: somebody else writes to the archive"
        )
    kind = ".base" if entry.kind == "base" else ""
    text = json.dumps(_encoded(entry), indent=1) + "\n"
    if len(text) > ARCHIVE_ENTRY_BYTES_MAX:  # nobody could read it again
        raise EntryTooLong(
            f"an entry of the manifest would have {len(text)} bytes; {ARCHIVE_ENTRY_BYTES_MAX} are allowed"
        )
    write_whole(place.manifest / f"{entry.number:012}{kind}.json", text, ready)


def drop_before(place: Place, number: int) -> None:
    """Entries that a base has made superfluous."""
    for file in place.manifest.glob("*.json"):
        if file.name.split(".")[0].isdigit() and int(file.name.split(".")[0]) < number:
            file.unlink(missing_ok=True)


def base_of(state: State, written_ms: int, *, keeps: Callable[[DataFile], bool]) -> Entry:
    """One entry that says all of a state, with neighbouring ranges made one."""
    ranges = [one for queue in sorted(state.ranges) for one in joined(state.ranges[queue])]
    files = [file for path, file in sorted(state.files.items()) if keeps(file)]
    last_batch = state.batches[-1] if state.batches else None
    return Entry(state.next_number, "base", written_ms, files, ranges, last_batch=last_batch)


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Ranges of a queue in order, those that touch made one: checksums are sums."""
    found: list[Range] = []
    for one in sorted(ranges):
        if found and found[-1].end == one.first:
            before = found[-1]
            found[-1] = Range(
                one.queue, before.first, one.end, (before.checksum + one.checksum) & CHECKSUM_MASK
            )
        else:
            found.append(one)
    return found


def _check_apart(ranges: list[Range]) -> None:
    ranges.sort()
    for before, after in pairwise(ranges):
        if after.first < before.end:
            raise ArchiveDamaged(f"the manifest has offset {after.first} of {after.queue} twice")


# ---- JSON --------------------------------------------------------------------------------------------------------


def _encoded(entry: Entry) -> dict[str, Any]:
    return {
        "version": VERSION,
        "number": entry.number,
        "kind": entry.kind,
        "written_ms": entry.written_ms,
        "source": dict(entry.source),
        "ranges": [
            {
                "topic": one.queue.topic,
                "broker": one.queue.broker_name,
                "queue": one.queue.queue_id,
                "first": one.first,
                "end": one.end,
                "rows": one.end - one.first,
                "checksum": f"{one.checksum:016x}",
            }
            for one in entry.ranges
        ],
        "files": [{"path": file.path, "rows": file.rows, "bytes": file.size_bytes} for file in entry.files],
        "removed": list(entry.removed),
        **({} if entry.last_batch is None else {"last_batch": entry.last_batch}),
    }


def _read(file: Path, number: int) -> Entry:
    with file.open("rb") as opened:
        text = opened.read(ARCHIVE_ENTRY_BYTES_MAX + 1)
    if len(text) > ARCHIVE_ENTRY_BYTES_MAX:
        raise ArchiveDamaged(f"{file} is longer than any manifest")
    try:
        told = json.loads(text)
        if told["version"] != VERSION:
            raise ConfigError(f"{file} is of version {told['version']}, and this bolide knows {VERSION}")
        if told["number"] != number:
            raise ValueError(f"it says that it is entry {told['number']}")
        if told["kind"] not in KINDS:
            raise ValueError(f"it is of the kind {told['kind']!r}")
        return Entry(
            number,
            told["kind"],
            int(told["written_ms"]),
            [DataFile(_path(one["path"]), int(one["rows"]), int(one["bytes"])) for one in told["files"]],
            [
                Range(
                    MessageQueue(str(one["topic"]), str(one["broker"]), int(one["queue"])),
                    int(one["first"]),
                    int(one["end"]),
                    int(one["checksum"], 16),
                )
                for one in told["ranges"]
            ],
            [_path(path) for path in told["removed"]],
            dict(told["source"]),
            _last_batch(told),
        )
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ArchiveDamaged(f"{file} cannot be read: {type(error).__name__} {error}") from error


def _last_batch(told: Mapping[str, Any]) -> int | None:
    """A base in which it was not written down yet has at least the first, or none."""
    if told["kind"] != "base":
        return None
    if "last_batch" in told:
        return int(told["last_batch"])
    return 0 if told["ranges"] else None


def _path(told: str) -> str:
    """A path that stays below `data`: files are moved and removed by it."""
    parts = told.split("/")
    if len(parts) != PATH_PARTS:
        raise ValueError(f"the path {told!r} has no folders of a date and a topic")
    if any(part in ("", ".", "..") for part in parts) or "\0" in told:
        raise ValueError(f"the path {told!r} leads out of the archive")
    return told
