"""JSON as Java's fastjson writes it: integer and object map keys without quotes.

Standard text goes through orjson.  Only what orjson refuses reaches the tolerant reader below, which accepts
`{0:"a"}` and `{{"queueId":0}:5}`; object keys come back as their compact JSON text.  Bounded in depth and never
evaluates anything.  Numbers are those of Java: whole ones of 64 bits, others finite.
"""

import re
from collections.abc import Collection, Mapping
from itertools import accumulate
from math import isfinite
from typing import Any

import orjson

from bolide.model.errors import InvalidRequest
from bolide.model.limits import DIALECT_BYTES_MAX, JSON_DEPTH_MAX
from bolide.model.numbers import is_int64

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_STRING = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"'
)  # in runs: a choice per character takes a hundred bytes for each
_BLANK = re.compile(r"[ \t\r\n]*")
_LITERALS = {"true": True, "false": False, "null": None}

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

    The dialect is read a hundred times more slowly, so its length is bounded, unless it comes from a file of ours.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if dialect_length_max is not None and len(text) > dialect_length_max:
            raise InvalidRequest(f"{len(text)} bytes that are not standard JSON: {error}") from error
        try:
            words = text if isinstance(text, str) else bytes(text).decode()
        except UnicodeDecodeError as error:
            raise InvalidRequest(f"the text is not UTF-8: {error}") from error
        return _Reader(words).document()
    if (depth := _depth_of(text)) > JSON_DEPTH_MAX:
        raise InvalidRequest(f"JSON nested {depth} deep; {JSON_DEPTH_MAX} levels are allowed")
    return value


def _depth_of(text: bytes | bytearray | memoryview | str) -> int:
    """How deep sound JSON is nested.  What was read is written again some day, by functions that call themselves."""
    raw = text.encode() if isinstance(text, str) else bytes(text)
    brackets = raw.count(b"[") + raw.count(b"{")
    if brackets <= JSON_DEPTH_MAX:
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
    return f"{key}:" if isinstance(key, int | Bare) else f"{orjson.dumps(key).decode()}:"


def _is_standard(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(type(key) is str and _is_standard(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_standard(item) for item in value)
    return True


def _write(value: Any, parts: list[str], newline: str = "") -> None:
    if isinstance(value, Mapping):
        if value and all(type(key) is int and type(item) is int for key, item in value.items()):
            _write_numbers(value, parts, newline)
        else:
            _write_items(value.items(), "{}", parts, newline)
    elif isinstance(value, list | tuple):
        _write_items([(None, item) for item in value], "[]", parts, newline)
    elif type(value) is int:
        parts.append(str(value))
    else:
        parts.append(orjson.dumps(value).decode())


def _write_items(items: Collection[tuple[Any, Any]], ends: str, parts: list[str], newline: str) -> None:
    if not items:
        parts.append(ends)
        return
    inner = newline + "\t" if newline else ""
    parts.append(ends[0] + inner)
    for number, (key, item) in enumerate(items):
        if number:
            parts.append("," + inner)
        if key is not None:
            parts.append(key_text(key if isinstance(key, int | str) else str(key)))
        _write(item, parts, inner)
    parts.append(newline + ends[1])


def _write_numbers(numbers: Mapping[int, int], parts: list[str], newline: str) -> None:
    """Numbers by number: a group's offsets by queue, of which there are more than of everything else."""
    inner = newline + "\t" if newline else ""
    lines = ("," + inner).join(f"{key}:{item}" for key, item in numbers.items())
    parts.append(f"{{{inner}{lines}{newline}}}")


class _Reader:
    """Recursive descent over one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def document(self) -> Any:
        value = self._value()
        self._blank()
        if self._at != len(self._text):
            raise self._bad("something follows the value")
        return value

    def _value(self) -> Any:
        self._blank()
        head = self._text[self._at : self._at + 1]
        if head in ("{", "["):
            self._depth += 1
            if self._depth > JSON_DEPTH_MAX:
                raise self._bad("too deeply nested")
            value = self._object() if head == "{" else self._array()
            self._depth -= 1
            return value
        if head == '"':
            return self._string()
        if match := _NUMBER.match(self._text, self._at):
            self._at = match.end()
            try:
                number = float(match[0]) if match[1] or match[2] else int(match[0])
            except ValueError as error:  # thousands of digits
                raise self._bad(f"an impossible number ({error})") from error
            if not (is_int64(number) or (isinstance(number, float) and isfinite(number))):
                raise self._bad(f"an impossible number ({match[0][:32]})")
            return number
        for word, literal in _LITERALS.items():
            if self._text.startswith(word, self._at):
                self._at += len(word)
                return literal
        raise self._bad("a value is missing")

    def _object(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self._at += 1
        while not self._ends("}", first=not members):
            start = self._at
            key = self._value()
            if isinstance(key, dict):
                key = orjson.dumps(key).decode()
            elif not isinstance(key, str):
                key = self._text[start : self._at].strip()
            self._expect(":")
            members[key] = self._value()
        return members

    def _array(self) -> list[Any]:
        items: list[Any] = []
        self._at += 1
        while not self._ends("]", first=not items):
            items.append(self._value())
        return items

    def _ends(self, close: str, *, first: bool) -> bool:
        self._blank()
        head = self._text[self._at : self._at + 1]
        if head == close:
            self._at += 1
            return True
        if not first:
            self._expect(",")
            self._blank()
        return False

    def _string(self) -> Any:
        match = _STRING.match(self._text, self._at)
        if match is None:
            raise self._bad("a string does not end")
        self._at = match.end()
        try:
            return orjson.loads(match[0])
        except orjson.JSONDecodeError as error:
            raise self._bad(f"a malformed string ({error})") from error

    def _expect(self, mark: str) -> None:
        self._blank()
        if not self._text.startswith(mark, self._at):
            raise self._bad(f"{mark!r} is missing")
        self._at += 1

    def _blank(self) -> None:
        match = _BLANK.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def _bad(self, why: str) -> InvalidRequest:
        return InvalidRequest(f"malformed JSON at character {self._at}: {why}")
