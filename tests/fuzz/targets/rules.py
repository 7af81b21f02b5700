"""Expressions over a message's properties."""

from typing import Any

from bolide.model.errors import SubscriptionMalformed
from tests.fuzz.target import Target
from tests.peers.sql_questions import questions
from tests.property.twins import JUDGES

_BETWEEN = b"\x00"


def _asked() -> list[bytes]:
    """Expressions, each with the properties of a message."""
    return [
        question.expression.encode()
        + _BETWEEN
        + "".join(f"{name}\x01{value}\x02" for name, value in question.properties.items()).encode()
        for question in questions(7, 60, messages=2)
    ]


def _judged(data: bytes) -> bool:
    expression, _, properties = data.partition(_BETWEEN)
    said: list[Any] = []
    for module in JUDGES:
        try:
            said.append(module.Judge(expression.decode("utf-8", "replace")).wants(properties))
        except SubscriptionMalformed as error:
            said.append(str(error))
    assert said[0] == said[1], said
    if isinstance(said[0], str):
        raise SubscriptionMalformed(said[0])
    return bool(said[0])


RULES = (
    Target(
        "sql-expression",
        _asked,
        _judged,
        (SubscriptionMalformed,),
        tokens=(
            b"AND",
            b"OR",
            b"NOT ",
            b"BETWEEN",
            b"IN ('",
            b"IS NULL",
            b"<>",
            b"CONTAINS '",
            b"\x01",
            b"\x02",
            b"TRUE",
        ),
    ),
)
