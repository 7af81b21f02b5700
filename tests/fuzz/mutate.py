"""From valid inputs to inputs that are almost valid.  Everything comes from one `random.Random`."""

import random
import re
import struct
from collections.abc import Callable, Sequence

SIZE_BYTES_MAX = 32 * 1024
GROWN = 0.25
"""So many inputs are made from what a guided run has found."""

EDGES = (0, 1, -1, 7, 8, 2**7 - 1, 2**7, 2**8 - 1, 2**8, 2**15 - 1, 2**15, 2**16 - 1, 2**16, 2**24 - 1,
         2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, -(2**63),
         2**64 - 1, 2**64, 10**18, 10**19, 10**30)  # fmt: skip
"""Numbers at which something begins or ends."""

TEXTS = (
    "1e400",
    "-1e400",
    "NaN",
    "1.5",
    "-0",
    "00",
    "+1",
    "0x10",
    "1_000",
    "٤",
    "９",
    "²",
    "true",
    "null",
    "",
)
"""What stands where a number should."""

TOKENS = (b"\x00", b"\xff", b"\x01", b"\x02", b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b"=", b" ", b"\n",
          b"\\u0000", b"\\ud800", b"\\ud83d\\ude00", b"\xc3\xbc", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\xc0\x80",
          b"\xe2\x80\xa8", b"\xc2\x85", b"null", b"{}", b"[]", b'""', b"0", b"9" * 25, b"{0:",
          b"[[[[[[[[", b"{{")  # fmt: skip

VALUES = (b"null", b"true", b"false", b"0", b"-1", b"1.5", b"1e400", b"2147483648", b"9223372036854775807",
          b"9223372036854775808", b"18446744073709551616", b'""', b'"0"', b'"-1"', b'"x"', b'"true"', b'"1e3"', b"[]",
          b"{}", b'["x"]', b"[null]", b"[0]", b'{"x":0}', b"{0:1}", b'{"a":{"b":[[]]}}', b'"\\u0000"', b'"\\u202e\\n"',
          b'"' + b"x" * 300 + b'"')  # fmt: skip
"""What may stand in JSON where another value stood, so that it stays JSON."""

_VALUE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"(?!\s*:)|(?<=[:,\[])(?:-?[0-9][0-9.e+-]*|true|false|null)')
_DIGITS = re.compile(rb"[0-9]+")
_WIDTHS = (1, 2, 2, 4, 4, 4, 8, 8)


class Mutator:
    """Gives one input after the other."""

    def __init__(
        self,
        chance: random.Random,
        valid: Sequence[bytes],
        grown: Sequence[bytes] = (),
        tokens: Sequence[bytes] = (),
    ) -> None:
        self._chance = chance
        self._valid = valid
        self._grown = grown or valid
        self._tokens = (*TOKENS, *tokens, *tokens)
        self._changes: tuple[Callable[[bytearray], None], ...] = (
            *(self._value, self._value, self._value),
            *(self._flip, self._set, self._number, self._number, self._nudge, self._digits, self._digits),
            *(self._cut, self._delete, self._repeat, self._token, self._token, self._overwrite, self._splice),
        )

    def next(self) -> bytes:
        """An input with some changes, most often with few, and most often a valid one."""
        data = bytearray(self._pick())
        count = 1
        while count < 12 and self._chance.random() < 0.5:
            count += 1
        for _ in range(count):
            self._chance.choice(self._changes)(data)
        return bytes(data[:SIZE_BYTES_MAX])

    def _pick(self) -> bytes:
        return self._chance.choice(self._grown if self._chance.random() < GROWN else self._valid)

    def _place(self, data: bytearray) -> int:
        return int(self._chance.random() * len(data))

    def _length(self, data: bytearray) -> int:
        """Short ones are more likely."""
        return 1 + int(self._chance.random() ** 3 * min(len(data), 400))

    def _flip(self, data: bytearray) -> None:
        if data:
            data[self._place(data)] ^= 1 << self._chance.randrange(8)

    def _set(self, data: bytearray) -> None:
        if data:
            data[self._place(data)] = self._chance.randrange(256)

    def _number(self, data: bytearray) -> None:
        """A number that ends somewhere, in any width, where one may be."""
        width = self._chance.choice(_WIDTHS)
        if len(data) >= width:
            at = self._chance.randrange(len(data) - width + 1)
            self._store(data, at, width, self._chance.choice(EDGES))

    def _nudge(self, data: bytearray) -> None:
        """What is there, and a little more or less: lengths that miss by one, or by what is left."""
        width = self._chance.choice(_WIDTHS)
        if len(data) >= width:
            at = self._chance.randrange(len(data) - width + 1)
            before = int.from_bytes(data[at : at + width], "big")
            by = self._chance.choice((1, -1, 2, -2, 4, -4, 8, 20, len(data), len(data) - at))
            self._store(data, at, width, before + by)

    def _digits(self, data: bytearray) -> None:
        """Another number in the place of one that is written in digits."""
        found = [match.span() for match in _DIGITS.finditer(data)]
        if found:
            first, last = self._chance.choice(found)
            pick = self._chance.random()
            text = str(self._chance.choice(EDGES)) if pick < 0.7 else self._chance.choice(TEXTS)
            data[first:last] = b"9" * self._chance.choice((400, 5000)) if pick > 0.97 else text.encode()

    def _value(self, data: bytearray) -> None:
        """Another value in the place of one of JSON."""
        found = [match.span() for match in _VALUE.finditer(data)]
        if found:
            first, last = self._chance.choice(found)
            data[first:last] = self._chance.choice(VALUES)

    def _cut(self, data: bytearray) -> None:
        del data[self._place(data) :]

    def _delete(self, data: bytearray) -> None:
        at = self._place(data)
        del data[at : at + self._length(data)]

    def _repeat(self, data: bytearray) -> None:
        at = self._place(data)
        piece = data[at : at + self._length(data)]
        times = self._chance.choice((1, 1, 1, 2, 3, 50))
        data[at:at] = piece * (times if len(data) + len(piece) * times < SIZE_BYTES_MAX else 1)

    def _token(self, data: bytearray) -> None:
        at = self._place(data)
        data[at:at] = self._chance.choice(self._tokens)

    def _overwrite(self, data: bytearray) -> None:
        token = self._chance.choice(self._tokens)
        at = self._place(data)
        data[at : at + len(token)] = token

    def _splice(self, data: bytearray) -> None:
        """A piece of another valid input."""
        other = self._pick()
        first = int(self._chance.random() * len(other))
        at = self._place(data)
        size = self._length(data)
        data[at : at + self._chance.choice((0, size))] = other[first : first + size]

    @staticmethod
    def _store(data: bytearray, at: int, width: int, number: int) -> None:
        data[at : at + width] = struct.pack(">Q", number & 0xFFFF_FFFF_FFFF_FFFF)[-width:]
