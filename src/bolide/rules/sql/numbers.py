"""Texts as Java reads them where it wants a number: a property is a text until it is compared with one."""

import re

from bolide.model.numbers import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

# None of them may match a text in two ways: a property has thousands of digits if somebody wants to stop a broker.
_WHOLE = re.compile(r"[+-]?0*(?:[1-9][0-9]{0,18})?")
_DECIMAL = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_HEXADECIMAL = re.compile(
    r"([+-]?0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_BLANKS = "".join(map(chr, range(33)))


def whole_32(text: str) -> int | None:
    """The number (Java: Integer.valueOf), or None for what is none."""
    number = whole_64(text)
    return number if number is not None and INT32_MIN <= number <= INT32_MAX else None


def whole_64(text: str) -> int | None:
    """The same of 64 bits (Java: Long.valueOf)."""
    if _WHOLE.fullmatch(text) is None or not text[-1:].isdecimal():
        return None
    number = int(text.lstrip("+-0") or "0")
    if text.startswith("-"):
        number = -number
    return number if INT64_MIN <= number <= INT64_MAX else None


def decimal(text: str) -> float | None:
    """The number (Java: Double.valueOf, which takes 1e3, .5, 5., 3d, NaN and hexadecimal ones), or None.

    >>> decimal(" 2.5e1f "), decimal("0x1p4"), decimal("inf"), decimal("1_000")
    (25.0, 16.0, None, None)
    """
    text = text.strip(_BLANKS)
    if _DECIMAL.fullmatch(text):
        return float(text if text.endswith(("NaN", "y")) else text.rstrip("fFdD"))
    hexadecimal = _HEXADECIMAL.fullmatch(text)
    if hexadecimal is None:
        return None
    try:
        return float.fromhex(hexadecimal.group(1))
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")


def order_of(left: float, right: float) -> int:
    """-1, 0 or 1 as Java orders them all: -0.0 before 0.0, and NaN behind everything (Java: Double.compare)."""
    if left < right:
        return -1
    if left > right:
        return 1
    return (_rank(left) > _rank(right)) - (_rank(left) < _rank(right))


def _rank(number: float) -> int:
    if number != number:
        return 2
    return 0 if number == 0 and str(number).startswith("-") else 1
