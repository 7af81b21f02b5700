"""JSON as Java's fastjson writes it: integer and object map keys without quotes.

Standard text goes through orjson.  Only what orjson refuses is looked over for such keys, `{0:"a"}` and
`{{"queueId":0}:5}`, which get their quotes; object keys come back as their compact JSON text.  Bounded in depth.
"""

import re
from collections.abc import Callable, Collection, Mapping
from itertools import accumulate
from typing import Any

import orjson

from bolide.model.errors import InvalidRequest
from bolide.model.limits import DIALECT_BYTES_MAX, JSON_DEPTH_MAX

_MARKS = b'[]{}"'
_NO_MARKS = bytes(set(range(256)) - set(_MARKS))
_STEPS = bytes({0x5B: 1, 0x7B: 1, 0x5D: 0xFF, 0x7D: 0xFF}.get(mark, 0) for mark in range(256))
"""A bracket that opens is a step down, one that closes a step up: 1 and -1 as bytes with a sign."""


class Bare(str):
    """A map key that is written without quotes: an integer or the JSON text of an object."""

    __slots__ = ()


def loads(
    text: bytes | bytearray | memoryview | str, *, dialect_length_max: int | None = DIALECT_BYTES_MAX
) -> Any:
    """Any JSON value, standard or in Java's dialect.

    The dialect is read many times more slowly, so its length is bounded, unless it comes from a file of ours.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if dialect_length_max is not None and len(text) > dialect_length_max:
            raise InvalidRequest(f"{len(text)} bytes that are not standard JSON: {error}") from error
        text = _standard(text)
        value = _read(text)
    if (depth := depth_of(text, JSON_DEPTH_MAX)) > JSON_DEPTH_MAX:
        raise InvalidRequest(f"JSON nested {depth} deep; {JSON_DEPTH_MAX} levels are allowed")
    return value


def depth_of(text: bytes | bytearray | memoryview | str, allowed: int) -> int:
    """How deep sound JSON is nested, or any number up to what is allowed when it is not deeper.

    What was read is written again some day, by functions that call themselves.
    """
    raw = text.encode() if isinstance(text, str) else bytes(text)
    brackets = raw.count(b"[") + raw.count(b"{")
    if brackets <= allowed:
        return brackets  # at most
    if b"\\" in raw:  # only in strings, and of interest only before a quote
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(raw.translate(None, _NO_MARKS).split(b'"')[::2])
    steps = memoryview(outside.translate(_STEPS)).cast("b")
    return max(accumulate(steps), default=0)


def dumps(value: Any) -> bytes:
    """Compact JSON; keys that are `int` or `Bare` are written without quotes, as fastjson writes them."""
    if _is_standard(value):
        return orjson.dumps(value)
    return text_of(value).encode()


def text_of(value: Any, newline: str = "") -> str:
    """A part of a larger text.  `newline` is what begins a line there: nothing in compact text, else a line break and
    tabs, as the original writes its `config/*.json`."""
    parts: list[str] = []
    _write(value, parts, newline)
    return "".join(parts)


def key_text(key: int | str) -> str:
    """A member's name with its colon."""
    if type(key) is not str and isinstance(key, int | Bare):
        return f"{key}:"
    return f"{orjson.dumps(key).decode()}:"


def _is_standard(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(type(key) is str and _is_standard(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_standard(item) for item in value)
    return True


def _plain(value: Any) -> str:
    return orjson.dumps(value).decode()


# Tables of a hundred thousand entries are written with these: a look at a type, and no chain of questions.
_PLAIN: dict[type, Callable[[Any], str]] = {
    int: str,
    str: _plain,
    bool: {False: "false", True: "true"}.__getitem__,
}


def _write(value: Any, parts: list[str], newline: str = "") -> None:
    if (plain := _PLAIN.get(type(value))) is not None:
        parts.append(plain(value))
    elif type(value) is dict or isinstance(value, Mapping):
        if value and all(type(key) is int and type(item) is int for key, item in value.items()):
            _write_numbers(value, parts, newline)
        else:
            _write_items(value.items(), "{}", parts, newline)
    elif isinstance(value, list | tuple):
        _write_items([(None, item) for item in value], "[]", parts, newline)
    else:
        parts.append(_plain(value))


def _write_items(items: Collection[tuple[Any, Any]], ends: str, parts: list[str], newline: str) -> None:
    if not items:
        parts.append(ends)
        return
    inner = newline + "\t" if newline else ""
    before, following = ends[0] + inner, "," + inner
    for key, item in items:
        if key is not None:
            before += key_text(key if isinstance(key, int | str) else str(key))
        if (plain := _PLAIN.get(type(item))) is not None:
            parts.append(before + plain(item))
        else:
            parts.append(before)
            _write(item, parts, inner)
        before = following
    parts.append(newline + ends[1])


def _write_numbers(numbers: Mapping[int, int], parts: list[str], newline: str) -> None:
    """Numbers by number: a group's offsets by queue, of which there are more than of everything else."""
    inner = newline + "\t" if newline else ""
    lines = ("," + inner).join(f"{key}:{item}" for key, item in numbers.items())
    parts.append(f"{{{inner}{lines}{newline}}}")


# ---- from the dialect to the standard ---------------------------------------------------------------------------

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'  # one without an end goes to the end
_FLAT = rf'\{{[^{{}}"]*+(?:{_STRING}[^{{}}"]*+)*+\}}'
_KEY = rf"\s*(?:(-?\d+)|({_FLAT}))\s*:"
_BARE_KEY = re.compile(
    rf'((?:[^"{{,]++|{_STRING}|[{{,](?!{_KEY}))*+)(?:([{{,]){_KEY}|\Z)',
    re.DOTALL,
)
"""Everything up to a key without quotes, and the key: in one go, so that a text of any kind is looked over once."""


def _standard(text: bytes | bytearray | memoryview | str) -> str:
    try:
        return _BARE_KEY.sub(_quoted, text if isinstance(text, str) else bytes(text).decode())
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the text is not UTF-8: {error}") from error


def _quoted(match: re.Match[str]) -> str:
    before, _, _, mark, number, members = match.groups()
    if mark is None:  # the end of the text
        return str(before)
    if number is None:
        words = orjson.dumps(_read(members)).decode()
        number = orjson.dumps(words)[1:-1].decode()
    return f'{before}{mark}"{number}":'


def _read(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidRequest(f"malformed JSON: {error}") from error
