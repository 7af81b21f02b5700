"""Formats with names for `bolide tail`: `{store_time} {tags} {body}`.

A format without a % mark is one of these; it ends with a line feed of its own.  `{{` and `}}` are braces.
"""

import base64
import difflib
import re
from collections.abc import Callable

import orjson

from bolide.cli.layout import ESCAPES, Piece, shown_body
from bolide.cli.since import format_moment
from bolide.model.errors import ConfigError
from bolide.model.message import Property
from bolide.record.stored import StoredMessage

FIELDS: dict[str, Piece] = {
    "topic": lambda message: message.topic.encode(),
    "broker": lambda message: message.broker_name.encode(),
    "queue": lambda message: b"%d" % message.queue_id,
    "offset": lambda message: b"%d" % message.queue_offset,
    "id": lambda message: message.message_id.encode(),
    "offset_id": lambda message: message.offset_message_id.encode(),
    "keys": lambda message: " ".join(message.keys).encode(),
    "tags": lambda message: (message.tags or "").encode(),
    "body": shown_body,
    "size": lambda message: b"%d" % len(message.body),
    "store_time": lambda message: format_moment(message.store_timestamp_ms).encode(),
    "store_ms": lambda message: b"%d" % message.store_timestamp_ms,
    "born_time": lambda message: format_moment(message.born_timestamp_ms).encode(),
    "born_ms": lambda message: b"%d" % message.born_timestamp_ms,
    "born_host": lambda message: message.born_host.encode(),
    "retries": lambda message: b"%d" % message.reconsume_times,
    "sharding_key": lambda message: message.properties.get(Property.SHARDING_KEY, "").encode(),
    "properties": lambda message: orjson.dumps(dict(message.properties)),
}
ONE_PROPERTY = "properties."
WIDTH_MAX = 1000

_TOKEN = re.compile(
    r"(?P<brace>\{\{|\}\})|\{(?P<field>[^{}:]*)(?::(?P<how>[^{}]*))?\}|\\(?P<escape>.)|(?P<text>[^{}\\]+)",
    re.DOTALL,
)
_WIDTH = re.compile(r"([<>^]?)([0-9]{1,4})")


def is_template(text: str) -> bool:
    """Whether a format is one with names: no % mark, and a brace."""
    return "%" not in text and "{" in text


def compile_template(text: str, body: Piece = shown_body) -> Callable[[StoredMessage], bytes]:
    """A function that writes one message; `ConfigError` for a format that cannot be meant."""
    pieces: list[Piece] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ConfigError(f"the format has a lone {text[at]!r}; write it twice to mean itself")
        pieces.append(_piece(token, body))
        at = token.end()
    return lambda message: b"".join([piece(message) for piece in pieces]) + b"\n"


def _piece(token: "re.Match[str]", body: Piece) -> Piece:
    if token["text"] is not None:
        return _constant(token["text"].encode())
    if token["brace"] is not None:
        return _constant(token["brace"][:1].encode())
    if token["escape"] is not None:
        if token["escape"] not in ESCAPES:
            known = ", ".join("\\" + letter for letter in ESCAPES)
            raise ConfigError(f"the format has \\{token['escape']}; known are {known}")
        return _constant(ESCAPES[token["escape"]])
    piece = body if token["field"] == "body" else _field(token["field"])
    return piece if token["how"] is None else _written(token["field"], piece, token["how"])


def _field(name: str) -> Piece:
    if name.startswith(ONE_PROPERTY):
        wanted = name.removeprefix(ONE_PROPERTY)
        return lambda message: message.properties.get(wanted, "").encode()
    if name not in FIELDS:
        close = difflib.get_close_matches(name, FIELDS, n=1)
        hint = f"did you mean {{{close[0]}}}?" if close else f"known are {', '.join(FIELDS)}, properties.NAME"
        raise ConfigError(f"the format has {{{name[:64]}}}; {hint}")
    return FIELDS[name]


def _written(name: str, piece: Piece, how: str) -> Piece:
    if name == "body" and how == "hex":
        return lambda message: message.body.hex().encode()
    if name == "body" and how == "base64":
        return lambda message: base64.b64encode(message.body)
    width = _WIDTH.fullmatch(how)
    if width is None or int(width[2]) > WIDTH_MAX:
        raise ConfigError(
            f"the format has {{{name}:{how[:64]}}}; known are :hex and :base64 of the body, and a width as in"
            f" {{queue:>3}}, up to {WIDTH_MAX}"
        )
    columns = int(width[2])
    place = {">": bytes.rjust, "^": bytes.center}.get(width[1], bytes.ljust)
    return lambda message: place(piece(message), columns)


def _constant(text: bytes) -> Piece:
    return lambda message: text
