"""A small store with everything in it, spoiled and looked at again and again."""

import os
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bolide.model.errors import StoreError
from bolide.offline.files import Geometry
from bolide.offline.repair import Repair
from bolide.offline.verify import Examination, verify
from bolide.record.layout import CHECK_SEALED
from bolide.store.disk_os import OsDisk
from bolide.store.reading import PullLimits
from bolide.store.store import MessageStore
from tests.corruption.flaws import Flaw
from tests.unit.offline.damaged import INDEX, TOPICS, write_tables
from tests.unit.store.stage import HeldClock, killed, message, opened, options, put, records_of

SEGMENT_BYTES = 8192
QUEUE_FILE_BYTES = 200
MESSAGES = 100
GEOMETRY = Geometry(SEGMENT_BYTES, QUEUE_FILE_BYTES, INDEX.slots, INDEX.entries)
LIMITS = PullLimits(32, 262_144, 32, 262_144, hot_bytes_behind=2**40)
QUEUES = [(topic, queue_id) for topic in TOPICS for queue_id in (0, 1)]


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it was written."""

    topic: str
    queue_id: int
    number: int
    log_offset: int
    data: bytes

    @property
    def segment(self) -> tuple[str, int]:
        """Its file and its position there."""
        base = self.log_offset - self.log_offset % SEGMENT_BYTES
        return f"commitlog/{base:020d}", self.log_offset - base


class Scene:
    """The store as it was left, and a directory to spoil copies of it in."""

    def __init__(self, folder: Path, *, clean: bool) -> None:
        self.root = folder / "store"
        self.root.mkdir(parents=True)
        self._make(clean)
        self.files = self._read()
        self.records = self._records()
        self.baseline = self.examine()
        assert self.baseline.is_sound, self.baseline.findings
        assert len(self.records) == MESSAGES

    def _options(self) -> dict[str, Any]:
        """With checksums of whole records, written and asked for (enabledAppendPropCRC, forceVerifyPropCRC)."""
        return {
            "segment_bytes": SEGMENT_BYTES,
            "queue_file_bytes": QUEUE_FILE_BYTES,
            "index": INDEX,
            "sealed": True,
            "check": CHECK_SEALED,
        }

    def _make(self, clean: bool) -> None:
        """Two runs, so that there is a checkpoint in the middle."""
        clock = HeldClock()
        for first in (0, MESSAGES // 2):
            store = opened(self.root, clock=clock, **self._options())
            for number in range(first, first + MESSAGES // 2):
                clock.ms += 1000
                self._put(store, number)
            write_tables(self.root)
            if not clean and first:
                assert store.index is not None
                store.index.catch_up(store.log, store.log.end, 2**40)
                killed(store)
            else:
                store.close()

    def _put(self, store: MessageStore, number: int) -> None:
        properties = b"UNIQ_KEY\x01U%d\x02KEYS\x01k%d\x02TAGS\x01t%d\x02" % (number, number % 7, number % 3)
        body = b"%05d" % number * (1 + number % 40)
        put(store, message(TOPICS[number % 2], body, number // 2 % 2, properties=properties))

    def _read(self) -> dict[str, bytes]:
        paths = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in paths}

    def _records(self) -> list[Record]:
        """What the untouched queues lead to."""
        found: list[Record] = []
        for topic, queue_id in QUEUES:
            names = sorted(
                name for name in self.files if name.startswith(f"consumequeue/{topic}/{queue_id}/")
            )
            entries = b"".join(self.files[name] for name in names)
            for number, (at, size, _) in enumerate(struct.iter_unpack(">qiq", entries)):
                if size:
                    base = at - at % SEGMENT_BYTES
                    data = self.files[f"commitlog/{base:020d}"][at - base : at - base + size]
                    found.append(Record(topic, queue_id, number, at, data))
        return sorted(found, key=lambda record: record.log_offset)

    # ---- one spoiled store ---------------------------------------------------------------------------------

    def spoil(self, flaw: Flaw | None) -> None:
        """The store as it was left, but for the flaw."""
        changed = {} if flaw is None else {name: after for name, (_, after) in flaw.changed.items()}
        for path in self.root.rglob("*"):
            if path.is_file() and str(path.relative_to(self.root)) not in self.files:
                path.unlink()
        for path in self.root.glob("repair-*"):
            shutil.rmtree(path)
        for name, data in {**self.files, **changed}.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def examine(self) -> Examination:
        return verify(OsDisk(), str(self.root), geometry=GEOMETRY)

    def repair(self) -> None:
        plan = Repair(OsDisk(), str(self.root), HeldClock(), geometry=GEOMETRY)
        plan.apply()
        plan.close()

    def open(self) -> MessageStore | StoreError:
        """The store, or why it does not open."""
        store = MessageStore(OsDisk(), options(self.root, **self._options()), HeldClock(1_700_001_000_000))
        try:
            store.open()
        except StoreError as error:
            return error
        return store

    def delivered(self, store: MessageStore) -> list[bytes]:
        """Every record that consumers of all queues get, each queue read from its beginning to its end."""
        found: list[bytes] = []
        for topic, queue_id in QUEUES:
            offset, end = store.reader.queue_range(topic, queue_id)
            position = int(offset)
            while position < end:
                result = store.reader.pull(topic, queue_id, position, limits=LIMITS)
                assert result.next_offset > position, (topic, queue_id, position, result)
                found += records_of(result.data)
                position = result.next_offset
        return found

    def close(self, store: MessageStore) -> None:
        """Nothing more is written; files are closed, because there will be many stores."""
        if store.index is not None:
            store.index._forget_files()
        killed(store)


def scratch_folder(tmp_path: Path) -> Path:
    """In memory where that is possible: nothing here is about power loss, and syncs take time."""
    memory = Path("/dev/shm")
    return memory / f"bolide-corruption-{os.getpid()}" if os.access(memory, os.W_OK) else tmp_path
