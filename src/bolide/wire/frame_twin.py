"""The readable twin of `_frame.pyx`: scanning runs of send requests, and answering them.

`scan_sends` takes only requests that need no decision: JSON header, code 10, 310 or 320, every field of its plain
type, a legal length of topic.  It stops at the first frame that is anything else and leaves it to the general
path, which knows all forms and gives all errors.
"""

import re
import struct
from typing import Any

import orjson

from bolide.model.send_rows import (
    BODY_AT,
    COLUMNS,
    KIND_BATCH,
    KIND_ONE_WAY,
    OPAQUE,
    QUEUE_ID,
    QUEUE_OFFSET,
    RECORDS_AT,
    RECORDS_COUNT,
    ROWS_MAX,
    UNIQUE_KEY_AT,
    UNIQUE_KEY_LENGTH,
)
from bolide.wire.send_run import SendRun

_PREFIX = struct.Struct(">II")
_TOPIC_BYTES_MAX = 127
_INT = re.compile(rb"-?[0-9]{1,18}\Z")
_INT32 = range(-0x8000_0000, 0x8000_0000)

_LETTERS = {
    "topic": "b",
    "queue_id": "e",
    "sys_flag": "f",
    "born": "g",
    "flag": "h",
    "properties": "i",
    "reconsume": "j",
    "batch": "m",
}
_LONG = {
    "topic": "topic",
    "queue_id": "queueId",
    "sys_flag": "sysFlag",
    "born": "bornTimestamp",
    "flag": "flag",
    "properties": "properties",
    "reconsume": "reconsumeTimes",
    "batch": "batch",
}


def scan_sends(run: SendRun, start: int, end: int, size_max: int) -> int:
    """Add the plain sends of `run.buffer[start:end]` to the run; returns where it stopped."""
    at = start
    while run.count < ROWS_MAX and end - at >= 8:
        length, mark = _PREFIX.unpack_from(run.buffer, at)
        header_length = mark & 0xFFFFFF
        if mark >> 24 or length > size_max or header_length > length - 4 or end - at < 4 + length:
            break
        if not _scan_one(run, at, length, header_length):
            break
        at += 4 + length
    return at


def _scan_one(run: SendRun, at: int, length: int, header_length: int) -> bool:
    body_at = at + 8 + header_length
    try:
        head = orjson.loads(memoryview(run.buffer)[at + 8 : body_at])
    except orjson.JSONDecodeError:
        return False
    if not isinstance(head, dict) or head.get("code") not in (10, 310, 320):
        return False
    flag, opaque, fields = head.get("flag"), head.get("opaque"), head.get("extFields")
    if type(flag) is not int or type(opaque) is not int or not isinstance(fields, dict):
        return False
    if flag not in (0, 2) or opaque not in _INT32:
        return False
    names = _LONG if head["code"] == 10 else _LETTERS
    topic = fields.get(names["topic"])
    if type(topic) is not str or not 0 < len(topic.encode()) <= _TOPIC_BYTES_MAX:
        return False
    properties = fields.get(names["properties"])
    if properties is not None and type(properties) is not str:
        return False
    numbers = [_number(fields.get(names[n]), d) for n, d in _NUMBERS]
    batch = fields.get(names["batch"])
    if None in numbers or batch not in (None, "true", "false"):
        return False
    text = (properties or "").encode()
    if run.properties_used + len(text) > len(run.properties):
        return False
    queue_id, sys_flag, born, user_flag, reconsume = numbers
    kind = (KIND_ONE_WAY if flag == 2 else 0) | (KIND_BATCH if batch == "true" else 0)
    row = run.count * COLUMNS
    run.rows[row : row + BODY_AT] = _row(
        (opaque, _topic_number(run, topic.encode()), queue_id, sys_flag, born, user_flag)
        + (run.properties_used, len(text))
    )
    run.rows[row + BODY_AT : row + QUEUE_OFFSET] = _row(
        (body_at, 4 + length - 8 - header_length, reconsume, kind, at, 4 + length)
    )
    run.properties[run.properties_used : run.properties_used + len(text)] = text
    run.properties_used += len(text)
    run.count += 1
    return True


_NUMBERS = (("queue_id", -1), ("sys_flag", 0), ("born", 0), ("flag", 0), ("reconsume", 0))


def _number(value: Any, default: int) -> int | None:
    if value is None:
        return default
    if type(value) is not str or not _INT.match(value.encode()):
        return None
    return int(value)


def _row(values: tuple[int | None, ...]) -> Any:
    from array import array

    return array("q", [value or 0 for value in values])


def _topic_number(run: SendRun, topic: bytes) -> int:
    if topic not in run.topics:
        run.topics.append(topic)
    return run.topics.index(topic)


def encode_send_answers(run: SendRun, first: int, last: int, store_host: bytes, tail: bytes) -> bytes:
    """Frames that answer rows `first` to `last - 1` with success; one-way rows get none.

    `store_host` is the upper-case hex of address and port that begins every message id; `tail` is what all
    answers share, from `,"MSG_REGION"` to before the opaque.
    """
    frames: list[bytes] = []
    for row in range(first, last):
        if run.is_one_way(row):
            continue
        at = run.column(row, RECORDS_AT)
        offsets = run.log_offsets[at : at + run.column(row, RECORDS_COUNT)]
        ids = b",".join(b"%s%016X" % (store_host, offset) for offset in offsets)
        key_at, key_length = run.column(row, UNIQUE_KEY_AT), run.column(row, UNIQUE_KEY_LENGTH)
        key = bytes(run.properties[key_at : key_at + key_length])
        header = (
            b'{"code":0,"extFields":{"msgId":"%s","queueId":"%d","queueOffset":"%d"%s%s%d}'
            % (
                ids,
                run.column(row, QUEUE_ID),
                run.column(row, QUEUE_OFFSET),
                b',"transactionId":"%s"' % key if key else b"",
                tail,
                run.column(row, OPAQUE),
            )
        )
        frames.append(_PREFIX.pack(4 + len(header), len(header)) + header)
    return b"".join(frames)
