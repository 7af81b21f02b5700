"""Ways to spoil a file, drawn from a seed, so that every one can be made again.

The page is 512 bytes, the smallest piece that disks write, because the stores here are small.
"""

import random
from dataclasses import dataclass
from pathlib import Path

PAGE_BYTES = 512
RUN_BYTES_MAX = 600

KINDS = {
    "log": ("commitlog/*", 40),
    "queue": ("consumequeue/*/*/*", 20),
    "index": ("index/*", 15),
    "checkpoint": ("checkpoint", 7),
    "config": ("config/*", 12),
    "lock": ("lock", 3),
    "abort": ("abort", 3),
}


@dataclass(frozen=True, slots=True)
class Flaw:
    """What was done to a store: which bytes of which files are different now."""

    kind: str
    how: str
    changed: dict[str, tuple[bytes, bytes]]  # before and after, by path in the store

    def touches(self, path: str, start: int, end: int) -> bool:
        """Whether any byte of a part of a file is not what it was."""
        if path not in self.changed:
            return False
        before, after = (data[start:end] for data in self.changed[path])
        return before != after


def draw(seed: int, files: dict[str, bytes]) -> Flaw:
    """A flaw for a store with these files; always the same one for the same seed."""
    chance = random.Random(seed)
    present = {kind: paths for kind in KINDS if (paths := _paths(kind, files))}
    (kind,) = chance.choices(list(present), [KINDS[kind][1] for kind in present])
    path = chance.choice(present[kind])
    ways = [_flip_bit, _flip_bit, _flip_byte, _overwrite, _zero, _truncate, _swap_pages]
    while True:
        how, changed = chance.choice(ways)(chance, files, path, present[kind])
        changed = {name: data for name, data in changed.items() if data != files[name]}
        if changed:
            return Flaw(
                kind, f"{how} in {path}", {name: (files[name], data) for name, data in changed.items()}
            )


def _paths(kind: str, files: dict[str, bytes]) -> list[str]:
    pattern = KINDS[kind][0]
    return sorted(name for name, data in files.items() if data and Path(name).match(pattern))


Change = tuple[str, dict[str, bytes]]


def _flip_bit(chance: random.Random, files: dict[str, bytes], path: str, others: list[str]) -> Change:
    data = bytearray(files[path])
    at, bit = _place(chance, data), chance.randrange(8)
    data[at] ^= 1 << bit
    return f"bit {bit} of byte {at} flipped", {path: bytes(data)}


def _flip_byte(chance: random.Random, files: dict[str, bytes], path: str, others: list[str]) -> Change:
    data = bytearray(files[path])
    at = _place(chance, data)
    data[at] ^= chance.randrange(1, 256)
    return f"byte {at} changed", {path: bytes(data)}


def _overwrite(chance: random.Random, files: dict[str, bytes], path: str, others: list[str]) -> Change:
    data = bytearray(files[path])
    at = _place(chance, data)
    count = min(chance.randrange(2, RUN_BYTES_MAX), len(data) - at)
    data[at : at + count] = chance.randbytes(count)
    return f"{count} bytes from {at} on overwritten", {path: bytes(data)}


def _zero(chance: random.Random, files: dict[str, bytes], path: str, others: list[str]) -> Change:
    data = bytearray(files[path])
    at = _place(chance, data)
    at -= at % PAGE_BYTES
    count = min(PAGE_BYTES * chance.randrange(1, 4), len(data) - at)
    data[at : at + count] = bytes(count)
    return f"{count} bytes from {at} on zeroed", {path: bytes(data)}


def _truncate(chance: random.Random, files: dict[str, bytes], path: str, others: list[str]) -> Change:
    data = files[path]
    at = chance.choice((0, _place(chance, data), chance.randrange(len(data))))
    return f"truncated to {at} bytes", {path: data[:at]}


def _swap_pages(chance: random.Random, files: dict[str, bytes], path: str, others: list[str]) -> Change:
    """Two pages, in one file or in two of a kind, as a confused disk swaps them."""
    other = chance.choice([path, *others])
    one, two = bytearray(files[path]), bytearray(files[other])
    size = min(PAGE_BYTES, len(one), len(two))
    at, to = (chance.randrange(0, len(data) - size + 1, size) for data in (one, two))
    if other == path:
        two = one
    one[at : at + size], two[to : to + size] = two[to : to + size], one[at : at + size]
    return f"{size} bytes at {at} swapped with those at {to} of {other}", {
        path: bytes(one),
        other: bytes(two),
    }


def _place(chance: random.Random, data: bytes | bytearray) -> int:
    """Mostly where something is: files are long and half empty."""
    used = len(bytes(data).rstrip(b"\0")) or len(data)
    return chance.randrange(used if chance.random() < 0.9 else len(data))
