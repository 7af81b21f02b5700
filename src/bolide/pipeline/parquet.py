"""Stored records into a Parquet file with the columns of a topic (`schema.py`), batch by batch.

Records go through the same compiled code as those that Spark reads.
"""

from collections.abc import Iterable

import pyarrow.parquet as pq

from bolide.arrow.batches import make_batch
from bolide.arrow.columns import ColumnBuilder
from bolide.pipeline.schema import COLUMNS, arrow_schema, whole_schema

OFFSET_MAX = 2**63 - 1


def write_parquet(path: str, blocks: Iterable[bytes], broker_name: str) -> int:
    """Write all records of the blocks; returns how many there were."""
    schema = arrow_schema(whole_schema())
    builder = ColumnBuilder(broker_name, list(COLUMNS))
    rows = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for block in blocks:
            at = 0
            while at < len(block):
                at = builder.append(block, at, 0, OFFSET_MAX)
                if builder.full:
                    rows += builder.rows
                    writer.write_batch(make_batch(schema, builder.rows, builder.take()))
        if builder.rows:
            rows += builder.rows
            writer.write_batch(make_batch(schema, builder.rows, builder.take()))
    return rows
