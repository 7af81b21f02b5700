"""Where a consumer keeps how far it has come: with its brokers, for all members of the group, or in a file of its own.

`BrokerOffsets` are the group's.  `LocalOffsets` are for broadcasting, where every member has its own place: the
original's file, found again by a process that is started again, because its client id stays the same
(RocketMQ: LocalFileOffsetStore).
"""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Protocol, TypeVar

from bolide.client.by_broker import SILENT, each_broker
from bolide.client.queue_calls import QueueCalls
from bolide.model import java_json
from bolide.model.errors import BolideError, ClientError, StoreError
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.net.surroundings import Surroundings
from bolide.store.disk_os import OsDisk
from bolide.store.folders import make_folder
from bolide.store.small_file import SmallFile
from bolide.wire.bodies.members import number, parse_object, table
from bolide.wire.bodies.queue import queue_as_key, queue_from_key

log = logging.getLogger(__name__)

HOME_FOLDER = ".rocketmq_offsets"
FILE_NAME = "offsets.json"

T = TypeVar("T")


class Moving(Protocol):
    """A queue that is ours, and how far we are in it."""

    queue: MessageQueue
    committed: GroupOffset | None
    """What the broker was told last."""

    @property
    def commit_offset(self) -> GroupOffset | None:
        """Everything before it is done; None when that is not ours to say."""

    @property
    def is_gone(self) -> bool: ...


class Offsets(Protocol):
    async def open(self, client_id: str) -> None:
        """Before anything else, once it is known who we are."""

    async def stored(self, queue: MessageQueue) -> GroupOffset | None:
        """Where to go on; None when nothing was ever stored."""

    async def persist(self, queues: Iterable[Moving]) -> None:
        """Store what has moved."""

    async def store(self, queue: MessageQueue, offset: GroupOffset) -> None:
        """Store one, and return when that is done."""

    def close(self) -> None: ...


class BrokerOffsets:
    """The group's offsets.  `zero_for_young`: a group without one begins at the very first message, if it is there."""

    def __init__(self, calls: QueueCalls, *, zero_for_young: bool) -> None:
        self._calls = calls
        self._zero_for_young = zero_for_young

    async def open(self, client_id: str) -> None:
        pass

    async def stored(self, queue: MessageQueue) -> GroupOffset | None:
        return await self._calls.committed_offset(queue, zero_for_young=self._zero_for_young)

    async def persist(self, queues: Iterable[Moving]) -> None:
        moved = [held for held in queues if held.commit_offset != held.committed]
        await each_broker(moved, lambda held: held.queue.broker_name, self._send)

    async def store(self, queue: MessageQueue, offset: GroupOffset) -> None:
        await self._calls.commit(queue, offset)

    def close(self) -> None:
        pass

    async def _send(self, held: Moving) -> bool:
        offset = held.commit_offset
        if held.is_gone or offset is None:
            return True
        try:
            await self._calls.commit_soon(held.queue, offset)
        except SILENT:
            raise
        except BolideError as error:
            log.warning("the offset of %s is not stored yet: %s", held.queue, error)
            return False
        held.committed = offset
        return True


class LocalOffsets:
    """Offsets in `FOLDER/CLIENT/GROUP/offsets.json`.  The disk is waited for in a thread."""

    def __init__(self, folder: str, group: str, surroundings: Surroundings) -> None:
        self._folder = folder
        self._group = group
        self._surroundings = surroundings
        self._offsets: dict[MessageQueue, int] = {}
        self._is_dirty = False
        self._saving = asyncio.Lock()
        self._thread: Executor | None = None
        self._file: SmallFile | None = None

    async def open(self, client_id: str) -> None:
        path = os.path.join(self._folder, client_id, self._group, FILE_NAME)
        self._file = SmallFile(OsDisk(), path)
        self._thread = self._surroundings.threads("bolide-offsets")
        try:
            found = await self._aside(partial(self._file.load, decode_offsets))
        except (OSError, StoreError) as error:
            raise ClientError(f"the offsets of {self._group} cannot be read: {error}") from error
        self._offsets = found or {}
        try:
            await self._aside(partial(_try_out, path))
        except OSError as error:
            log.warning(
                "the offsets of %s cannot be stored, so a start begins as if it were the first: %s",
                *(self._group, error),
            )

    async def stored(self, queue: MessageQueue) -> GroupOffset | None:
        offset = self._offsets.get(queue)
        return None if offset is None else GroupOffset(offset)

    async def persist(self, queues: Iterable[Moving]) -> None:
        for held in queues:
            if (offset := held.commit_offset) is not None:
                self._set(held.queue, offset)
        await self._save()

    async def store(self, queue: MessageQueue, offset: GroupOffset) -> None:
        self._set(queue, offset)
        await self._save()

    def close(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False)

    def _set(self, queue: MessageQueue, offset: GroupOffset) -> None:
        if self._offsets.get(queue) != offset:
            self._offsets[queue] = offset
            self._is_dirty = True

    async def _save(self) -> None:
        """One writes for all that wait behind it."""
        async with self._saving:
            if not self._is_dirty:
                return
            assert self._file is not None
            self._is_dirty = False
            try:
                await self._aside(partial(self._file.save, encode_offsets(self._offsets)))
            except (OSError, StoreError) as error:
                self._is_dirty = True
                raise ClientError(f"the offsets of {self._group} cannot be written: {error}") from error

    async def _aside(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _try_out(path: str) -> None:
    """Whether the file could be written: the folder is there, or can be made, and takes a file."""
    disk, probe = OsDisk(), path + ".tmp"
    make_folder(disk, os.path.dirname(path))
    disk.delete(probe)  # left by a crash
    disk.create(probe, 0, reserve=False).close()
    disk.delete(probe)


def encode_offsets(offsets: Mapping[MessageQueue, int]) -> bytes:
    """RocketMQ: OffsetSerializeWrapper, with queues as keys."""
    rows = {queue_as_key(queue): offsets[queue] for queue in sorted(offsets)}
    return java_json.text_of({"offsetTable": rows}, "\n").encode()


def decode_offsets(data: bytes) -> dict[MessageQueue, int]:
    rows = table(parse_object(data, "the file of offsets", dialect_bytes_max=None), "offsetTable")
    return {queue_from_key(key): number(rows, key) for key in rows}
