"""Records into a Parquet file: all of them, sound or not."""

from pathlib import Path

import pyarrow.parquet as pq

from bolide.model.message import SysFlag
from bolide.pipeline.parquet import write_parquet
from bolide.pipeline.schema import COLUMNS
from tests.unit.arrow.test_columns import record


def test_a_body_that_does_not_unpack_does_not_end_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "orders.parquet")
    spoiled = record(queue_offset=2, body=b"never packed", sys_flag=int(SysFlag.COMPRESSED))
    blocks = [record(queue_offset=1) + spoiled, record(queue_offset=3)]
    assert write_parquet(path, blocks, "broker-a") == 3
    table = pq.read_table(path)
    assert table.column_names == list(COLUMNS)
    assert table["body"].to_pylist() == [b"hello", b"never packed", b"hello"]
    assert [error is None for error in table["bodyError"].to_pylist()] == [True, False, True]
