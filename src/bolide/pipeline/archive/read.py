"""An archive as a table: the rows of committed files, and nothing that a killed run has left behind."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def archived(spark: "SparkSession", place: str | Path, topics: Collection[str] | None = None) -> "DataFrame":
    """The columns of a topic (`bolide.pipeline.schema.COLUMNS`), of these topics or of all; Parquet and Delta alike."""
    raise NotImplementedError
