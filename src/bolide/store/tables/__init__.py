"""The broker's tables: topics, groups, how far each group and each delay level has come, what groups filter by,
where bulk writes began.

Kept in memory, persisted as small files.
"""

from bolide.store.tables.delay_offsets import DelayOffsetTable
from bolide.store.tables.filters import FilterTable
from bolide.store.tables.groups import GroupTable
from bolide.store.tables.offsets import OffsetTable
from bolide.store.tables.topics import TopicTable
from bolide.store.tables.writes import WriteTable

__all__ = ["DelayOffsetTable", "FilterTable", "GroupTable", "OffsetTable", "TopicTable", "WriteTable"]
