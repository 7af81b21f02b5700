"""The broker's tables: topics, groups, and how far each group has come.  Kept in memory, persisted as small files."""

from bolide.store.tables.groups import GroupTable
from bolide.store.tables.offsets import OffsetTable
from bolide.store.tables.topics import TopicTable

__all__ = ["GroupTable", "OffsetTable", "TopicTable"]
