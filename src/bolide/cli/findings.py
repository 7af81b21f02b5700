"""What a check of `bolide doctor` found: good, doubtful or wrong, in words, with what to do about it."""

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    GOOD = "ok"
    DOUBTFUL = "warning"
    WRONG = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """`advice` says what to do; only good findings have none."""

    check: str
    verdict: Verdict
    text: str
    advice: str = ""

    def as_json(self) -> dict[str, str]:
        return {
            "check": self.check,
            "verdict": self.verdict.value,
            "text": self.text,
            "advice": self.advice,
        }


def good(check: str, text: str) -> Finding:
    return Finding(check, Verdict.GOOD, text)


def doubtful(check: str, text: str, advice: str) -> Finding:
    return Finding(check, Verdict.DOUBTFUL, text, advice)


def wrong(check: str, text: str, advice: str) -> Finding:
    return Finding(check, Verdict.WRONG, text, advice)
