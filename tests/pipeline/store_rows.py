"""Rows of a store, to be compared with those of a read through its broker."""

from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession


def store_read(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("rocketmq-store").options(**options).load(str(path))


def by_place(frame: DataFrame) -> list[Row]:
    """All rows with all columns, in an order that both reads have."""
    return sorted(frame.collect(), key=lambda row: (row.topic, row.queueId, row.queueOffset))
