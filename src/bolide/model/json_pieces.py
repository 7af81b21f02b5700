"""A large JSON object, written piece by piece, so that nobody else waits until all of it is.

The text is the one that `java_json` writes in one go.  A value that is `Entries` or `Items` is large: what is in it is
asked for one by one, while the pieces are made, and may be large in turn.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from bolide.model import java_json

PIECE_ENTRIES = 128
"""Entries and items that are written in one piece."""

PIECE_BYTES = 32 * 1024
"""A piece is over when it is as long as this, too: one entry may hold thousands of numbers."""


class Entries:
    """An object that is written entry by entry."""

    def __init__(self, entries: Iterable[tuple[int | str, Any]]) -> None:
        self.entries = entries


class Items:
    """An array that is written item by item."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = items


def compact(members: dict[str, Any] | Entries) -> Iterator[bytes]:
    """As `java_json.dumps` writes it."""
    entries = members if isinstance(members, Entries) else Entries(members.items())
    return _pieces(_large(entries, ""))


def pretty(members: dict[str, Any]) -> Iterator[bytes]:
    """The same, one item per line, as the original writes its `config/*.json`."""
    return _pieces(_large(Entries(members.items()), "\n"))


def _pieces(texts: Iterable[str]) -> Iterator[bytes]:
    piece: list[str] = []
    size = 0
    for text in texts:
        piece.append(text)
        size += len(text)
        if len(piece) >= PIECE_ENTRIES or size >= PIECE_BYTES:
            yield "".join(piece).encode()
            piece.clear()
            size = 0
    yield "".join(piece).encode()


def _large(value: Entries | Items, newline: str) -> Iterator[str]:
    """The text of each entry or item; `newline` is what begins a line around them."""
    if isinstance(value, Entries):
        return _listed(((java_json.key_text(key), item) for key, item in value.entries), "{}", newline)
    return _listed((("", item) for item in value.items), "[]", newline)


def _listed(items: Iterable[tuple[str, Any]], ends: str, newline: str) -> Iterator[str]:
    inner = newline + "\t" if newline else ""
    opening = first = ends[0] + inner
    following = "," + inner
    for key, item in items:
        if isinstance(item, Entries | Items):
            yield opening + key
            yield from _large(item, inner)
        else:
            yield f"{opening}{key}{java_json.text_of(item, inner)}"
        opening = following
    yield ends if opening is first else newline + ends[1]
