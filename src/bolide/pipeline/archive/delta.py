"""The Delta table of an archive: told of every entry of the manifest once (`bolide.pipeline.delta_log`)."""

from typing import Any

from bolide.pipeline.archive.manifest import Entry
from bolide.pipeline.archive.place import Place
from bolide.pipeline.delta_log import Batch, DeltaLog, Written

APP_ID = "bolide.archive"
TASKS = 2
"""Files that a compaction writes at once: each is in memory while it is written."""


class ArchiveLog(DeltaLog):
    def __init__(self, place: Place) -> None:
        super().__init__(place.data, APP_ID)

    def tell(self, entry: Entry) -> None:
        """Does nothing when the table has been told of it."""
        from bolide.pipeline.archive.files import PARTITION, file_schema

        files = [Written(file.path, file.rows, file.size_bytes) for file in entry.files]
        self.add(Batch(entry.number, entry.written_ms, files), file_schema(), PARTITION)

    def compact(self, date: str, topic: str, target_bytes: int) -> tuple[int, int]:
        """Small files of a partition into few, in one transaction: how many went, and how many came."""
        table = self.table()
        assert table is not None, "an archive with files"
        done: dict[str, Any] = table.optimize.compact(
            partition_filters=[("date", "=", date), ("topic", "=", topic)],
            target_size=target_bytes,
            max_concurrent_tasks=TASKS,
        )
        return int(done["numFilesRemoved"]), int(done["numFilesAdded"])

    def vacuum(self) -> None:
        """Removes files that were replaced longer ago than the table keeps them: a week, unless it says otherwise."""
        table = self.table()
        if table is not None:
            table.vacuum(dry_run=False)
