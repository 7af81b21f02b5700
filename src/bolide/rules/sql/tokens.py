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
_TEXT = re.compile(r"'(?:''|[^'])*'")
_BLANKS = rf"(?>(?:{_BLANK.pattern})*)"  # as they come: what they have taken they do not give back
_TEXTS = re.compile(rf"{_TEXT.pattern}(?:{_BLANKS},{_BLANKS}{_TEXT.pattern})*", re.DOTALL)
_TEXT_OR_BLANK = re.compile(rf"({_TEXT.pattern})|{_BLANK.pattern}", re.DOTALL)
_TOKEN = re.compile(
    rf"""(?P<DECIMAL>[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
    |(?P<WHOLE>0|[1-9][0-9]*[lL]?)
    |(?P<TEXT>{_TEXT.pattern})
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


def tokens_of(expression: str, at: int = 0) -> Iterator[Token]:
    """All from there on, at last one that says where the end is."""
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
        return Token(kind, _unquoted(text), at)
    return Token(kind, text, at)


def texts_at(expression: str, at: int) -> tuple[list[str], int]:
    """The text that stands there and those behind it, with commas in between, and where they end.

    One by one, as tokens, a thousand of them cost several times as much, and every pull may bring some.
    """
    run = _TEXTS.match(expression, at)
    if run is None:
        return [], at
    return [_unquoted(text) for text in _TEXT_OR_BLANK.findall(run.group()) if text], run.end()


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


def refuse(expression: str, at: int, why: str) -> NoReturn:
    """Say what is wrong, and show the place."""
    before, after = expression[max(0, at - 20) : at], expression[at : at + 20]
    raise SubscriptionMalformed(f"the expression is wrong at character {at + 1}, {before}»{after}«: {why}")
