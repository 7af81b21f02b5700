"""The tables in `config/` as values, read without a broker.

Nothing here writes.  `InvalidRequest` says what is wrong with bytes that cannot be what their file should hold.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bolide.model import java_json
from bolide.model.config_json import group_from_json, topic_from_json
from bolide.model.data_version import DataVersion
from bolide.model.errors import InvalidRequest, StoreError
from bolide.model.topic import TopicConfig
from bolide.store.disk import ReadingDisk

GroupQueue = tuple[str, str, int]
"""Group, topic and queue."""


MEMBER_TOPIC_PREFIX = "rmq_sys_SYNC_BROKER_MEMBER_"
"""Every broker of 5.x has a topic that begins like this and ends with its own name."""


@dataclass(slots=True)
class Tables:
    """What the readable files in `config/` say."""

    topics: dict[str, TopicConfig] | None = None
    groups: frozenset[str] | None = None
    offsets: dict[GroupQueue, int] | None = None
    versions: dict[str, DataVersion | None] | None = None

    @property
    def broker_name(self) -> str:
        """The broker's name, if its topics tell."""
        found = [name for name in self.topics or () if name.startswith(MEMBER_TOPIC_PREFIX)]
        return found[0].removeprefix(MEMBER_TOPIC_PREFIX) if len(found) == 1 else ""

    def take(self, name: str, data: bytes) -> DataVersion | None:
        """Take over one file; its data version if it has one."""
        members = java_json.loads(data, dialect_length_max=None)
        if not isinstance(members, Mapping):
            raise InvalidRequest("the file is not a JSON object")
        version = DataVersion.from_json(members["dataVersion"]) if "dataVersion" in members else None
        if name == "topics.json":
            self.topics = {key: topic_from_json(value) for key, value in _table(members, "topicConfigTable")}
        elif name == "subscriptionGroup.json":
            table = _table(members, "subscriptionGroupTable")
            self.groups = frozenset(group_from_json(value).name for _, value in table)
        elif name == "consumerOffset.json":
            self.offsets = dict(_offsets(members))
        return version


def read_tables(disk: ReadingDisk, paths: list[str]) -> Tables:
    """All tables, each from its file or else from its copy, as a broker reads them."""
    tables = Tables(versions={})
    assert tables.versions is not None
    for path in paths:
        name = os.path.basename(path)
        for candidate in (path, path + ".bak"):
            try:
                if data := disk.read_whole(candidate):
                    tables.versions[name] = tables.take(name, data)
                    break
            except (InvalidRequest, StoreError):
                continue
    return tables


def _table(members: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
    table = members.get(name)
    if table is None:
        return []
    if not isinstance(table, Mapping):
        raise InvalidRequest(f"{name} is not a JSON object")
    return list(table.items())


def _offsets(members: Mapping[str, Any]) -> list[tuple[GroupQueue, int]]:
    found: list[tuple[GroupQueue, int]] = []
    for key, queues in _table(members, "offsetTable"):
        topic, separator, group = key.partition("@")
        if not separator or not isinstance(queues, Mapping):
            raise InvalidRequest(f"{key[:255]!r} is not the offsets of a topic and a group")
        try:
            found += [((group, topic, int(number)), int(offset)) for number, offset in queues.items()]
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidRequest(f"an offset of {key[:255]!r} is not a number: {error}") from None
    return found
