"""A store with small files in a temporary directory, a clock that stands still, and a disk that fails on request."""

import errno
import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bolide.store.disk import File
from bolide.store.disk_os import OsDisk
from bolide.store.new_message import Appended, NewMessage
from bolide.store.reading import PullLimits
from bolide.store.store import MessageStore, StoreOptions

V4 = bytes((127, 0, 0, 1)) + struct.pack(">i", 10911)
LIMITS = PullLimits(32, 262_144, 8, 65_536, hot_bytes_behind=2**40)
SEGMENT_BYTES = 4096
QUEUE_FILE_BYTES = 200  # ten entries


class HeldClock:
    """Stands still until a test moves it."""

    def __init__(self, ms: int = 1_700_000_000_000) -> None:
        self.ms = ms
        self._set_back_ms = 0

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms + self._set_back_ms

    def set_back(self, ms: int) -> None:
        """The wall clock alone."""
        self.ms -= ms
        self._set_back_ms += ms


class WatchedFile:
    """A real file whose syncs are counted, and may be held up or fail."""

    def __init__(self, file: File, disk: "WatchedDisk", *, reserved: bool) -> None:
        self._reserved = reserved
        self._file = file
        self._disk = disk
        self.path = file.path
        self.size = file.size

    def map(self, *, scattered: bool = False) -> memoryview:
        return self._file.map(scattered=scattered)

    def read(self, at: int, count: int) -> bytes:
        return self._file.read(at, count)

    def write(self, at: int, data: bytes | memoryview) -> None:
        if self._disk.full and not self._reserved:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._file.write(at, data)

    def reserve(self, at: int, count: int) -> None:
        if self._disk.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._file.reserve(at, count)

    def erase(self, at: int, *, again: bool = False) -> bool:
        return self._file.erase(at, again=again)

    def sync(self) -> None:
        self._disk.before_sync()
        self._disk.synced.append(self.path)
        self._file.sync()

    def close(self) -> None:
        self._file.close()


class WatchedDisk(OsDisk):
    """The real disk, with faults on request; the small files, which are written whole, have none."""

    def __init__(self) -> None:
        self.full = False
        self.synced: list[str] = []
        self.before_sync: Callable[[], None] = lambda: None

    def create(self, path: str, size: int, *, reserve: bool) -> File:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        file = super().create(path, size, reserve=reserve)
        return file if path.endswith(".tmp") else WatchedFile(file, self, reserved=reserve)

    def open(self, path: str) -> File:
        return WatchedFile(super().open(path), self, reserved="commitlog" in path)


def options(root: Path, **changes: Any) -> StoreOptions:
    base = StoreOptions(
        root=str(root),
        store_host=V4,
        properties_suffix=b"CLUSTER\x01C\x02",
        body_bytes_max=100_000,
        segment_bytes=SEGMENT_BYTES,
        queue_file_bytes=QUEUE_FILE_BYTES,
    )
    return replace(base, **changes)


def opened(
    root: Path, *, clock: HeldClock | None = None, disk: OsDisk | None = None, **changes: Any
) -> MessageStore:
    store = MessageStore(disk or OsDisk(), options(root, **changes), clock or HeldClock())
    store.open()
    return store


def make_durable(store: MessageStore) -> None:
    """Everything synced, and a checkpoint that says so: what a broker does every minute."""
    point = store.durability.next_point()
    if point is not None:
        point.run()
        store.durability.reached(point)
    checkpoint = store.next_checkpoint()
    if checkpoint is not None:
        checkpoint.sync()
        checkpoint.write()
        store.checkpoint_reached(checkpoint)


def killed(store: MessageStore) -> None:
    """The process is gone: what was only in its memory is lost, the files are as they are."""
    store.abandon()


def message(topic: str = "T", body: bytes = b"body", queue_id: int = 0, **changes: Any) -> NewMessage:
    base = NewMessage(
        topic=topic,
        queue_id=queue_id,
        body=body,
        properties=b"UNIQ_KEY\x01K\x02",
        flag=0,
        sys_flag=0,
        born_timestamp_ms=1,
        born_host=V4,
    )
    return base._replace(**changes)


def put(store: MessageStore, *messages: NewMessage) -> list[Appended]:
    """Append one by one, and write their queue entries as the broker does soon after."""
    appended = [store.append([one])[0] for one in messages]
    store.write_behind(store.take_touched())
    return appended


def put_many(store: MessageStore, count: int, topic: str = "T", queue_id: int = 0) -> list[Appended]:
    return put(store, *(message(topic, b"%05d" % number, queue_id) for number in range(count)))


def bodies(store: MessageStore, topic: str = "T", queue_id: int = 0) -> list[bytes]:
    """Everything that a reader of this queue gets, from its first offset to its end."""
    offset, end = store.reader.queue_range(topic, queue_id)
    found: list[bytes] = []
    while offset < end:
        result = store.reader.pull(topic, queue_id, offset, limits=LIMITS)
        found += [body_of(record) for record in records_of(result.data)]
        assert result.next_offset > offset, result
        offset = type(offset)(result.next_offset)
    return found


def records_of(data: bytes) -> list[bytes]:
    records = []
    while data:
        (size,) = struct.unpack_from(">I", data)
        records.append(data[:size])
        data = data[size:]
    return records


def body_of(record: bytes) -> bytes:
    (length,) = struct.unpack_from(">I", record, 84)
    return record[88 : 88 + length]


def queue_bytes(root: Path, topic: str = "T", queue_id: int = 0) -> bytes:
    """The logical file of one queue."""
    folder = root / "consumequeue" / topic / str(queue_id)
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


def log_bytes(root: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((root / "commitlog").iterdir()))
