"""SQL expressions beside the original's own filter: the same are refused, and the same messages are wanted."""

import base64
from pathlib import Path

import pytest

from bolide.model.errors import SubscriptionMalformed
from bolide.rules.sql import judge, judge_twin
from tests.peers import java
from tests.peers.sql_questions import PLACES, Question, questions
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

COUNT = 20_000


def test_expressions_are_refused_and_messages_wanted_as_by_the_original(
    witness: Witness, tmp_path: Path
) -> None:
    """FI-03."""
    asked = [question for question in questions(20261, COUNT) if _is_known_to(witness.version, question)]
    theirs = _verdicts_of_the_original(witness, tmp_path / "questions", asked)
    assert {"x", "t", "f", "n", "e"} == set(theirs)  # the questions meet every case
    for question, letter in zip(asked, theirs, strict=True):
        expected = "x" if letter == "x" else letter == "t"
        assert _verdict(judge.Judge, question) == expected, question
        assert _verdict(judge_twin.Judge, question) == expected, question


def _is_known_to(version: str, question: Question) -> bool:
    """What an older one has not at all it cannot judge."""
    return version == java.LATEST or not any(word in question.expression for word in PLACES)


def _verdict(kind: type[judge_twin.Judge], question: Question) -> bool | str:
    stored = "".join(f"{name}\x01{value}\x02" for name, value in question.properties.items())
    try:
        return kind(question.expression).wants(stored.encode())
    except SubscriptionMalformed:
        return "x"


def _verdicts_of_the_original(witness: Witness, file: Path, asked: list[Question]) -> str:
    with file.open("wb") as lines:
        for question in asked:
            words = [question.expression, *(word for pair in question.properties.items() for word in pair)]
            lines.write(b" ".join(base64.b64encode(word.encode()) for word in words) + b"\n")
    return str(witness.ask("verdicts", file=file)["letters"])
