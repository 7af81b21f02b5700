"""What `bolide send` sends: lines of text or JSON objects, one message each.

A JSON line is what `bolide tail --json` writes; only `body` (or `body_base64`) is needed:

    {"body": "paid", "tag": "eu", "keys": ["42"], "properties": {"source": "web"}}
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from bolide.cli.later import AT_ONCE, When
from bolide.cli.outcome import NO_TEXT, is_text
from bolide.model.errors import ConfigError, MessageIllegal
from bolide.model.message import Message, Property
from bolide.model.properties import WRITTEN_BY_OTHERS


@dataclass(frozen=True, slots=True)
class Envelope:
    """What every message of one command shares: its topic, and tag, keys and properties unless a line has its own."""

    topic: str
    tag: str | None = None
    keys: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    when: When = AT_ONCE

    def __post_init__(self) -> None:
        """A word of a command line that is no UTF-8 arrives with lone surrogates."""
        for word in (self.topic, self.tag or "", *self.keys, *self.properties, *self.properties.values()):
            if not is_text(word):
                raise ConfigError(NO_TEXT)

    def text(self, line: bytes) -> Message:
        """A message whose body is the line."""
        if not line:
            raise MessageIllegal("a message cannot have an empty body")
        return Message(
            self.topic,
            line,
            tags=self.tag,
            keys=self.keys,
            properties=self.properties,
            delay_level=self.when.delay_level,
            deliver_at=self.when.deliver_at,
            delay=self.when.delay,
        )

    def json(self, line: bytes) -> Message:
        """A message from a JSON line; `MessageIllegal` says what is wrong with it."""
        try:
            members = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise MessageIllegal(f"not JSON: {error}") from error
        if not isinstance(members, dict):
            raise MessageIllegal("not a JSON object; with --json every line is one, with the body in 'body'")
        return Message(
            self.topic,
            _body(members),
            tags=_text(members, "tag") or _text(members, "tags") or self.tag,
            keys=_keys(members) or self.keys,
            properties={**self.properties, **_properties(members)},
            delay_level=self.when.delay_level,
            deliver_at=self.when.deliver_at,
            delay=self.when.delay,
        )


def _body(members: Mapping[str, Any]) -> bytes:
    error = members.get("body_error", members.get("bodyError"))
    if error is not None:  # it would be sent without the mark that says how it is packed
        raise MessageIllegal(f"the body of this message did not unpack: {str(error)[:255]}")
    packed = members.get("body_base64")
    if packed is None:
        body = members.get("body")
        if body is None:
            raise MessageIllegal("no 'body' in this JSON object")
        if body == "":
            raise MessageIllegal("a message cannot have an empty body")
        return body.encode() if isinstance(body, str) else orjson.dumps(body)
    try:
        return base64.b64decode(packed, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise MessageIllegal(f"body_base64 is not base64: {error}") from error


def _text(members: Mapping[str, Any], name: str) -> str | None:
    value = members.get(name)
    if value is not None and not isinstance(value, str):
        raise MessageIllegal(f"{name!r} is not text")
    return value


def _keys(members: Mapping[str, Any]) -> list[str]:
    value = members.get("keys", members.get("key"))
    if value is None:
        return []
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(key, str) for key in listed):
        raise MessageIllegal("'keys' is neither text nor a list of texts")
    return listed


def _properties(members: Mapping[str, Any]) -> dict[str, str]:
    value = members.get("properties") or {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise MessageIllegal("'properties' is not an object of texts")
    gone = {Property.DELAY} if Property.REAL_TOPIC in value else set()  # it has waited already
    return {name: text for name, text in value.items() if name not in WRITTEN_BY_OTHERS | gone}
