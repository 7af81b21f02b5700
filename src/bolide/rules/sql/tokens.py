"""The words of an expression, each with its place, so that an error can point at it."""

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, NoReturn

from bolide.model.errors import SubscriptionMalformed

KEYWORDS = frozenset(
    ("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS", "CONTAINS", "STARTSWITH", "ENDSWITH")
)
"""In any case of letters; names of properties have theirs."""


class Kind(Enum):
    NAME = "a property"
    WHOLE = "a number"
    DECIMAL = "a decimal number"
    TEXT = "a text"
    KEYWORD = "a keyword"
    SYMBOL = "a symbol"
    END = "the end of the expression"


class Token(NamedTuple):
    kind: Kind
    text: str
    """A keyword in capitals, a text without its quotes, everything else as it was written."""
    at: int
    """The place of its first character."""


_BLANK = re.compile(r"[ \t\n\r\f]+|--[^\n\r]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<DECIMAL>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<WHOLE>0|[1-9][0-9]*[lL]?)
    |(?P<TEXT>'(?:''|[^'])*')
    |(?P<NAME>[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<SYMBOL><>|<=|>=|[=<>()+,-])""",
    re.VERBOSE,
)

_HINTS = {
    "!": "unequal is written <>",
    "'": "the text has no closing quote",
    '"': "a text stands in single quotes",
    "/": "a comment ends with */",
    "*": "there is no arithmetic",
    "&": "write AND",
    "|": "write OR",
}


def tokens_of(expression: str) -> Iterator[Token]:
    """All of them, at last one that says where the end is."""
    at = 0
    while True:
        while blank := _BLANK.match(expression, at):
            at = blank.end()
        if at == len(expression):
            yield Token(Kind.END, "", at)
            return
        found = _TOKEN.match(expression, at)
        if found is None:
            hint = _HINTS.get(expression[at], "no expression has that")
            refuse(expression, at, f"{expression[at]!r}: {hint}")
        yield _token(Kind[str(found.lastgroup)], found.group(), at)
        at = found.end()


def _token(kind: Kind, text: str, at: int) -> Token:
    if kind is Kind.NAME and text.upper() in KEYWORDS:
        return Token(Kind.KEYWORD, text.upper(), at)
    if kind is Kind.TEXT:
        return Token(kind, text[1:-1].replace("''", "'"), at)
    return Token(kind, text, at)


def refuse(expression: str, at: int, why: str) -> NoReturn:
    """Say what is wrong, and show the place."""
    before, after = expression[max(0, at - 20) : at], expression[at : at + 20]
    raise SubscriptionMalformed(f"the expression is wrong at character {at + 1}, {before}»{after}«: {why}")
