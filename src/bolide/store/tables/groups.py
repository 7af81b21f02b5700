"""GroupTable: which consumer groups exist and what they may do; `config/subscriptionGroup.json`."""

from collections.abc import Iterator, Mapping
from typing import Any

from bolide.machines.bringers import Bringers
from bolide.model import names
from bolide.model.clock import Clock
from bolide.model.config_json import group_as_json, group_bytes, group_from_json
from bolide.model.errors import GroupNotFound, TableFull
from bolide.model.json_pieces import Entries
from bolide.model.limits import GROUP_TABLE_BYTES_MAX, GROUPS_MAX
from bolide.model.topic import GroupConfig
from bolide.store.disk import Disk
from bolide.store.tables.persisted import PersistedTable, entries_of, member_table, read_entries, with_more

CROWDED_PART = 4
"""A table of which more than one of so many parts is taken should have no groups that nobody would miss."""


class GroupTable(PersistedTable):
    """Groups by name."""

    def __init__(self, disk: Disk, path: str, clock: Clock) -> None:
        super().__init__(disk, path, clock)
        self._groups: dict[str, GroupConfig] = {}
        self._bytes = 0
        self._bringers = Bringers()
        self._forbidden: dict[str, Any] = {}

    def __contains__(self, group: object) -> bool:
        return group in self._groups

    def __iter__(self) -> Iterator[GroupConfig]:
        return iter(self._groups.values())

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, group: str) -> GroupConfig | None:
        return self._groups.get(group)

    def require(self, group: str) -> GroupConfig:
        """The group; `GroupNotFound` when there is none."""
        config = self._groups.get(group)
        if config is None:
            raise GroupNotFound(f"the group {group[:255]!r} does not exist on this broker")
        return config

    @property
    def is_crowded(self) -> bool:
        return (
            len(self._groups) > GROUPS_MAX // CROWDED_PART
            or self._bytes > GROUP_TABLE_BYTES_MAX // CROWDED_PART
        )

    def is_as_made(self, group: str) -> bool:
        """Whether nobody has ever set anything of the group: `find` would make the same again."""
        return (
            self._groups.get(group) == GroupConfig(group)
            and group not in self._forbidden
            and not names.is_system_group(group)
        )

    def find(self, group: str, *, auto_create: bool, host: str = "") -> GroupConfig:
        """The group, created when it is missing and may be; `GroupNotFound` otherwise."""
        config = self._groups.get(group)
        if config is not None:
            return config
        if not auto_create and not names.is_system_group(group):
            raise GroupNotFound(
                f"the group {group[:255]!r} does not exist on this broker and is not created on demand"
            )
        config = GroupConfig(group)
        self.put(config, host)
        return config

    def put(self, config: GroupConfig, host: str = "") -> None:
        """Create the group or change it; the name is checked, and nothing happens when nothing would change.

        It counts for the host that asks for it, which has no more of the table than stays free for others."""
        names.check_group(config.name)
        if config == self._groups.get(config.name):
            return
        if config.name not in self._groups and len(self._groups) >= GROUPS_MAX:
            raise TableFull(f"there are {GROUPS_MAX} groups, and no more are kept: delete some first")
        self._keep(config, host)
        self._changed()

    def delete(self, group: str) -> bool:
        """Forget the group; tells whether it was there."""
        self._forbidden.pop(group, None)
        config = self._groups.pop(group, None)
        if config is None:
            return False
        self._bringers.forget(group)
        self._bytes -= group_bytes(config)
        self._changed()
        return True

    def add_built_in(self) -> None:
        """Add what every broker has and this table lacks."""
        for name in names.SYSTEM_GROUPS:
            if name not in self._groups:
                self._groups[name] = GroupConfig(name)
                self._bytes += group_bytes(self._groups[name])
                self.mark_dirty()

    def members(self) -> dict[str, Any]:
        return {
            "dataVersion": self.version.as_json(),
            "forbiddenTable": self._forbidden,
            "subscriptionGroupTable": Entries(
                (name, group_as_json(config)) for name, config in entries_of(self._groups)
            ),
        }

    def _take(self, members: Mapping[str, Any]) -> None:
        forbidden = dict(member_table(members, "forbiddenTable"))
        self._groups |= read_entries(members, "subscriptionGroupTable", group_from_json)
        self._bytes = sum(map(group_bytes, self._groups.values()))
        self._forbidden = forbidden

    def _keep(self, config: GroupConfig, host: str) -> None:
        known, size = self._groups.get(config.name), group_bytes(config)
        before = 0 if known is None else group_bytes(known)
        more = size - before
        taken = with_more(self._bytes, more, GROUP_TABLE_BYTES_MAX, "groups")
        if host:
            if more > 0 and not self._bringers.may_bring(
                config.name,
                host,
                size,
                count=(GROUPS_MAX, len(self._groups) - (known is not None)),
                bytes_taken=(GROUP_TABLE_BYTES_MAX, self._bytes - before),
            ):
                raise TableFull(
                    f"{host} has made as many groups as others still can: what is free is for them; delete some first"
                )
            self._bringers.brought(config.name, host, size)
        self._bytes = taken
        self._groups[config.name] = config
