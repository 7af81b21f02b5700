"""Header classes and the fields they become: the only place that knows wire spelling.

A header is a dataclass.  `consumer_group` is spelled `consumerGroup` on the wire unless the field names
its spelling itself with `wire("clientID")`.  Types are `str`, `Int`, `Long` and `bool`, each also as optional; a field
without a default is required, and so is one that says so: its default is for whoever makes a header here.  What the
original's readers demand is required, because a client that leaves it out means something else than we would guess.
An empty text where a number belongs counts as missing.  A number is one of 32 or 64 bits, as in the original, or it is
refused here.
"""

import dataclasses
import types
from collections.abc import Callable, Mapping
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from bolide.model.errors import InvalidRequest
from bolide.model.numbers import INT32_MAX, INT32_MIN, parse_whole

Int = Annotated[int, 32]
Long = Annotated[int, 64]
"""Numbers by their size on the wire.  A plain `int` in a header is an error of its author."""

_MISSING = dataclasses.MISSING


def wire(spelling: str = "", *, required: bool = False, **options: Any) -> Any:
    """A dataclass field with its own spelling on the wire, or one that must come in spite of its default."""
    return dataclasses.field(metadata={"wire": spelling, "required": required}, **options)


class _Field(NamedTuple):
    name: str
    spelling: str
    read: Callable[[str, str], Any]
    default: Any


Layout = tuple[_Field, ...]


class Header:
    """Base of all headers, each of which is a dataclass."""

    _layout: "ClassVar[Layout]"

    @classmethod
    def decode(cls, fields: Mapping[str, str]) -> Self:
        """The header from a command's fields; unknown fields are ignored."""
        return cls.decode_by(cls.__dict__.get("_layout") or layout_of(cls), fields)

    @classmethod
    def decode_by(cls, layout: "Layout", fields: Mapping[str, str]) -> Self:
        """The same with other spellings."""
        header = object.__new__(cls)
        values = (
            header.__dict__
        )  # filled directly: the constructor of a frozen class costs more than all the rest
        for name, spelling, read, default in layout:
            text = fields.get(spelling)
            if text is not None and (text or read is _read_text):
                values[name] = read(spelling, text)
            elif default is _MISSING:
                raise InvalidRequest(f"the required field {spelling} is missing")
            else:
                values[name] = default
        return header

    def encode(self) -> dict[str, str]:
        """Fields for a command; what is None is left out."""
        fields: dict[str, str] = {}
        values = self.__dict__
        for name, spelling, _, _ in layout_of(type(self)):
            value = values[name]
            if value is not None:
                fields[spelling] = value if type(value) is str else _write(value)
        return fields


def layout_of(header: type[Header]) -> Layout:
    """The header's fields with their wire spelling, worked out once per class."""
    layout = header.__dict__.get("_layout")
    if layout is None:
        hints = get_type_hints(header, include_extras=True)
        layout = tuple(
            _Field(
                item.name,
                item.metadata.get("wire") or _camel(item.name),
                _READERS[_plain(hints[item.name])],
                _MISSING if item.metadata.get("required") else item.default,
            )
            for item in dataclasses.fields(cast(Any, header))
        )
        header._layout = layout
    return cast(Layout, layout)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _plain(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (one for one in get_args(hint) if one is not type(None))
    return hint


def _read_text(spelling: str, text: str) -> str:
    return text


def _read_long(spelling: str, text: str) -> int:
    value = parse_whole(text)
    if value is None:
        raise InvalidRequest(f"the field {spelling} is not a 64-bit number: {text[:32]!r}")
    return value


def _read_int(spelling: str, text: str) -> int:
    value = parse_whole(text)
    if value is None or not INT32_MIN <= value <= INT32_MAX:
        raise InvalidRequest(f"the field {spelling} is not a 32-bit number: {text[:32]!r}")
    return value


def _read_bool(spelling: str, text: str) -> bool:
    return text.lower() == "true"


_READERS: dict[Any, Callable[[str, str], Any]] = {
    str: _read_text,
    Int: _read_int,
    Long: _read_long,
    bool: _read_bool,
}


def _write(value: str | int | bool) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    return str(value)
