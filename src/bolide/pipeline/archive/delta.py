"""The Delta table of an archive: told of every batch once, in one transaction.

Spark has written the files; the table's log is written by the `deltalake` library, which needs no JAR that fits a
version of Spark.  The number of the manifest's entry is the version of an application transaction, so a batch that is
told again is known.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bolide.model.errors import ConfigError
from bolide.pipeline.archive.manifest import Entry
from bolide.pipeline.archive.place import Place

if TYPE_CHECKING:
    from deltalake import DeltaTable

APP_ID = "bolide.archive"
TASKS = 2
"""Files that a compaction writes at once: each is in memory while it is written."""


class DeltaLog:
    """The table's log, read anew by every call."""

    def __init__(self, place: Place) -> None:
        self._place = place
        check_library()

    def version(self) -> int:
        """The number of the last entry that the table was told of; -1 before the first."""
        table = self._table()
        return -1 if table is None else _told(table)

    def paths(self) -> list[str]:
        """Its files, below `data`."""
        table = self._table()
        if table is None:
            return []
        root = self._place.data
        return sorted(str(Path(uri.removeprefix("file://")).relative_to(root)) for uri in table.file_uris())

    def add(self, entry: Entry) -> None:
        """Does nothing when the table has been told of it."""
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction, create_table_with_add_actions

        from bolide.pipeline.archive.files import PARTITION, partition_of

        table = self._table()
        if table is not None and _told(table) >= entry.number:
            return
        actions = [
            AddAction(
                path=file.path,
                size=file.size_bytes,
                partition_values=partition_of(file.path),
                modification_time=entry.written_ms,
                data_change=True,
                stats=json.dumps({"numRecords": file.rows}),
            )
            for file in entry.files
        ]
        properties = CommitProperties(app_transactions=[Transaction(APP_ID, entry.number)])
        if table is None:
            create_table_with_add_actions(
                str(self._place.data),
                _schema(),
                actions,
                mode="error",
                partition_by=list(PARTITION),
                commit_properties=properties,
            )
        else:
            table.create_write_transaction(
                [*actions], "append", _schema(), partition_by=list(PARTITION), commit_properties=properties
            )

    def compact(self, date: str, topic: str, target_bytes: int) -> tuple[int, int]:
        """Small files of a partition into few, in one transaction: how many went, and how many came."""
        table = self._table()
        assert table is not None, "an archive with files"
        done: dict[str, Any] = table.optimize.compact(
            partition_filters=[("date", "=", date), ("topic", "=", topic)],
            target_size=target_bytes,
            max_concurrent_tasks=TASKS,
        )
        return int(done["numFilesRemoved"]), int(done["numFilesAdded"])

    def vacuum(self) -> None:
        """Removes files that were replaced longer ago than the table keeps them: a week, unless it says otherwise."""
        table = self._table()
        if table is not None:
            table.vacuum(dry_run=False)

    def _table(self) -> "DeltaTable | None":
        from deltalake import DeltaTable

        uri = str(self._place.data)
        return DeltaTable(uri) if DeltaTable.is_deltatable(uri) else None


def check_library() -> None:
    """Says early what is missing."""
    try:
        import deltalake  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise ConfigError(
            f"an archive of Delta needs the library deltalake: pip install 'bolide[delta]' ({error})"
        ) from error


def _told(table: "DeltaTable") -> int:
    version = table.transaction_version(APP_ID)
    return -1 if version is None else int(version)


def _schema() -> Any:
    from deltalake import Schema

    from bolide.pipeline.archive.files import file_schema
    from bolide.pipeline.schema import arrow_schema

    return Schema.from_arrow(arrow_schema(file_schema()))
