"""Where the messages of a bulk write are, if they are stored: ranges of queues."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bolide.model import json_pieces
from bolide.model.errors import InvalidRequest
from bolide.model.numbers import is_int64
from bolide.wire.bodies.members import parse_answer, rows


@dataclass(frozen=True, slots=True)
class StoredRange:
    """Offsets of a queue from `begin` to before `end`."""

    topic: str
    queue_id: int
    begin: int
    end: int


def ranges_pieces(ranges: Iterable[StoredRange]) -> Iterator[bytes]:
    told = (
        {"topic": one.topic, "queueId": one.queue_id, "begin": one.begin, "end": one.end} for one in ranges
    )
    return json_pieces.compact({"ranges": json_pieces.Items(told)})


def decode_ranges(body: bytes) -> list[StoredRange]:
    return [_range(row) for row in rows(parse_answer(body, "the ranges"), "ranges")]


def _range(row: Mapping[str, Any]) -> StoredRange:
    topic = row.get("topic")
    numbers: list[Any] = [row.get(name) for name in ("queueId", "begin", "end")]
    if not isinstance(topic, str) or not all(is_int64(number) and number >= 0 for number in numbers):
        raise InvalidRequest("the ranges of a bulk write cannot be read")
    return StoredRange(topic, *numbers)
