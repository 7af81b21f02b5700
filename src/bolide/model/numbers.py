"""Whole numbers as the protocol and its files have them: 32 or 64 bits with a sign (Java: int, long), and no others.

Python's have no end, so each is held against these where it comes in.  A text is measured before it is read: what
`int` makes of some thousand digits is a number too, and takes its time.
"""

import re
from typing import Final, TypeGuard

INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

LENGTH_MAX: Final = 20
"""Of a number of 64 bits: nineteen digits and a sign."""

_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")


def parse_whole(text: str) -> int | None:
    """The number, or None when the text is none of 64 bits.

    >>> parse_whole("-7"), parse_whole("1e3"), parse_whole("9" * 400)
    (-7, None, None)
    """
    if len(text) > LENGTH_MAX or _WHOLE.fullmatch(text) is None:
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def parse_count(text: str) -> int | None:
    """`parse_whole`, of digits alone: ports, ids and numbers of things have no sign.

    >>> parse_count("7"), parse_count("-0"), parse_count("+7")
    (7, None, None)
    """
    return parse_whole(text) if text.isdecimal() else None


def is_int32(value: object) -> TypeGuard[int]:
    """Whether it is a whole number of 32 bits; True and False are none."""
    return type(value) is int and INT32_MIN <= value <= INT32_MAX


def is_int64(value: object) -> TypeGuard[int]:
    """Whether it is a whole number of 64 bits; True and False are none."""
    return type(value) is int and INT64_MIN <= value <= INT64_MAX
