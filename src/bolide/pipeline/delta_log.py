"""The log of a Delta table: told of files that Spark has written, once for each batch, in one transaction.

It is written by the `deltalake` library, which needs no JAR that fits a version of Spark.  Whoever writes has a name,
and its batches have numbers; both are in the transaction, so a batch that is told again is known.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bolide.model.errors import ConfigError
from bolide.pipeline.table_files import partition_of

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Written:
    """A file of a batch."""

    path: str
    """Below the table's folder, with `/`."""
    rows: int
    size_bytes: int


@dataclass(frozen=True)
class Batch:
    number: int
    written_ms: int
    files: Iterable[Written]


class DeltaLog:
    """Read anew by every call."""

    def __init__(self, folder: Path, writer: str) -> None:
        check_library()
        self._folder, self._writer = folder, writer

    def version(self) -> int:
        """The number of the last batch of this writer that the table was told of; -1 before the first."""
        table = self.table()
        return -1 if table is None else self._told(table)

    def paths(self) -> list[str]:
        """Its files, below its folder."""
        table = self.table()
        if table is None:
            return []
        root = _without_scheme(table.table_uri)  # the folder as the files' addresses have it, with escapes
        return sorted(str(Path(_without_scheme(uri)).relative_to(root)) for uri in table.file_uris())

    def add(self, batch: Batch, schema: "StructType", partition_by: Sequence[str]) -> None:
        """Does nothing when the table has been told of it; `ConfigError` when it has other columns."""
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction, create_table_with_add_actions

        table, columns = self.table(), _schema(schema)
        if table is not None and self._told(table) >= batch.number:
            return
        actions = [
            AddAction(
                path=file.path,
                size=file.size_bytes,
                partition_values=partition_of(file.path),
                modification_time=batch.written_ms,
                data_change=True,
                stats=json.dumps({"numRecords": file.rows}),
            )
            for file in batch.files
        ]
        properties = CommitProperties(app_transactions=[Transaction(self._writer, batch.number)])
        by = list(partition_by)
        if table is None:
            create_table_with_add_actions(
                str(self._folder),
                columns,
                actions,
                mode="error",
                partition_by=by,
                commit_properties=properties,
            )
            return
        self._check_same(table, columns, by)
        table.create_write_transaction(
            [*actions], "append", columns, partition_by=by, commit_properties=properties
        )

    def table(self) -> "DeltaTable | None":
        from deltalake import DeltaTable

        uri = str(self._folder)
        return DeltaTable(uri) if DeltaTable.is_deltatable(uri) else None

    def _told(self, table: "DeltaTable") -> int:
        version = table.transaction_version(self._writer)
        return -1 if version is None else int(version)

    def _check_same(self, table: "DeltaTable", columns: Any, by: list[str]) -> None:
        """Files of other columns would be a table that nobody can read."""
        there, new = (
            {one.name: str(one.type) for one in schema.fields} for schema in (table.schema(), columns)
        )
        if there != new:
            differing = sorted(name for name in {*there, *new} if there.get(name) != new.get(name))
            raise ConfigError(
                f"the Delta table in {self._folder} has other columns than what is written to it:"
                f" {', '.join(differing)}. Give it another path"
            )
        if table.metadata().partition_columns != by:
            parts = ", ".join(table.metadata().partition_columns) or "no column"
            raise ConfigError(f"the Delta table in {self._folder} is partitioned by {parts}: say the same")


def check_library() -> None:
    """Says early what is missing."""
    try:
        import deltalake  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise ConfigError(
            f"a Delta table needs the library deltalake: pip install 'bolide[delta]' ({error})"
        ) from error


def _without_scheme(uri: str) -> str:
    return uri.removeprefix("file://")


def _schema(schema: "StructType") -> Any:
    from deltalake import Schema

    from bolide.pipeline.schema import arrow_schema

    return Schema.from_arrow(arrow_schema(schema))
