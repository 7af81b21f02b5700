"""Rows into Parquet files of a staging folder, and files of an archive into rows.

Files have a folder for each date (of `storeTimestamp`, in UTC) and topic; both columns are in the names of folders and
not in the files, as everywhere with Spark.  What cannot be read has no date.
"""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import DateType, StructField, StructType

from bolide.model.limit import MIB
from bolide.pipeline.archive.manifest import DataFile
from bolide.pipeline.schema import COLUMNS, native_schema
from bolide.pipeline.table_files import MICROSECONDS, set_for

DATE = "date"
PARTITION = (DATE, "topic")
WRITTEN = {
    "compression": "zstd",
    "parquet.block.size": str(32 * MIB),
    "parquet.block.size.row.check.min": "1",
    "parquet.block.size.row.check.max": "16",
    "parquet.page.size.row.check.min": "1",
    "parquet.page.size.row.check.max": "16",
}
"""How much is held before it is written, looked at every few rows.  Left alone, Parquet looks for the first time behind
a hundred, and then perhaps behind ten thousand, each of which may have some megabytes."""

_DAY = "date_from_unix_date(cast(unix_millis(storeTimestamp) div 86400000 as int))"


def file_schema() -> StructType:
    """The columns of a topic, and the date."""
    return StructType([*native_schema(), StructField(DATE, DateType())])


def write_files(frame: DataFrame, folder: Path, tasks: int) -> None:
    with set_for(frame.sparkSession, **MICROSECONDS):
        (
            frame.select(*COLUMNS)
            .withColumn(DATE, F.expr(_DAY))
            .coalesce(tasks)
            .sortWithinPartitions(*PARTITION, "brokerName", "queueId", "queueOffset")
            .write.mode("overwrite")
            .options(**WRITTEN)
            .partitionBy(*PARTITION)
            .parquet(str(folder))
        )


def read_files(spark: SparkSession, root: Path, files: Sequence[Path]) -> DataFrame:
    """Files below a folder that ends where folders of dates begin; with the column `date`."""
    reader = spark.read.schema(file_schema()).option("basePath", str(root))
    if not files:
        return spark.createDataFrame([], file_schema())
    return reader.parquet(*(_literal(file) for file in files))


def _literal(path: Path) -> str:
    """Spark takes paths for patterns."""
    return "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in str(path))


def listed_files(folder: Path, files: Sequence[Path], rows: dict[str, int]) -> list[DataFile]:
    return [
        DataFile(str(file.relative_to(folder)), rows.get(file.name, 0), file.stat().st_size) for file in files
    ]
