"""Arrow batches of rows to write, cut by topic and by whether messages wait, as buffers for `rows.py`.

Needs pyarrow and no Spark.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from bolide.arrow.rows import Columns, Numbers, Pairs, Text, Texts
from bolide.model.errors import BadRow, BolideError
from bolide.model.limits import DELAY_LEVELS_MAX
from bolide.model.moments import looks_like_seconds
from bolide.model.names import check_topic

Column = Text | Texts | Pairs | Numbers

_ALIASES = {"value": "body"}
_DELAYS = ("delay_level", "deliver_at")


@dataclass(frozen=True)
class Rows:
    """Rows of one topic that are sent in the same way; `places` are those in the batch, None where it has no others."""

    topic: str
    columns: Columns
    count: int
    delayed: bool
    places: pa.Array | None

    def place(self, row: int) -> int:
        return row if self.places is None else int(self.places[row].as_py())


def cut(batch: pa.RecordBatch, topic: str | None) -> Iterator[Rows]:
    """All rows of the batch; `topic` wins over the column."""
    arrays = {_ALIASES.get(name, name): batch.column(at) for at, name in enumerate(batch.schema.names)}
    topics = arrays.pop("topic", None)
    if topic is not None:
        yield from _by_delay(topic, arrays, batch.num_rows, None)
        return
    assert topics is not None, "the write was checked to have one of them"
    if topics.null_count:
        raise BadRow(_first(pc.is_null(topics)), "topic", "is null, and nothing else says where it goes")
    for name in pc.unique(topics).to_pylist():
        mask = pc.equal(topics, name)
        try:
            check_topic(name)
        except BolideError as error:
            raise BadRow(_first(mask), "topic", f"cannot be written to: {error}") from None
        whole = pc.all(mask).as_py()
        places = None if whole else pc.indices_nonzero(mask)
        yield from _by_delay(name, arrays, batch.num_rows, places)


def _by_delay(topic: str, arrays: dict[str, pa.Array], count: int, places: pa.Array | None) -> Iterator[Rows]:
    delays = {name: arrays[name] for name in _DELAYS if name in arrays}
    plain = {name: array for name, array in arrays.items() if name not in delays}
    if not delays:
        yield _rows(topic, plain, count, places, delayed=False)
        return
    delays = {name: _as_numbers(name, array) for name, array in delays.items()}
    waits = pa.array([False] * count)
    for array in delays.values():
        waits = pc.or_(waits, pc.is_valid(array))
    chosen = pa.array(range(count)) if places is None else pc.cast(places, pa.int64())
    of_topic = pc.take(waits, chosen)
    at_once, later = pc.filter(chosen, pc.invert(of_topic)), pc.filter(chosen, of_topic)
    if len(at_once):
        yield _rows(topic, plain, count, at_once, delayed=False)
    if len(later):
        _check_delays({name: pc.take(array, later) for name, array in delays.items()}, later)
        yield _rows(topic, {**plain, **delays}, count, later, delayed=True)


def _rows(
    topic: str, arrays: dict[str, pa.Array], count: int, places: pa.Array | None, *, delayed: bool
) -> Rows:
    if places is not None:
        arrays = {name: pc.take(array, places) for name, array in arrays.items()}
        count = len(places)
    return Rows(topic, {name: _column(name, array) for name, array in arrays.items()}, count, delayed, places)


def _check_delays(delays: dict[str, pa.Array], places: pa.Array) -> None:
    empty = [None] * len(places)
    levels = delays["delay_level"].to_pylist() if "delay_level" in delays else empty
    moments = delays["deliver_at"].to_pylist() if "deliver_at" in delays else empty
    for row, (level, moment_ms) in enumerate(zip(levels, moments, strict=True)):
        place = int(places[row].as_py())
        if level is not None and moment_ms is not None:
            raise BadRow(place, "deliver_at", "is given beside a delay_level: a message has one of them")
        if level is not None and not 0 < level <= DELAY_LEVELS_MAX:
            raise BadRow(
                place, "delay_level", f"is {level}; there are 1 to {DELAY_LEVELS_MAX}, and 0 for none"
            )
        if moment_ms is not None and (moment_ms < 0 or looks_like_seconds(moment_ms)):
            raise BadRow(
                place, "deliver_at", f"is {moment_ms}, which is no moment in milliseconds since 1970"
            )


def _first(mask: pa.Array) -> int:
    return int(pc.index(mask, True).as_py())


# ---- buffers ---------------------------------------------------------------------------------------------------


def _as_numbers(name: str, array: pa.Array) -> pa.Array:
    """64 bits; a time in milliseconds, rounded up, so that nothing is delivered early; no level is null."""
    if pa.types.is_timestamp(array.type):
        is_finer = array.type.unit == "ns"  # what lies below a microsecond is not told
        micros = pc.cast(pc.cast(array, pa.timestamp("us", array.type.tz), safe=not is_finer), pa.int64())
        return pc.divide(pc.add(micros, 999), 1000)
    numbers = pc.cast(array, pa.int64())
    if name == "delay_level":
        return pc.if_else(pc.equal(numbers, 0), pa.scalar(None, pa.int64()), numbers)
    return numbers


def _column(name: str, array: pa.Array) -> Column:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    if pa.types.is_map(kind):
        validity, offsets = array.buffers()[:2]
        return Pairs(_view(validity), _must(offsets), array.offset, _text(array.keys), _text(array.items))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        array = pc.cast(array, pa.list_(pa.string()))
        validity, offsets = array.buffers()[:2]
        return Texts(_view(validity), _must(offsets), array.offset, _text(array.values))
    if name in ("queue_id", *_DELAYS):
        array = pc.cast(array, pa.int64())
        validity, data = array.buffers()
        return Numbers(_view(validity), _must(data), array.offset)
    return _text(array)


def _text(array: pa.Array) -> Text:
    """Spark's large and viewed texts as plain ones."""
    if not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        binary = pa.types.is_large_binary(array.type)
        array = pc.cast(array, pa.binary() if binary else pa.string())
    validity, offsets, data = array.buffers()
    return Text(_view(validity), _must(offsets), _must(data), array.offset)


def _view(buffer: pa.Buffer | None) -> memoryview | None:
    return None if buffer is None else memoryview(buffer)


def _must(buffer: pa.Buffer | None) -> memoryview:
    return memoryview(b"\0" * 8) if buffer is None else memoryview(buffer)
