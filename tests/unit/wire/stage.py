"""Frames of sends as clients write them, for the tests of the scan and the reader."""

import json
import struct
from collections.abc import Mapping
from typing import Any

from bolide.model import end_rows
from bolide.model.send_rows import FRAME_AT
from bolide.wire.command import Command
from bolide.wire.frame import FrameReader, Intake
from bolide.wire.send_run import SendRun

PROPERTIES = "UNIQ_KEY\x017F000001000000000000000000000001\x02WAIT\x01true\x02TAGS\x01TagA\x02"


def frame(header: bytes, body: bytes = b"", form: int = 0) -> bytes:
    return struct.pack(">II", 4 + len(header) + len(body), form << 24 | len(header)) + header + body


def send_fields(**changes: Any) -> dict[str, Any]:
    """One-letter fields of a plain send; a change to None leaves the field out."""
    fields: dict[str, Any] = {
        "a": "g",
        "b": "T",
        "c": "TBW102",
        "d": "4",
        "e": "1",
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": PROPERTIES,
        "j": "0",
        "k": "false",
        "m": "false",
    }
    return {name: value for name, value in {**fields, **changes}.items() if value is not None}


def send_header(fields: Mapping[str, Any] | None = None, **changes: Any) -> bytes:
    """A JSON header with Java's order of keys."""
    head: dict[str, Any] = {
        "code": 310,
        "extFields": send_fields() if fields is None else fields,
        "flag": 0,
        "language": "JAVA",
        "opaque": 7,
        "serializeTypeCurrentRPC": "JSON",
        "version": 493,
    }
    head = {name: value for name, value in {**head, **changes}.items() if value is not None}
    return json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()


def send_frame(opaque: int = 7, body: bytes = b"hello", **fields: Any) -> bytes:
    return frame(send_header(send_fields(**fields), opaque=opaque), body)


def read_in_pieces(data: bytes, pieces: int, *, hot: bool, intake_bytes: int) -> list[Any]:
    """What a reader gives when the socket brings `pieces` bytes at a time; rows of runs as tuples."""
    reader = FrameReader(Intake(intake_bytes), hot=hot)
    items: list[Any] = []
    while data:
        target = reader.writable()
        count = min(len(target), len(data), pieces)
        assert count > 0, "a reader that wants nothing more can never go on"
        target[:count] = data[:count]
        data = data[count:]
        reader.received(count)
        while (item := reader.next()) is not None:
            items += rows_of(item) if isinstance(item, SendRun) else [item]
    return items


def rows_of(run: SendRun) -> list[Any]:
    """In the order in which they came."""
    frames = [(run.column(row, FRAME_AT), run.frame(row)) for row in range(run.count)]
    frames += [
        (run.ends[number * end_rows.COLUMNS + end_rows.FRAME_AT], run.end_frame(number))
        for number in range(run.end_count)
    ]
    return [decoded(bytes(frame)) for _, frame in sorted(frames, key=lambda one: one[0])]


def decoded(data: bytes) -> Command:
    (item,) = FrameReader(Intake(max(8, len(data)))).feed(data)
    assert isinstance(item, Command)
    return item
