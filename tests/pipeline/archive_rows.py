"""Messages as rows, for tests that archive without a server.  Not a test."""

import datetime
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from bolide.pipeline.archive.delta import ArchiveLog
from bolide.pipeline.archive.place import DELTA, Place
from bolide.pipeline.archive.read import archived, committed, files_of
from bolide.pipeline.archive.write import Archive
from bolide.pipeline.schema import native_schema

DAY_MS = 86_400_000
FIRST_DAY_MS = 20_000 * DAY_MS
"""2024-10-04."""


def message(
    offset: int, *, topic: str = "orders", queue: int = 0, day: int = 0, body: str = ""
) -> dict[str, Any]:
    moment = datetime.datetime.fromtimestamp((FIRST_DAY_MS + day * DAY_MS) / 1000, datetime.UTC)
    return {
        "topic": topic,
        "brokerName": "broker-a",
        "queueId": queue,
        "queueOffset": offset,
        "body": (body or f"{topic}/{queue}/{offset}").encode(),
        "tags": None if offset % 2 else "even",
        "keys": [f"k{offset}"],
        "properties": {"n": str(offset), "city": "Köln"},
        "msgId": f"id-{offset}",
        "bornTimestamp": moment,
        "storeTimestamp": moment + datetime.timedelta(seconds=offset),
        "reconsumeTimes": 0,
        "flag": 0,
    }


def rows(spark: SparkSession, messages: Iterable[dict[str, Any]]) -> DataFrame:
    schema = native_schema()
    values = [tuple(one.get(name) for name in schema.names) for one in messages]
    return spark.createDataFrame(values, schema)


def opened(place: Place, day: int = 0, **how: Any) -> Archive:
    """As a run opens it that has just begun."""
    archive = Archive(place, lambda: FIRST_DAY_MS + day * DAY_MS, **how)
    archive.recover()
    return archive


def bodies(frame: DataFrame) -> list[str]:
    return sorted(bytes(row.body).decode() for row in frame.select("body").collect())


def kept(spark: SparkSession, place: Place) -> list[str]:
    return bodies(archived(spark, place.folder))


def read_by_others(files: Iterable[Path]) -> list[str]:
    """Bodies, as somebody reads files who knows neither Spark nor manifests."""
    tables = (pq.ParquetFile(file).read(["body"])["body"].to_pylist() for file in files)
    return sorted(body.decode() for table in tables for body in table)


def held(place: Place) -> list[str]:
    """What is committed."""
    return read_by_others(files_of(place, committed(place)).values())


def plain(place: Place) -> list[str]:
    """What lies in the folder."""
    return read_by_others(place.data.rglob("*.parquet"))


def all_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def image(place: Place) -> dict[str, object]:
    """All that makes an archive, to the byte; of a Delta table's log, what it says."""
    folders = (place.data, place.manifest, place.staging)
    files = [file for folder in folders for file in all_files(folder) if "_delta_log" not in file.parts]
    found: dict[str, object] = {str(file.relative_to(place.folder)): file.read_bytes() for file in files}
    if place.format == DELTA:
        found |= {"version": ArchiveLog(place).version(), "paths": ArchiveLog(place).paths()}
    return found
