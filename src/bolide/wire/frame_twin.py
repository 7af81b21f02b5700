"""The readable twin of `_frame.pyx`: scanning runs of send requests, and answering them.

`scan_sends` takes only requests that need no decision: code 10, 310 or 320, or a one-way 37, and a JSON header of
text, whole numbers and literals, in which every field that storing needs is text and none that is required is missing.
It stops at the first frame that is anything else and leaves it to the general path, which knows all forms and gives all
errors.
"""

import re
import struct
from array import array

import orjson

from bolide.model import end_rows
from bolide.model.limits import HEADER_BYTES_MAX, HEADER_FIELDS_MAX
from bolide.model.send_rows import (
    COLUMNS,
    KIND_BATCH,
    KIND_ONE_WAY,
    OPAQUE,
    QUEUE_ID,
    QUEUE_OFFSET,
    RECALL_HANDLE_AT,
    RECALL_HANDLE_LENGTH,
    RECORDS_AT,
    RECORDS_COUNT,
    ROWS_MAX,
    RUN_TOPICS_MAX,
    TOPIC,
    UNIQUE_KEY_AT,
    UNIQUE_KEY_LENGTH,
)
from bolide.wire.send_run import SendRun

_PREFIX = struct.Struct(">II")
_TOPIC_BYTES_MAX = 127
_DIGITS = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_INT32 = range(-0x8000_0000, 0x8000_0000)
_INT64 = range(-0x8000_0000_0000_0000, 0x8000_0000_0000_0000)

# ---- a plain JSON object: scalar values, and keys without escapes

_BLANK = r"[ \t\n\r]*"
_KEY = r'"(?P<key>[^"\\\x00-\x1f]*)"'
_HEX = "[0-9a-fA-F]"
_UNIT = rf"(?![dD][89a-fA-F]){_HEX}{{4}}|[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}"
_STRING = rf'"(?P<text>(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u(?:{_UNIT}))*)"'
_NUMBER = r"(?P<number>-?(?:0|[1-9][0-9]*))"
_LITERAL = r"(?P<literal>true|false|null)"
FIELD = re.compile(
    f"{_BLANK}{_KEY}{_BLANK}:{_BLANK}(?:{_STRING}|{_NUMBER}|{_LITERAL}){_BLANK}(?P<mark>[,}}])"
)
FIELDS_START = re.compile(f"{_BLANK}{_KEY}{_BLANK}:{_BLANK}{{")
AFTER_FIELDS = re.compile(f"{_BLANK}(?P<mark>[,}}])")
_START = re.compile(f"{_BLANK}{{")
_END = re.compile(f"{_BLANK}\\Z")

_LETTERS = {
    "a": "group",
    "b": "topic",
    "c": "default_topic",
    "d": "default_queues",
    "e": "queue_id",
    "f": "sys_flag",
    "g": "born",
    "h": "flag",
    "i": "properties",
    "j": "reconsume",
    "m": "batch",
}
_LONG = {
    "producerGroup": "group",
    "topic": "topic",
    "defaultTopic": "default_topic",
    "defaultTopicQueueNums": "default_queues",
    "queueId": "queue_id",
    "sysFlag": "sys_flag",
    "bornTimestamp": "born",
    "flag": "flag",
    "properties": "properties",
    "reconsumeTimes": "reconsume",
    "batch": "batch",
}
_OF_AN_END = {
    "producerGroup": "group",
    "commitLogOffset": "half_at",
    "tranStateTableOffset": "half_number",
    "commitOrRollback": "verdict",
    "transactionId": "transaction_id",
    "msgId": "message_id",
}
_END_TRANSACTION = "37"
_SPELLING = {"10": _LONG, "310": _LETTERS, "320": _LETTERS, _END_TRANSACTION: _OF_AN_END}


class NotPlain(Exception):
    """The request needs the general path."""


def scan_sends(run: SendRun, buffer: bytearray, start: int, end: int, size_max: int) -> int:
    """Make the plain sends at the beginning of `buffer[start:end]` the run; returns where they end."""
    run.clear(buffer)
    at = start
    while run.count < ROWS_MAX and end - at >= 8:
        length, mark = _PREFIX.unpack_from(run.buffer, at)
        header_length = mark & 0xFFFFFF
        if (
            mark >> 24
            or length > size_max
            or header_length > length - 4
            or header_length > HEADER_BYTES_MAX
            or end - at < 4 + length
        ):
            break
        try:
            _scan_one(run, at, length, header_length)
        except NotPlain:
            break
        at += 4 + length
    return at


def _scan_one(run: SendRun, at: int, length: int, header_length: int) -> None:
    body_at = at + 8 + header_length
    head, fields = _read_head(bytes(memoryview(run.buffer)[at + 8 : body_at]))
    if head["code"] == _END_TRANSACTION:
        _scan_end(run, at, length, head, fields)
        return
    topic = fields.get("topic", "").encode()
    if b"\\" in topic or not 0 < len(topic) <= _TOPIC_BYTES_MAX:
        raise NotPlain
    if "group" not in fields or "default_topic" not in fields:
        raise NotPlain
    _number(fields, "default_queues")
    escaped = fields.get("properties", "")
    if run.properties_used + len(escaped.encode()) > len(run.properties):
        raise NotPlain
    text = orjson.loads(f'"{escaped}"').encode()
    flag = _number(head, "flag")
    batch = fields.get("batch", "false")
    if flag not in (0, 2) or batch not in ("true", "false"):
        raise NotPlain
    values = (
        _number(head, "opaque"),
        0,
        _number(fields, "queue_id"),
        _number(fields, "sys_flag"),
        _number(fields, "born", allowed=_INT64),
        _number(fields, "flag"),
        run.properties_used,
        len(text),
        body_at,
        length - 4 - header_length,
        _number(fields, "reconsume", 0),
        (KIND_ONE_WAY if flag == 2 else 0) | (KIND_BATCH if batch == "true" else 0),
        at,
        4 + length,
    )
    number = _topic_number(run, topic)
    row = run.count * COLUMNS
    run.rows[row : row + QUEUE_OFFSET] = array("q", values)
    run.rows[row + TOPIC] = number
    run.rows[row + RECALL_HANDLE_LENGTH] = 0
    run.properties[run.properties_used : run.properties_used + len(text)] = text
    run.properties_used += len(text)
    run.count += 1


