"""Rows of anybody's Parquet file as Python objects, some at a time, for `bolide send`."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as pq

from bolide.model.errors import ConfigError

ROWS_AT_ONCE = 256


def read_rows(
    path: Path, check: Callable[[Sequence[str]], None]
) -> Iterator[tuple[list[dict[str, Any]], float]]:
    """Rows by the names of their columns, and which share of the file they are.  `check` is shown the names first."""
    try:
        with pq.ParquetFile(path) as file:
            check(file.schema_arrow.names)
            count = max(1, file.metadata.num_rows)
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
                rows = batch.to_pylist()
                yield rows, len(rows) / count
    except pyarrow.ArrowException as error:
        raise ConfigError(f"{path} cannot be read as Parquet: {' '.join(str(error).split())}") from error
