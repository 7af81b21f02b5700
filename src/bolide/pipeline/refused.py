"""Rows that no write takes: brokers store what our clients do not send, such as a tag with blanks.

Needs pyarrow and no Spark.
"""

import pyarrow as pa
import pyarrow.compute as pc

from bolide.arrow.frames import frames_of
from bolide.arrow.row_columns import cut
from bolide.arrow.rows import RowEncoder
from bolide.model.errors import BadRow


def refused(batch: pa.RecordBatch, topic: str | None = None) -> dict[int, str]:
    """Those of a batch, each with the reason; the others can be written together."""
    if _why_not(batch, topic) is None:
        return {}
    reasons = (_why_not(pc.take(batch, pa.array([row])), topic) for row in range(batch.num_rows))
    return {row: why for row, why in enumerate(reasons) if why is not None}


def _why_not(batch: pa.RecordBatch, topic: str | None) -> str | None:
    try:
        for rows in cut(batch, topic):
            frames_of(rows, RowEncoder("0" * 16))
    except BadRow as error:
        return f"its {error.column} {error.why}"
    return None
