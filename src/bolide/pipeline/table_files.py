"""Files of a table that are made first and named for good afterwards, in folders that say values of columns."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from bolide.pipeline.whole_files import sync_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Spark's folder for null."""

MICROSECONDS = {"parquet_outputTimestampType": "TIMESTAMP_MICROS"}
"""What everybody reads, and not the 96 bits of old; for `set_for`."""


@contextmanager
def set_for(spark: "SparkSession", **settings: str) -> Iterator[None]:
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


def named_files(folder: Path, stem: str) -> list[Path]:
    """All files of a staging folder, durable, under the names that they will have for good."""
    found: list[Path] = []
    written = [file for file in folder.rglob("*.parquet") if file.is_file()]  # a folder may have such a name
    for at, file in enumerate(sorted(written)):
        name = file.with_name(f"{stem}-{at:05}.parquet")
        file.rename(name)
        with name.open("rb") as opened:
            os.fsync(opened.fileno())
        found.append(name)
    for made in {parent for file in found for parent in _up_to(folder, file)} | {folder, folder.parent}:
        sync_folder(made)
    return found


def move_in(file: Path, staging: Path, target: Path) -> None:
    """A file of a staging folder to the same place below another one, durably."""
    there = target / file.relative_to(staging)
    there.parent.mkdir(parents=True, exist_ok=True)
    file.rename(there)
    for folder in (*_up_to(target, there), target):
        sync_folder(folder)


def _up_to(root: Path, file: Path) -> Iterator[Path]:
    """The folders of a file below a root."""
    for folder in file.parents:
        if folder == root:
            return
        yield folder


def partition_of(path: str) -> dict[str, str | None]:
    """The values that the folders of a file's path say, as they are without escapes."""
    values = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    return {unquote(name): None if text == NO_VALUE else unquote(text) for name, text in values.items()}