def _scan_end(run: SendRun, at: int, length: int, head: dict[str, str], fields: dict[str, str]) -> None:
    _number(head, "opaque")
    if run.end_count == end_rows.ENDS_MAX or head.get("flag") != "2" or "group" not in fields:
        raise NotPlain
    values = [
        at,
        4 + length,
        _number(fields, "half_at", allowed=_INT64),
        _number(fields, "half_number", allowed=_INT64),
        _number(fields, "verdict"),
    ]
    used = run.properties_used
    texts: list[bytes] = []
    for name in ("group", "transaction_id", "message_id"):
        escaped = fields.get(name, "")
        if used + len(escaped.encode()) > len(run.properties):
            raise NotPlain
        text = orjson.loads(f'"{escaped}"').encode()
        values += (used, len(text))
        texts.append(text)
        used += len(text)
    run.properties[run.properties_used : used] = b"".join(texts)
    run.properties_used = used
    row = run.end_count * end_rows.COLUMNS
    run.ends[row : row + end_rows.COLUMNS] = array("q", values)
    run.end_count += 1


def _read_head(header: bytes) -> tuple[dict[str, str], dict[str, str]]:
    """Code, flag and opaque; and the fields by what they mean, their text as escaped on the wire.

    The code must come before the fields, because it decides how they are spelled; Java sorts it first.  What
    counts may be there only once.
    """
    try:
        text = header.decode()
    except UnicodeDecodeError:
        raise NotPlain from None
    head: dict[str, str] = {}
    fields: dict[str, str] | None = None
    at = expect_start(text)
    mark = ","
    while mark == ",":
        member = FIELD.match(text, at)
        if member is None:
            start = expect(FIELDS_START, text, at)
            if start["key"] != "extFields" or fields is not None or head.get("code") not in _SPELLING:
                raise NotPlain
            fields, at = _read_fields(text, start.end(), _SPELLING[head["code"]])
            member = expect(AFTER_FIELDS, text, at)
        elif member["key"] in ("code", "flag", "opaque"):
            if member["key"] in head or member["number"] is None:
                raise NotPlain
            head[member["key"]] = member["number"]
        elif member["key"] == "extFields":
            raise NotPlain
        at, mark = member.end(), member["mark"]
    expect_end(text, at)
    if fields is None:
        raise NotPlain
    return head, fields


def _read_fields(text: str, at: int, spelling: dict[str, str]) -> tuple[dict[str, str], int]:
    """The fields that storing needs, and where the object ends; the last of equal names counts."""
    fields: dict[str, str] = {}
    mark, count = ",", 0
    while mark == ",":
        count += 1
        if count > HEADER_FIELDS_MAX:
            raise NotPlain
        field = expect(FIELD, text, at)
        name = spelling.get(field["key"])
        if name is not None:
            fields.pop(name, None)
            if field["text"] is not None:
                fields[name] = field["text"]
            elif field["literal"] != "null":
                raise NotPlain
        at, mark = field.end(), field["mark"]
    return fields, at


def expect_start(text: str) -> int:
    """Where the members of an object begin."""
    return expect(_START, text, 0).end()


def expect_end(text: str, at: int) -> None:
    """Nothing may follow the object."""
    expect(_END, text, at)


def expect(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str]:
    match = pattern.match(text, at)
    if match is None:
        raise NotPlain
    return match


def _number(texts: dict[str, str], name: str, default: int | None = None, allowed: range = _INT32) -> int:
    text = texts.get(name)
    if text is None and default is not None:
        return default
    if text is None or not _DIGITS.fullmatch(text) or int(text) not in allowed:
        raise NotPlain
    return int(text)


def _topic_number(run: SendRun, topic: bytes) -> int:
    if topic not in run.topics:
        if len(run.topics) == RUN_TOPICS_MAX:
            raise NotPlain
        run.topics.append(topic)
    return run.topics.index(topic)


def blank(size: int) -> bytearray:
    """Memory that will be written to before it is read: compiled code leaves it untouched, which costs nothing."""
    return bytearray(size)


_TEXT = re.compile(rb'"(?:[^"\\]|\\.?)*+"?', re.DOTALL)
_MARK = re.compile(rb"[,:\[{]")


def count_marks(header: bytes | memoryview) -> int:
    """How many colons, commas and opening brackets of JSON stand outside of its texts."""
    return len(_MARK.findall(_TEXT.sub(b"", bytes(header))))


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
        handle_at, handle_length = run.column(row, RECALL_HANDLE_AT), run.column(row, RECALL_HANDLE_LENGTH)
        handle = bytes(run.properties[handle_at : handle_at + handle_length])
        header = b'{"code":0,"extFields":{"msgId":"%s","queueId":"%d","queueOffset":"%d"%s%s%s%d}' % (
            ids,
            run.column(row, QUEUE_ID),
            run.column(row, QUEUE_OFFSET),
            b',"transactionId":"%s"' % key if key else b"",
            b',"recallHandle":"%s"' % handle if handle else b"",
            tail,
            run.column(row, OPAQUE),
        )
        frames.append(_PREFIX.pack(4 + len(header), len(header)) + header)
    return b"".join(frames)
