"""Whatever has Arrow's columns, as pieces of rows to send: looked over before the first, and each of a bounded size."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from bolide.arrow.batches import joined
from bolide.arrow.names import (
    BYTES,
    INTEGER,
    LONG,
    MOMENT,
    PAIRS,
    SHORT,
    TEXT,
    TEXTS,
    Field,
    wrong_with_rows,
)
from bolide.arrow.row_columns import Rows, cut
from bolide.model.errors import BadRow, BolideError, InvalidRequest
from bolide.model.limits import SEND_ROWS_PIECE_BYTES_MAX, SEND_ROWS_PIECE_MAX

LOOKED_OVER_ROWS = 65_536

_KINDS = {
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), TEXT),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), BYTES),
    **dict.fromkeys((pa.int8(), pa.uint8(), pa.int16()), SHORT),
    **dict.fromkeys((pa.uint16(), pa.int32()), INTEGER),
    **dict.fromkeys((pa.uint32(), pa.int64()), LONG),
}


class Pieces:
    """The rows of a table, a piece at a time.

    Args:
        table: a Table, a RecordBatch, a RecordBatchReader, or a data frame that gives itself as one.
        topic: where all rows go; None if a column says it.
    """

    def __init__(self, table: object, topic: str | None) -> None:
        self._reader = _reader_of(table)
        _check(self._reader.schema, topic)
        self._topic = topic
        self._trouble: BolideError | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        gathered: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in self._looked_over_at_once():
            if (trouble := wrong_with_data(batch)) is not None:
                if rows:
                    yield joined(gathered)
                self._trouble = trouble
                yield batch  # `cut` says what is wrong with it, as it would of a row
                return
            for part in _parts(_plain(batch)):
                if gathered and (
                    rows + part.num_rows > SEND_ROWS_PIECE_MAX
                    or size + part.nbytes > SEND_ROWS_PIECE_BYTES_MAX
                ):
                    yield joined(gathered)
                    gathered, rows, size = [], 0, 0
                gathered.append(part)
                rows, size = rows + part.num_rows, size + part.nbytes
        if rows:
            yield joined(gathered)

    def _looked_over_at_once(self) -> Iterator[pa.RecordBatch]:
        """A reader may give all its rows as one: on an event loop others would wait while they are looked over."""
        for batch in self._reader:
            for begin in range(0, max(1, batch.num_rows), LOOKED_OVER_ROWS):
                yield batch.slice(begin, LOOKED_OVER_ROWS)

    def cut(self, piece: pa.RecordBatch) -> list[Rows]:
        """Its rows by topic, and by whether they wait."""
        if self._trouble is not None:
            raise self._trouble
        try:
            return list(cut(piece, self._topic))
        except pa.ArrowException as error:
            raise InvalidRequest(f"the table cannot be read as messages: {error}") from error


def _reader_of(table: object) -> pa.RecordBatchReader:
    if isinstance(table, pa.RecordBatchReader):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(table.schema, [table])
    if isinstance(table, pa.Table):
        return table.to_reader()
    if hasattr(table, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(table)
    raise InvalidRequest(
        "a table is a pyarrow Table or RecordBatch, or a data frame that gives itself as one (__arrow_c_stream__),"
        f" not {type(table).__name__}"
    )


def _check(schema: pa.Schema, topic: str | None) -> None:
    """Everything that is wrong with the columns, before anything is sent."""
    fields = [
        Field(field.name, _kind(field.type), str(field.type)) for field in schema if not _says_nothing(field)
    ]
    no_topic = 'nobody says where to send to: send_arrow(table, topic="orders"), or a column topic'
    if wrong := wrong_with_rows(fields, no_topic if topic is None else None):
        raise InvalidRequest("; ".join(wrong))


def wrong_with_data(batch: pa.RecordBatch) -> BolideError | None:
    """What is wrong with the bytes of the columns, and in which row; None if they are what their types say.

    pyarrow takes columns from others as they are.  Bytes that are not UTF-8 would be stored as text that no consumer
    can read, and places behind the end of a column end the process.
    """
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        if (why := _unsound(array)) is None:
            continue
        if _unsound(array.slice(0, 0)) is not None:  # all its rows share what is wrong
            return InvalidRequest(f"the column {name} cannot be read: {why}")
        sound, bad = 0, len(array)  # so many rows of it, from the first on
        while bad - sound > 1:
            middle = (sound + bad) // 2
            sound, bad = (middle, bad) if _unsound(array.slice(0, middle)) is None else (sound, middle)
        return BadRow(sound, name, "is not UTF-8" if "UTF8" in why else f"cannot be read: {why}")
    return None


def _unsound(array: pa.Array) -> str | None:
    """As pyarrow's own `validate` has it; of the texts in lists no more are looked at than the rows have.

    Slices of a large table share their texts: each would cost as much as the whole.
    """
    kind = array.type
    try:
        if pa.types.is_map(kind):
            texts = [array.keys, array.items]
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            texts = [array.values]
        else:
            array.validate(full=True)
            return None
        array.validate()
        if len(array) == 0:
            return None
        ends = array.offsets
        if not pc.all(pc.less_equal(ends[:-1], ends[1:])).as_py():
            return "a list ends before it begins"
        begin, end = ends[0].as_py(), ends[-1].as_py()
        for text in texts:
            text.slice(begin, end - begin).validate(full=True)
    except pa.ArrowException as error:
        return str(error)
    return None


def _kind(kind: pa.DataType) -> str | None:
    if pa.types.is_dictionary(kind):
        return _kind(kind.value_type)
    if pa.types.is_fixed_size_binary(kind):
        return BYTES
    if pa.types.is_timestamp(kind):
        return None if kind.tz is None else MOMENT  # nobody knows which moment it is
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return TEXTS if _KINDS.get(kind.value_type) == TEXT else None
    if pa.types.is_map(kind):
        return PAIRS if _KINDS.get(kind.key_type) == _KINDS.get(kind.item_type) == TEXT else None
    return _KINDS.get(kind)


def _says_nothing(field: pa.Field) -> bool:
    """A column in which every row is null, as frames without types have it."""
    return pa.types.is_null(field.type) and field.name not in ("topic", "body", "value")


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same in the layouts that are read here; without columns that say nothing."""
    names = [field.name for field in batch.schema if not _says_nothing(field)]
    return pa.RecordBatch.from_arrays([_plain_array(batch.column(name)) for name in names], names=names)


def _plain_array(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type == pa.string_view():
        return array.cast(pa.string())
    if array.type == pa.binary_view() or pa.types.is_fixed_size_binary(array.type):
        return array.cast(pa.binary())
    return array


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Halves of halves, until they are small enough."""
    if batch.num_rows <= 1 or (
        batch.num_rows <= SEND_ROWS_PIECE_MAX and batch.nbytes <= SEND_ROWS_PIECE_BYTES_MAX
    ):
        yield batch
        return
    half = batch.num_rows // 2
    yield from _parts(batch.slice(0, half))
    yield from _parts(batch.slice(half))
