"""A sink that is a Delta table: every batch of its query in one transaction of the table, and never twice.

1. Spark writes the rows to files of a staging folder, which get their names for good and are synced.
2. They are moved to where the table's files are.  Nobody reads them there: the table does not know them yet.
3. The table is told of them, with the query's id and the number of the batch.  **This is the commit.**

A batch that is repeated, because the driver was killed before Spark knew of the commit, is known by that number.  One
that was killed before 3 is written anew, over the files that it had moved.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from bolide.model.errors import ConfigError
from bolide.pipeline.delta_log import Batch, DeltaLog, Written
from bolide.pipeline.stream_writer import QUERY_ID
from bolide.pipeline.table_files import MICROSECONDS, move_in, named_files, set_for

STAGING = "_staging"
"""Below the table; names that begin so are no part of it."""

Step = Callable[[str], None]
"""Called before every step of a commit, with its name."""


@dataclass(frozen=True)
class DeltaSink:
    folder: Path
    now_ms: Callable[[], int]
    partition_by: Sequence[str] = ()
    before: Step = lambda step: None

    def batch(self, frame: DataFrame, number: int) -> None:
        """What `foreachBatch` calls."""
        query = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
        if query is None:
            raise ConfigError(
                "Spark does not say which query a batch is of: it could not be told from another's"
            )
        self.write(frame, query, number)

    def write(self, frame: DataFrame, query: str, number: int) -> None:
        log = DeltaLog(self.folder, f"bolide.{query}")
        staging = self.folder / STAGING / query
        if log.version() < number:
            self.before("stage")
            self._stage(frame, staging)
            self.before("name")
            files = named_files(staging, f"{query}-{number:012}")
            told = [_told(file, staging) for file in files]
            for file in files:
                self.before("move")
                move_in(file, staging, self.folder)
            self.before("commit")
            log.add(Batch(number, self.now_ms(), told), frame.schema, self.partition_by)
            self.before("committed")
        shutil.rmtree(staging, ignore_errors=True)

    def _stage(self, frame: DataFrame, staging: Path) -> None:
        with set_for(frame.sparkSession, **MICROSECONDS):
            writer = frame.write.mode("overwrite").option("compression", "zstd")
            if self.partition_by:
                writer = writer.partitionBy(*self.partition_by)
            writer.parquet(str(staging))


def _told(file: Path, staging: Path) -> Written:
    rows = pq.read_metadata(file).num_rows
    return Written(str(file.relative_to(staging)), rows, file.stat().st_size)
