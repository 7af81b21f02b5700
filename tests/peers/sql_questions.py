"""Expressions of every form with messages to ask them about: the same from the same seed."""

import random
from typing import NamedTuple

NAMES = ("a", "b", "TAGS", "_x$1", "Price")
WHOLES = ("1", "-1", "0", "+7", "007", "2147483648", "-2147483649", "9223372036854775808", "1_0")
DECIMALS = ("5.5", "1e3", " 2 ", "3d", "NaN", "-Infinity", "0x1p3", "inf", "-0.0", "0.0")
TEXTS = (*WHOLES, *DECIMALS, "true", "TRUE", "x", "xyz", "yx", "it's", "ä€")
NUMBERS = ("0", "1", "7", "5.5", "1E3", "2147483647", "2147483648", "4L", ".5", "5.", "9223372036854775807")
ORDERS = ("<", "<=", ">", ">=")
PLACES = ("CONTAINS", "STARTSWITH", "ENDSWITH")


class Question(NamedTuple):
    expression: str
    properties: dict[str, str]


def questions(seed: int, count: int, *, messages: int = 5) -> list[Question]:
    """So many, several messages for each expression."""
    chance = random.Random(seed)
    asked: list[Question] = []
    while len(asked) < count:
        expression = _condition(chance, 3)
        asked += [Question(expression, _properties(chance)) for _ in range(messages)]
    return asked


def _properties(chance: random.Random) -> dict[str, str]:
    return {name: chance.choice(TEXTS) for name in NAMES if chance.random() < 0.6}


def _condition(chance: random.Random, depth: int) -> str:
    kind = chance.randrange(10) if depth else chance.randrange(4, 10)
    if kind == 0:
        return f"{_condition(chance, depth - 1)} {_cased(chance, 'AND')} {_condition(chance, depth - 1)}"
    if kind == 1:
        return f"{_condition(chance, depth - 1)} OR {_condition(chance, depth - 1)}"
    if kind == 2:
        return f"NOT ({_condition(chance, depth - 1)})"
    if kind == 3:
        return f"({_condition(chance, depth - 1)})"
    return _predicate(chance, depth)


def _predicate(chance: random.Random, depth: int) -> str:
    left = _operand(chance, depth)
    maybe_not = chance.choice(("", "", "NOT "))
    kind = chance.randrange(8)
    if kind == 0:
        return f"{left} {chance.choice(ORDERS)} {_operand(chance, depth)}"
    if kind in (1, 2):
        return f"{left} {chance.choice(('=', '<>'))} {_operand(chance, depth)}"
    if kind == 3:
        return (
            f"{left} {maybe_not}{_cased(chance, 'BETWEEN')} {_operand(chance, 0)} AND {_operand(chance, 0)}"
        )
    if kind == 4:
        return f"{left} {maybe_not}IN ({', '.join(_text(chance) for _ in range(chance.randrange(1, 8)))})"
    if kind == 5:
        return f"{left} IS {maybe_not}NULL"
    if kind == 6:
        return f"{left} {maybe_not}{chance.choice(PLACES)} {_text(chance)}"
    return chance.choice(("TRUE", "false", "NULL", chance.choice(NAMES), f"NOT {left}", left))


def _operand(chance: random.Random, depth: int) -> str:
    kind = chance.randrange(12)
    if kind < 5:
        return chance.choice(NAMES)
    if kind < 8:
        return chance.choice(("", "", "-", "+", "- -")) + chance.choice(NUMBERS)
    if kind == 8:
        return _text(chance)
    if kind == 9:
        return chance.choice(("TRUE", "FALSE", "NULL", "-a", "-NULL", "/* b */ a"))
    return f"({_condition(chance, depth - 1)})" if depth else chance.choice(NAMES)


def _text(chance: random.Random) -> str:
    text = chance.choice((*TEXTS, "", "y", "x"))
    return "'" + text.replace("'", "''") + "'"


def _cased(chance: random.Random, keyword: str) -> str:
    return chance.choice((keyword, keyword.lower(), keyword.title()))
