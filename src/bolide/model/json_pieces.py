"""A large JSON object, written piece by piece, so that nobody else waits until all of it is.

The text is the one that `java_json` writes in one go.  A member whose value is `Entries` or `Items` is itself large:
what is in it is asked for one by one, while the pieces are made.  So may be a member of a member.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from bolide.model import java_json

PIECE_ENTRIES = 128
"""Entries of a large object that are written in one piece."""

PIECE_BYTES = 32 * 1024
"""A piece is over when it is as long as this, too: one entry may hold thousands of numbers."""


class Entries:
    """The value of a member that is written entry by entry: an object."""

    def __init__(self, entries: Iterable[tuple[str, Any]]) -> None:
        self.entries = entries


class Items:
    """The value of a member that is written item by item: an array."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = items


def compact(members: dict[str, Any]) -> Iterator[bytes]:
    """As `java_json.dumps` writes it."""
    return _object(members, "")


def pretty(members: dict[str, Any]) -> Iterator[bytes]:
    """As `java_json.dumps_pretty` writes it."""
    return _object(members, "\n")


def _object(members: dict[str, Any], newline: str) -> Iterator[bytes]:
    inner = newline + "\t" if newline else ""
    opening = "{" + inner
    for name, value in members.items():
        yield f"{opening}{java_json.key_text(name)}".encode()
        opening = "," + inner
        yield from _value(value, inner)
    yield f"{newline}}}".encode() if members else b"{}"


def _value(value: Any, newline: str) -> Iterator[bytes]:
    inner = newline + "\t" if newline else ""
    if isinstance(value, Entries):
        texts = (java_json.key_text(key) + java_json.text_of(item, inner) for key, item in value.entries)
        yield from _listed(texts, "{}", newline)
    elif isinstance(value, Items):
        yield from _listed((java_json.text_of(item, inner) for item in value.items), "[]", newline)
    elif isinstance(value, dict) and any(isinstance(item, Entries | Items) for item in value.values()):
        yield from _object(value, newline)
    else:
        yield java_json.text_of(value, newline).encode()


def _listed(texts: Iterable[str], ends: str, newline: str) -> Iterator[bytes]:
    """The texts between brackets, in pieces."""
    inner = newline + "\t" if newline else ""
    opening = ends[0] + inner
    piece: list[str] = []
    size = 0
    some = False
    for text in texts:
        some = True
        piece += (opening, text)
        opening = "," + inner
        size += len(text)
        if len(piece) >= 2 * PIECE_ENTRIES or size >= PIECE_BYTES:
            yield "".join(piece).encode()
            piece.clear()
            size = 0
    piece.append(newline + ends[1] if some else ends)
    yield "".join(piece).encode()
