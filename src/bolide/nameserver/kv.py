"""The key-value settings that operators leave with a name server; the only thing it keeps on disk.

The file is the original's `kvConfig.json`: `{"configTable":{namespace:{key:value}}}`, written whole at every change,
and bounded in size.  Without a path the settings live in memory only.
"""

import os

from bolide.model import java_json
from bolide.model.errors import ConfigError, InvalidRequest, NothingFound, RequestError
from bolide.store.disk import Disk
from bolide.store.folders import make_folder
from bolide.store.small_file import write_whole

ORDER_TOPICS = "ORDER_TOPIC_CONFIG"
"""The namespace (NAMESPACE_ORDER_TOPIC_CONFIG) of ordered topics: `orders` -> `broker-a:4;broker-b:4`."""

NAME_LENGTH_MAX = 255
VALUE_LENGTH_MAX = 64 * 1024
TABLE_LENGTH_MAX = 4 * 1024 * 1024
"""Characters of all namespaces, keys and values together."""


class KvTable:
    """Namespace, key, value: all text."""

    def __init__(self, disk: Disk, path: str | None) -> None:
        self._disk = disk
        self._path = path
        self._table: dict[str, dict[str, str]] = {}
        if path is not None:
            try:
                self._table = _parse(path, disk.read_whole(path))
            except OSError as error:
                raise ConfigError(f"cannot read {path}: {error.strerror or error}") from error

    def put(self, namespace: str, key: str, value: str) -> None:
        for what, text, length_max in (
            ("namespace", namespace, NAME_LENGTH_MAX),
            ("key", key, NAME_LENGTH_MAX),
            ("value", value, VALUE_LENGTH_MAX),
        ):
            if len(text) > length_max:
                raise InvalidRequest(f"the {what} is {len(text)} characters long; {length_max} are allowed")
        if not namespace or not key:
            raise InvalidRequest("namespace and key must not be empty")
        if self._length() + len(namespace) + len(key) + len(value) > TABLE_LENGTH_MAX:
            raise RequestError(f"the settings would exceed {TABLE_LENGTH_MAX} characters")
        changed = {name: dict(pairs) for name, pairs in self._table.items()}
        changed.setdefault(namespace, {})[key] = value
        self._replace(changed)

    def delete(self, namespace: str, key: str) -> None:
        """Forget a setting; one that is not there is forgotten already."""
        if key not in self._table.get(namespace, {}):
            return
        changed = {name: dict(pairs) for name, pairs in self._table.items()}
        del changed[namespace][key]
        if not changed[namespace]:
            del changed[namespace]
        self._replace(changed)

    def get(self, namespace: str, key: str) -> str:
        value = self.try_get(namespace, key)
        if value is None:
            raise NothingFound(f"no setting {key!r} in the namespace {namespace!r}")
        return value

    def try_get(self, namespace: str, key: str) -> str | None:
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str]:
        """All pairs of a namespace; `NothingFound` when it has none."""
        pairs = self._table.get(namespace)
        if not pairs:
            raise NothingFound(f"the namespace {namespace!r} has no settings")
        return dict(pairs)

    def _replace(self, table: dict[str, dict[str, str]]) -> None:
        """On disk first: what could not be kept is not promised either."""
        if self._path is not None:
            try:
                make_folder(self._disk, os.path.dirname(self._path))
                write_whole(self._disk, self._path, java_json.dumps({"configTable": table}))
            except OSError as error:
                raise RequestError(f"the settings could not be written: {error.strerror or error}") from error
        self._table = table

    def _length(self) -> int:
        return sum(
            len(name) + sum(len(key) + len(value) for key, value in pairs.items())
            for name, pairs in self._table.items()
        )


def _parse(path: str, text: bytes | None) -> dict[str, dict[str, str]]:
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
