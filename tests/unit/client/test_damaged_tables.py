"""Tables whose columns are not what their types say: pyarrow takes them from others as they are."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from bolide import BadRow, BolideError, InvalidRequest, Producer, RowsPartlyStored, aio
from bolide.arrow import tables
from bolide.testing import EmbeddedServer
from tests.unit.client.polling import on_cluster
from tests.unit.client.scripted import Cluster
from tests.unit.client.test_arrow import readers, rows_of


def text(*rows: bytes) -> pa.Array:
    """As it is read from a column of bytes: pyarrow does not look whether they are text."""
    return pa.array(rows, pa.binary()).view(pa.string())


OFFSETS = pa.array([0, 1, 2, 3], pa.int32())
BEYOND = pa.array([0, 2**31 - 2, 13, 13], pa.int32())
NOT_TEXT = text(b"a", b"\xff\xfe", b"c")
NOT_THERE = pa.DictionaryArray.from_arrays(pa.array([0, 5, 0], pa.int32()), pa.array(["a"]), safe=False)
BEHIND_ITS_END = pa.Array.from_buffers(
    pa.binary(), 3, [None, BEYOND.buffers()[1], pa.py_buffer(b"0123456789abc")]
)


@pytest.mark.parametrize(
    ("column", "values", "row", "why"),
    [
        ("tags", NOT_TEXT, 1, "is not UTF-8"),
        ("sharding_key", NOT_TEXT, 1, "is not UTF-8"),
        ("topic", NOT_TEXT, 1, "is not UTF-8"),
        ("body", NOT_TEXT, 1, "is not UTF-8"),
        ("keys", NOT_TEXT, 1, "is not UTF-8"),
        ("keys", pa.ListArray.from_arrays(OFFSETS, NOT_TEXT), 1, "is not UTF-8"),
        ("properties", pa.MapArray.from_arrays(OFFSETS, ["a", "b", "c"], NOT_TEXT), 1, "is not UTF-8"),
        ("properties", pa.MapArray.from_arrays(OFFSETS, NOT_TEXT, ["a", "b", "c"]), 1, "is not UTF-8"),
        ("body", NOT_THERE, 1, "cannot be read: .*out of bounds: 5"),
        ("body", BEHIND_ITS_END, 0, "cannot be read: .*out of bounds"),
        (
            "keys",
            pa.ListArray.from_arrays(pa.array([0, 2, 1, 2], pa.int32()), ["a", "b"]),
            1,
            "cannot be read",
        ),
    ],
)
def test_a_table_that_pyarrow_did_not_check_is_refused_by_row_and_column(
    column: str, values: pa.Array, row: int, why: str
) -> None:
    columns: dict[str, object] = {"body": [b"x"] * 3, "topic": ["orders", "bills", "orders"], column: values}

    async def scenario(c: Cluster) -> None:
        async with aio.Producer(c.nameserver.address) as producer:
            for begin in range(row + 1):
                with pytest.raises(BadRow, match=f"row {row - begin}: the column {column} {why}") as caught:
                    await producer.send_arrow(pa.table(columns).slice(begin))
                assert (caught.value.row, caught.value.column) == (row - begin, column)
        assert c.brokers[0].sends == []

    on_cluster(scenario)


def test_a_table_is_sent_whatever_its_columns_have_outside_of_it(
    bolide_module_server: EmbeddedServer,
) -> None:
    columns = {
        "body": [b"x"] * 3,
        "tags": NOT_TEXT,
        "keys": pa.ListArray.from_arrays(OFFSETS, NOT_TEXT),
        "properties": pa.MapArray.from_arrays(OFFSETS, ["a", "b", "c"], NOT_TEXT),
    }
    with Producer(bolide_module_server.nameserver) as producer:
        assert producer.send_arrow(pa.table(columns).slice(2), topic="arrow-rest").rows == 1
        assert producer.send_arrow(pa.table(columns).slice(2, 0), topic="arrow-rest").rows == 0
    with readers(bolide_module_server, "arrow-rest") as consumer:
        assert [row["keys"] for row in rows_of(consumer, 1)] == [["c"]]


def test_a_table_is_looked_over_a_piece_at_a_time_and_its_rows_are_counted_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that nobody waits on the event loop while all of a large one is looked over."""
    looked_over: list[int] = []
    whole = tables.wrong_with_data

    def looking(batch: pa.RecordBatch) -> BolideError | None:
        looked_over.append(batch.num_rows)
        return whole(batch)

    monkeypatch.setattr(tables, "LOOKED_OVER_ROWS", 2)
    monkeypatch.setattr(tables, "wrong_with_data", looking)
    tags = pa.concat_arrays([pa.array(["ok"] * 5), NOT_TEXT])
    table = pa.table({"body": [b"x"] * len(tags), "tags": tags})

    async def scenario(c: Cluster) -> None:
        async with aio.Producer(c.nameserver.address) as producer:
            with pytest.raises(BolideError) as caught:
                await producer.send_arrow(table, topic="orders")
            trouble = caught.value.__cause__ if isinstance(caught.value, RowsPartlyStored) else caught.value
            assert isinstance(trouble, BadRow)
            assert trouble.row == first_bad

    first_bad = next(
        row for row in range(len(tags)) if whole(pa.record_batch({"tags": tags.slice(row, 1)})) is not None
    )
    on_cluster(scenario)
    assert max(looked_over) == 2


def test_a_dictionary_that_is_not_text_is_refused_by_its_column() -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), NOT_TEXT)

    async def scenario(c: Cluster) -> None:
        async with aio.Producer(c.nameserver.address) as producer:
            with pytest.raises(InvalidRequest, match=r"the column tags cannot be read: .*UTF8"):
                await producer.send_arrow(pa.table({"body": ["a", "b"], "tags": values}), topic="orders")
        assert c.brokers[0].sends == []

    on_cluster(scenario)


def test_text_that_is_none_behind_what_was_sent_is_counted_from_the_beginning() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(4):
            yield pa.record_batch({"body": [bytes(3_000_000)] * 3, "tags": ["ok"] * 3})
        yield pa.record_batch({"body": [b"x"] * 3, "tags": NOT_TEXT})

    async def scenario(c: Cluster) -> None:
        schema = pa.schema([("body", pa.binary()), ("tags", pa.string())])
        async with aio.Producer(c.nameserver.address) as producer:
            with pytest.raises(RowsPartlyStored) as caught:
                await producer.send_arrow(
                    pa.RecordBatchReader.from_batches(schema, batches()), topic="orders"
                )
        assert isinstance(caught.value.cause, BadRow)
        assert (caught.value.cause.row, caught.value.stored) == (13, 12)
        assert caught.value.missing == []

    on_cluster(scenario)
