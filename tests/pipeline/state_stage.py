"""Pipelines that keep state of rows, each in a folder: files are the sources, so that a test says what time it is."""

import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

from pyspark.sql import SparkSession

from bolide.net.clock import SystemClock
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.files import load
from bolide.pipeline.declared.progress import QueryProgress
from bolide.pipeline.declared.run import run

SOURCE = '{format: json, path: PATH, schema: "id long, t timestamp", options: {maxFilesPerTrigger: 1}}'


class StateStage:
    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark = folder, spark
        self._files = 0

    def rows(self, source: str, *rows: tuple[int | None, int]) -> None:
        """Ids and minutes, in a file that is there at once or not at all: a batch of its own."""
        lines = [
            json.dumps({"id": number, "t": f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00Z"})
            for number, minute in rows
        ]
        (self.folder / source).mkdir(exist_ok=True)
        new = self.folder / "new"
        new.write_text("\n".join(lines) + "\n")
        self._files += 1
        new.rename(self.folder / source / f"{self._files:04}.json")

    def write(self, text: str) -> None:
        for source in ("orders", "payments"):
            (self.folder / source).mkdir(exist_ok=True)
            text = text.replace(f"SOURCE {source}", SOURCE.replace("PATH", source))
        (self.folder / "rows.yaml").write_text(dedent(text))

    def run(self, text: str, **how: Any) -> QueryProgress:
        """The one query of a definition, over all that is there."""
        self.write(text)
        loaded = load(self.folder / "rows.yaml")
        assert loaded.definition is not None
        assert loaded.errors == []
        self.checkpoint = Checkpoint.of(loaded.definition)
        settings: dict[str, Any] = {"once": True, **how}
        queries: Sequence[QueryProgress] = run(
            loaded.definition, self.spark, self.checkpoint, now_ms=SystemClock().now_ms, **settings
        )
        (query,) = queries
        return query

    def out(self, *columns: str) -> list[tuple[Any, ...]]:
        frame = self.spark.read.parquet(str(self.folder / "out")).selectExpr(*columns)
        return sorted((tuple(row) for row in frame.collect()), key=str)
