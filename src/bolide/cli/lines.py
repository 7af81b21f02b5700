"""What `bolide send` sends: lines of text, JSON objects or rows, one message each.

A JSON line is what `bolide tail --json` writes; only `body` (or `body_base64`) is needed:

    {"body": "paid", "tag": "eu", "keys": ["42"], "properties": {"source": "web"}}

Other people's objects and rows have no body: then the whole of it is the body.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from bolide.cli import members as told
from bolide.cli.later import AT_ONCE, When
from bolide.cli.outcome import NO_TEXT
from bolide.model.errors import ConfigError, MessageIllegal
from bolide.model.message import Message
from bolide.model.printable import is_text


class Columns(NamedTuple):
    """Which columns or fields are meant, where other people have named them."""

    body: str | None = None
    key: str | None = None
    tag: str | None = None

    def check(self, names: Sequence[str]) -> None:
        """`ConfigError` when the columns of a file are not those that are meant."""
        for wanted in filter(None, self):
            if wanted not in names:
                raise ConfigError(f"there is no column {wanted!r}; there are {', '.join(names)[:1000]}")
        if len(names) == 1 and not any(self):
            _check_separated(names[0])
        if self.body is None and told.has_body(names):
            other = told.stranger([name for name in names if name not in self])
            if other is not None:
                raise ConfigError(
                    f"a message has no place for the column {other!r}: --body-column body leaves it out"
                )


def _check_separated(name: str) -> None:
    """A file that is separated by something else looks as if it had one column, and its rows would be sent whole."""
    for mark, told_as, remedy in (
        (";", ";", "save it with commas or tabs"),
        ("\t", "a tab", "read it with -f tsv"),
    ):
        if mark in name:
            raise ConfigError(
                f"the file has one column, {name[:64]!r}, with {told_as} in it: if that separates several, {remedy}; "
                f"if it is one, give it with --body-column"
            )


AS_NAMED = Columns()


@dataclass(frozen=True, slots=True)
class Envelope:
    """What every message of one command shares: its topic, and tag, keys and properties unless a line has its own."""

    topic: str
    tag: str | None = None
    keys: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    when: When = AT_ONCE
    sharding_key: str | None = None
    columns: Columns = AS_NAMED

    def __post_init__(self) -> None:
        """A word of a command line that is no UTF-8 arrives with lone surrogates."""
        words = (self.topic, self.tag or "", self.sharding_key or "", *self.keys)
        for word in (*words, *self.properties, *self.properties.values()):
            if not is_text(word):
                raise ConfigError(NO_TEXT)

    def text(self, line: bytes) -> Message:
        """A message whose body is the line."""
        if not line:
            raise MessageIllegal("a message cannot have an empty body")
        return Message(
            self.topic,
            line,
            self.tag,
            self.keys,
            self.properties,
            0,
            self.when.delay_level,
            self.when.deliver_at,
            self.when.delay,
            self.sharding_key,
        )

    def json(self, line: bytes) -> Message:
        """A message from a JSON line that has a body; `MessageIllegal` says what is wrong with it."""
        return self._told(_members(line))

    def object(self, line: bytes) -> Message:
        """The same from anybody's JSON object: one without a body is the body."""
        members = _members(line)
        if self.columns.body is None and not told.has_body(members):
            return self._whole(members, line)
        return self._told(self._checked(members))

    def row(self, members: Mapping[str, Any] | MessageIllegal) -> Message:
        """A message from a row of a table."""
        if isinstance(members, MessageIllegal):
            raise members
        if self.columns.body is None and not told.has_body(members):
            return self._whole(members, told.as_json(members))
        return self._told(members)

    def _checked(self, members: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a message has no place for would be lost."""
        if self.columns.body is None:
            other = told.stranger([name for name in members if name not in self.columns])
            if other is not None:
                raise MessageIllegal(
                    f"a message has no place for {other!r}: --body-column body leaves it out"
                )
        return members

    def _whole(self, members: Mapping[str, Any], body: bytes) -> Message:
        message = self.text(body)
        self._name(message, members)
        return message

    def _told(self, members: Mapping[str, Any]) -> Message:
        column = self.columns.body
        if column is None:
            body = told.body_of(members)
        elif column in members:
            body = told.as_body(members[column])
        else:
            raise MessageIllegal(f"no {column!r} in this JSON object")
        level, moment = told.delay_level_of(members), told.deliver_at_of(members)
        own = bool(level) or moment is not None
        message = Message(
            self.topic,
            body,
            tags=told.text_of(members, "tag") or told.text_of(members, "tags") or self.tag,
            keys=told.keys_of(members) or self.keys,
            properties={**self.properties, **told.properties_of(members)},
            delay_level=level if own else self.when.delay_level,
            deliver_at=moment if own else self.when.deliver_at,
            delay=None if own else self.when.delay,
            sharding_key=told.text_of(members, "sharding_key") or self.sharding_key,
        )
        self._name(message, members)
        return message

    def _name(self, message: Message, members: Mapping[str, Any]) -> None:
        """Key and tag from the columns that the command line names."""
        if self.columns.key is not None and (key := told.as_word(members.get(self.columns.key))):
            message.keys = [key]
        if self.columns.tag is not None and (tag := told.as_word(members.get(self.columns.tag))):
            message.tags = tag


def _members(line: bytes) -> dict[str, Any]:
    try:
        members = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise MessageIllegal(f"not JSON: {error}") from error
    if not isinstance(members, dict):
        raise MessageIllegal("not a JSON object; with --json every line is one, with the body in 'body'")
    return members
