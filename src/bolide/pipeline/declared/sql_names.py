"""Which tables a query reads, as far as the order of steps needs it: without a parser, so without Spark.

Only where a table can stand is looked at: behind FROM and JOIN, and behind the commas of a FROM.  Names of common
table expressions, of functions (`range(10)`) and of other catalogs (`db.orders`) are not ours.  Whether the rest is SQL
is for Spark to say.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<skip>\s+|--[^\n]*|/\*[\s\S]*?(?:\*/|\Z))
    | (?P<text>'(?:[^'\\]|\\.|'')*(?:'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z))
    | `(?P<quoted>(?:[^`]|``)*)(?:`|\Z)
    | (?P<word>[^\W\d]\w*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_WITH_FROM_INSIDE = frozenset({"extract", "trim", "substring", "substr", "overlay"})
"""Functions whose arguments are parted by the word FROM."""

_NO_TABLE = frozenset({"lateral", "values", "select", "table", "stream"})
_ENDS_FROM = frozenset(
    {
        "where",
        "group",
        "order",
        "having",
        "union",
        "intersect",
        "except",
        "limit",
        "on",
        "using",
        "window",
        "sort",
    }
)


@dataclass(frozen=True)
class TableName:
    name: str
    line: int
    """In the query, from 0."""


@dataclass(frozen=True)
class _Token:
    text: str
    line: int
    kind: str

    @property
    def word(self) -> str:
        return self.text.lower() if self.kind == "word" else ""


@dataclass
class _Level:
    """What is inside of one pair of parentheses."""

    has_own_from: bool = False
    expects_table: bool = False
    in_from: bool = False


def table_names(sql: str) -> Sequence[TableName]:
    """In the order of the query, each once."""
    tokens = _tokens(sql)
    common = _common_names(tokens)
    found: dict[str, TableName] = {}
    levels = [_Level()]
    for at, token in enumerate(tokens):
        level = levels[-1]
        if token.text == "(":
            before = tokens[at - 1].word if at else ""
            levels.append(_Level(has_own_from=before in _WITH_FROM_INSIDE))
            level.expects_table = False
        elif token.text == ")":
            if len(levels) > 1:
                levels.pop()
        elif token.word in ("from", "join"):
            is_comparison = token.word == "from" and at > 0 and tokens[at - 1].word == "distinct"
            level.expects_table = not is_comparison and not level.has_own_from
            level.in_from = level.expects_table
        elif token.text == "," and level.in_from:
            level.expects_table = True
        elif level.expects_table and token.kind in ("word", "quoted"):
            level.expects_table = False
            following = tokens[at + 1].text if at + 1 < len(tokens) else ""
            if (
                following not in ("(", ".")
                and token.word not in _NO_TABLE
                and token.text.lower() not in common
            ):
                found.setdefault(token.text.lower(), TableName(token.text, token.line))
        elif token.word in _ENDS_FROM:
            level.in_from = level.expects_table = False
    return list(found.values())


def _tokens(sql: str) -> list[_Token]:
    tokens: list[_Token] = []
    line = 0
    for match in _TOKEN.finditer(sql):
        kind = str(match.lastgroup)
        if kind != "skip":
            text = match[0] if kind == "text" else match[kind]
            tokens.append(_Token(text.replace("``", "`") if kind == "quoted" else text, line, kind))
        line += match[0].count("\n")
    return tokens


def _common_names(tokens: list[_Token]) -> set[str]:
    """`WITH name AS (…), other (a, b) AS (…)`: whatever stands before AS and a parenthesis is such a name."""
    names: set[str] = set()
    if not any(token.word == "with" for token in tokens):
        return names
    for at in range(2, len(tokens)):
        if tokens[at].text == "(" and tokens[at - 1].word == "as":
            before = at - 2
            if tokens[before].text == ")":  # the columns of the expression
                while before > 0 and tokens[before].text != "(":
                    before -= 1
                before -= 1
            if before >= 0 and tokens[before].kind in ("word", "quoted"):
                names.add(tokens[before].text.lower())
    return names
