"""Rows into Parquet files of a staging folder, and files of an archive into rows.

Files have a folder for each date (of `storeTimestamp`, in UTC) and topic; both columns are in the names of folders and
not in the files, as everywhere with Spark.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it
from pyspark.sql.types import DateType, StructField, StructType

from bolide.pipeline.archive.manifest import DataFile
from bolide.pipeline.schema import COLUMNS, native_schema
from bolide.pipeline.whole_files import sync_folder

DATE = "date"
PARTITION = (DATE, "topic")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Spark's folder for null: the date of what cannot be read."""

_DAY = "date_from_unix_date(cast(unix_millis(storeTimestamp) div 86400000 as int))"


def file_schema() -> StructType:
    """The columns of a topic, and the date."""
    return StructType([*native_schema(), StructField(DATE, DateType())])


def write_files(frame: DataFrame, folder: Path, tasks: int) -> None:
    # Microseconds, which everybody reads, and not the 96 bits of old.
    with set_for(frame.sparkSession, parquet_outputTimestampType="TIMESTAMP_MICROS"):
        (
            frame.select(*COLUMNS)
            .withColumn(DATE, F.expr(_DAY))
            .coalesce(tasks)
            .sortWithinPartitions(*PARTITION, "brokerName", "queueId", "queueOffset")
            .write.mode("overwrite")
            .option("compression", "zstd")
            .partitionBy(*PARTITION)
            .parquet(str(folder))
        )


@contextmanager
def set_for(spark: SparkSession, **settings: str) -> Iterator[None]:
    """Settings of Spark for a while, under their names with `_` for `.`, behind `spark.sql`."""
    before = {name: str(spark.conf.get(name)) for name in map(_setting, settings)}
    try:
        for name, value in settings.items():
            spark.conf.set(_setting(name), value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _setting(name: str) -> str:
    return f"spark.sql.{name.replace('_', '.')}"


def read_files(spark: SparkSession, root: Path, files: Sequence[Path]) -> DataFrame:
    """Files below a folder that ends where folders of dates begin; with the column `date`."""
    reader = spark.read.schema(file_schema()).option("basePath", str(root))
    if not files:
        return spark.createDataFrame([], file_schema())
    return reader.parquet(*(_literal(file) for file in files))


def _literal(path: Path) -> str:
    """Spark takes paths for patterns."""
    return "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in str(path))


def named_files(folder: Path, number: int) -> list[Path]:
    """All files of a staging folder, durable, under the names that they will have for good."""
    found: list[Path] = []
    for at, file in enumerate(sorted(folder.rglob("*.parquet"))):
        name = file.with_name(f"{number:012}-{at:05}.parquet")
        file.rename(name)
        with name.open("rb") as opened:
            os.fsync(opened.fileno())
        found.append(name)
    for parent in {parent for file in found for parent in (file.parent, file.parent.parent)} | {folder}:
        sync_folder(parent)
    sync_folder(folder.parent)
    return found


def listed_files(folder: Path, files: Sequence[Path], rows: dict[str, int]) -> list[DataFile]:
    return [
        DataFile(str(file.relative_to(folder)), rows.get(file.name, 0), file.stat().st_size) for file in files
    ]


def partition_of(path: str) -> dict[str, str | None]:
    """The date and topic of a file's path, as they are without escapes."""
    values = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    return {name: None if text == NO_VALUE else unquote(text) for name, text in values.items()}
