"""A large JSON object, written piece by piece, so that nobody else waits until all of it is.

The text is the one that `java_json` writes in one go.  A member whose value is `Entries` is itself a large object, and
its entries are asked for one by one, while the pieces are made.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from bolide.model import java_json

PIECE_ENTRIES = 128
"""Entries of a large object that are written in one piece."""

PIECE_BYTES = 32 * 1024
"""A piece is over when it is as long as this, too: one entry may hold thousands of numbers."""


class Entries:
    """The value of a member that is written entry by entry."""

    def __init__(self, entries: Iterable[tuple[str, Any]]) -> None:
        self.entries = entries


def compact(members: dict[str, Any]) -> Iterator[bytes]:
    """As `java_json.dumps` writes it."""
    return _object(members, "")


def pretty(members: dict[str, Any]) -> Iterator[bytes]:
    """The same, one item per line, as the original writes its `config/*.json`."""
    return _object(members, "\n")


def _object(members: dict[str, Any], newline: str) -> Iterator[bytes]:
    inner = newline + "\t" if newline else ""
    opening = "{" + inner
    for name, value in members.items():
        yield f"{opening}{java_json.key_text(name)}".encode()
        opening = "," + inner
        if isinstance(value, Entries):
            yield from _entries(value.entries, inner)
        else:
            yield java_json.text_of(value, inner).encode()
    yield f"{newline}}}".encode() if members else b"{}"


def _entries(entries: Iterable[tuple[str, Any]], newline: str) -> Iterator[bytes]:
    inner = newline + "\t" if newline else ""
    opening = "{" + inner
    texts: list[str] = []
    size = 0
    some = False
    for key, value in entries:
        some = True
        text = f"{opening}{java_json.key_text(key)}{java_json.text_of(value, inner)}"
        opening = "," + inner
        texts.append(text)
        size += len(text)
        if len(texts) >= PIECE_ENTRIES or size >= PIECE_BYTES:
            yield "".join(texts).encode()
            texts.clear()
            size = 0
    texts.append(f"{newline}}}" if some else "{}")
    yield "".join(texts).encode()
