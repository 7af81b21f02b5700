"""How `bolide tail` writes a message: the format language of `-f`, and JSON lines.

A format is compiled once into pieces, so that a typing error is found before the first message.  Bodies are bytes and
stay bytes; JSON falls back to base64 where a body is no text, and `bolide send --json` reads both.  A body that does
not unpack is not what was sent: it is marked as such.
"""

import base64
import re
from collections.abc import Callable
from typing import Any

import orjson

from bolide.cli.since import format_moment
from bolide.model.errors import ConfigError
from bolide.model.printable import printable_json
from bolide.record.stored import StoredMessage

Piece = Callable[[StoredMessage], bytes]


def shown_body(message: StoredMessage) -> bytes:
    """The body for people to read; of one that does not unpack, why."""
    if message.body_error is None:
        return message.body
    return f"[bad body of {len(message.body)} bytes: {message.body_error}]".encode()


DIRECTIVES: dict[str, tuple[str, Piece]] = {
    "t": ("topic", lambda message: message.topic.encode()),
    "b": ("broker name", lambda message: message.broker_name.encode()),
    "q": ("queue", lambda message: b"%d" % message.queue_id),
    "o": ("offset in the queue", lambda message: b"%d" % message.queue_offset),
    "k": ("keys, separated by blanks", lambda message: " ".join(message.keys).encode()),
    "T": ("tag", lambda message: (message.tags or "").encode()),
    "v": ("body; %v{hex} and %v{base64} too", shown_body),
    "l": ("length of the body in bytes", lambda message: b"%d" % len(message.body)),
    "i": ("message id", lambda message: message.message_id.encode()),
    "s": ("store time, ISO in UTC", lambda message: format_moment(message.store_timestamp_ms).encode()),
    "S": ("store time in ms", lambda message: b"%d" % message.store_timestamp_ms),
    "B": ("time of sending in ms", lambda message: b"%d" % message.born_timestamp_ms),
    "h": ("host that sent it", lambda message: message.born_host.encode()),
    "r": ("how often it was retried", lambda message: b"%d" % message.reconsume_times),
    "p": ("properties as JSON; %p{NAME} one", lambda message: orjson.dumps(dict(message.properties))),
}

ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\", "e": b"\x1b"}
_TOKEN = re.compile(r"%(?P<mark>.)(?:\{(?P<argument>[^{}]*)\})?|\\(?P<escape>.)|(?P<text>[^%\\]+)", re.DOTALL)


def compile_format(text: str, body: Piece = shown_body) -> Callable[[StoredMessage], bytes]:
    """A function that writes one message, its body as told; `ConfigError` for a format that cannot be meant."""
    pieces: list[Piece] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ConfigError(f"the format ends in a lone {text[at]!r}; write it twice to mean itself")
        piece = _piece(token)
        pieces.append(body if piece is shown_body else piece)
        at = token.end()
    return lambda message: b"".join([piece(message) for piece in pieces])


def json_line(message: StoredMessage) -> bytes:
    """One JSON object and a line feed; `bolide send --json` reads it."""
    members: dict[str, Any] = {
        "topic": message.topic,
        "broker": message.broker_name,
        "queue": message.queue_id,
        "offset": message.queue_offset,
        "id": message.message_id,
        "offset_id": message.offset_message_id,
        "tag": message.tags,
        "keys": list(message.keys),
        "stored": format_moment(message.store_timestamp_ms),
        "stored_ms": message.store_timestamp_ms,
        "born_ms": message.born_timestamp_ms,
        "retries": message.reconsume_times,
        "properties": dict(message.properties),
    }
    members |= body_members(message, "body_error")
    return printable_json(orjson.dumps(members, option=orjson.OPT_APPEND_NEWLINE).decode()).encode()


def body_members(message: StoredMessage, reason: str) -> dict[str, str]:
    """The body in a JSON object: as text, or in base64.  One that does not unpack comes as stored, with the reason."""
    packed = {"body_base64": base64.b64encode(message.body).decode()}
    if message.body_error is not None:
        return {**packed, reason: message.body_error}
    try:
        return {"body": message.body.decode()}
    except UnicodeDecodeError:
        return packed


def _piece(token: "re.Match[str]") -> Piece:
    mark, argument, escape = token["mark"], token["argument"], token["escape"]
    if token["text"] is not None:
        return _constant(token["text"].encode())
    if escape is not None:
        if escape not in ESCAPES:
            known = ", ".join("\\" + letter for letter in ESCAPES)
            raise ConfigError(f"the format has \\{escape}; known are {known}")
        return _constant(ESCAPES[escape])
    if mark == "%" and argument is None:
        return _constant(b"%")
    if argument is not None:
        return _with_argument(mark, argument)
    if mark not in DIRECTIVES:
        raise ConfigError(f"the format has %{mark}; known are %{', %'.join(DIRECTIVES)} and %%")
    return DIRECTIVES[mark][1]


def _with_argument(mark: str, argument: str) -> Piece:
    if mark == "p":
        return lambda message: message.properties.get(argument, "").encode()
    if mark == "v" and argument == "hex":
        return lambda message: message.body.hex().encode()
    if mark == "v" and argument == "base64":
        return lambda message: base64.b64encode(message.body)
    raise ConfigError(
        f"the format has %{mark}{{{argument}}}; %v{{hex}}, %v{{base64}} and %p{{NAME}} are known"
    )


def _constant(text: bytes) -> Piece:
    return lambda message: text
