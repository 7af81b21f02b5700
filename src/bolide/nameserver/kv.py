"""The key-value settings that operators leave with a name server; the only thing it keeps on disk.

The file is the original's `kvConfig.json`: `{"configTable":{namespace:{key:value}}}`, written whole at every change,
and bounded in size.  Writing takes a sync, so that runs on a thread, one change after the other.  Without a path the
settings live in memory only.
"""

import asyncio
import os
from concurrent.futures import Executor
from functools import partial

from bolide.model import java_json, limits
from bolide.model.errors import ConfigError, InvalidRequest, NothingFound, RequestError, TooBusy
from bolide.store.disk import Disk
from bolide.store.folders import make_folder
from bolide.store.small_file import write_whole

ORDER_TOPICS = "ORDER_TOPIC_CONFIG"
"""The namespace (NAMESPACE_ORDER_TOPIC_CONFIG) of ordered topics: `orders` -> `broker-a:4;broker-b:4`."""

KEY_BYTES = 64
"""What a setting costs beside its own text."""

_Table = dict[str, dict[str, str]]


class KvTable:
    """Namespace, key, value: all text."""

    def __init__(self, disk: Disk, path: str | None, thread: Executor) -> None:
        self._disk = disk
        self._path = path
        self._thread = thread
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._table: _Table = {}
        if path is not None:
            try:
                self._table = _parse(path, disk.read_whole(path))
            except OSError as error:
                raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error
        self._bytes = sum(
            _size(name, key, value) for name, pairs in self._table.items() for key, value in pairs.items()
        )

    async def put(self, namespace: str, key: str, value: str) -> None:
        for what, text, length_max in (
            ("namespace", namespace, limits.KV_NAME_LENGTH_MAX),
            ("key", key, limits.KV_NAME_LENGTH_MAX),
            ("value", value, limits.KV_VALUE_LENGTH_MAX),
        ):
            if len(text) > length_max:
                raise InvalidRequest(f"the {what} is {len(text)} characters long; {length_max} are allowed")
        if not namespace or not key:
            raise InvalidRequest("namespace and key must not be empty")
        await self._change(namespace, key, value)

    async def delete(self, namespace: str, key: str) -> None:
        """Forget a setting; one that is not there is forgotten already."""
        await self._change(namespace, key, None)

    def get(self, namespace: str, key: str) -> str:
        value = self.try_get(namespace, key)
        if value is None:
            raise NothingFound(f"no setting {key[:255]!r} in the namespace {namespace[:255]!r}")
        return value

    def try_get(self, namespace: str, key: str) -> str | None:
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str]:
        """All pairs of a namespace; `NothingFound` when it has none."""
        pairs = self._table.get(namespace)
        if not pairs:
            raise NothingFound(f"the namespace {namespace[:255]!r} has no settings")
        return pairs

    async def _change(self, namespace: str, key: str, value: str | None) -> None:
        """One after the other, and on disk first: what could not be kept is not promised either."""
        if self._waiting >= limits.KV_CHANGES_WAITING_MAX:
            raise TooBusy("too many changes of settings are waiting; try again in a moment")
        self._waiting += 1
        try:
            async with self._turn:
                before = self.try_get(namespace, key)
                if before == value:
                    return
                size = self._bytes
                size -= 0 if before is None else _size(namespace, key, before)
                size += 0 if value is None else _size(namespace, key, value)
                if value is not None and size > limits.KV_TABLE_BYTES_MAX:
                    raise RequestError(f"the settings would exceed {limits.KV_TABLE_BYTES_MAX} characters")
                table = _changed(self._table, namespace, key, value)
                await self._write(table)
                self._table, self._bytes = table, size
        finally:
            self._waiting -= 1

    async def _write(self, table: _Table) -> None:
        if self._path is None:
            return
        text = java_json.dumps({"configTable": table})
        work = partial(_write_file, self._disk, self._path, text)
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except OSError as error:
            raise RequestError(f"the settings could not be written: {error.strerror or error}") from error


def _changed(table: _Table, namespace: str, key: str, value: str | None) -> _Table:
    pairs = dict(table.get(namespace, {}))
    if value is None:
        pairs.pop(key, None)
    else:
        pairs[key] = value
    changed = {**table, namespace: pairs}
    if not pairs:
        del changed[namespace]
    return changed


def _size(namespace: str, key: str, value: str) -> int:
    return len(namespace) + len(key) + len(value) + KEY_BYTES


def _write_file(disk: Disk, path: str, text: bytes) -> None:
    make_folder(disk, os.path.dirname(path))
    write_whole(disk, path, text)


def _parse(path: str, text: bytes | None) -> _Table:
    """The table in the file; a file that is not one is an error, because the next write would destroy it."""
    if text is None or not text.strip():
        return {}
    try:
        table = java_json.loads(text, dialect_length_max=None).get("configTable") or {}
        return {
            str(name): {str(key): str(value) for key, value in pairs.items()} for name, pairs in table.items()
        }
    except (AttributeError, InvalidRequest) as error:
        raise ConfigError(f"{path} does not hold key-value settings: {error}") from error
