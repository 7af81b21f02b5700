"""Reading nodes: what keys and values of a definition mean, whatever they are about.

Nothing here knows of sources, steps or sinks (`parse.py` and `parse_steps.py` do), and an error is only noted: reading
goes on, so that all of them are told at once.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from bolide.pipeline.declared.definition import AVAILABLE_NOW, Problem
from bolide.pipeline.declared.tree import Node

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
SPAN = re.compile(
    r"(?P<count>\d{1,9}) *(?P<unit>ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|days?)",
    re.IGNORECASE,
)
_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

V = TypeVar("V")


@dataclass
class Problems:
    """What was found so far."""

    found: list[Problem] = field(default_factory=list)

    def add(self, line: int, text: str, *, is_warning: bool = False) -> None:
        self.found.append(Problem(line, text, is_warning))


class Fields:
    """A mapping of known keys.  What is not known is told with the nearest that is."""

    def __init__(self, node: Node, what: str, known: Sequence[str], problems: Problems) -> None:
        self.line, self.what, self.known, self.problems = node.line, what, known, problems
        value = node.value
        self._members: dict[str, Node] = value if isinstance(value, dict) else {}
        if value is not None and not isinstance(value, dict):
            self.problems.add(self.line, f"{self.what} is keys and values ({', '.join(self.known)})")
        for key, node in self._members.items():
            if key not in self.known:
                near = nearest(key, self.known)
                hint = f": did you mean {near}?" if near else f"; there are {', '.join(self.known)}"
                self.problems.add(node.line, f"{self.what} has no key {key!r}{hint}")

    def line_of(self, key: str) -> int:
        return self._members[key].line if key in self._members else self.line

    def member(self, key: str) -> Node | None:
        """None also for a key without a value."""
        node = self._members.get(key)
        return None if node is None or (node.value is None and node.object is None) else node

    def missing(self, key: str, example: str, otherwise: V) -> V:
        self.problems.add(self.line, f"{self.what} needs {key}, as in {key}: {example}")
        return otherwise

    def scalar(self, node: Node, key: str) -> str | None:
        if isinstance(node.value, str):
            return node.value
        if node.value is not None:
            self.problems.add(node.line, f"{key} is one value, not a list or keys")
        return None

    def text(self, key: str) -> str | None:
        node = self.member(key)
        return None if node is None else self.scalar(node, key)

    def texts(self, key: str) -> Mapping[str, str]:
        """A mapping of words to values, as options are."""
        return {name: self.scalar(node, f"{key}: {name}") or "" for name, node in self._inner(key)}

    def named(self, key: str) -> Sequence[tuple[str, Node]]:
        """The members of a mapping whose keys are names that people choose."""
        members = self._inner(key)
        for name, node in members:
            if not NAME.fullmatch(name):
                self.problems.add(
                    node.line,
                    f"{name!r} is no name for one of {key}: letters, digits and '_', no digit first",
                )
        return members

    def words(self, key: str) -> list[str]:
        """One word or a list of them."""
        node = self.member(key)
        if node is None:
            return []
        items = node.value if isinstance(node.value, list) else [node]
        return [text for item in items if (text := self.scalar(item, key))]

    def flag(self, key: str) -> bool:
        text = self.text(key)
        if text is None or text.lower() in ("false", "no", "off"):
            return False
        if text.lower() not in ("true", "yes", "on"):
            self.problems.add(self.line_of(key), f"{key} is true or false, not {text!r}")
        return True

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """The first is the default."""
        text = self.text(key)
        if text is None:
            return choices[0]
        if text.lower() not in choices:
            near = nearest(text.lower(), choices)
            hint = f": did you mean {near}?" if near else ""
            self.problems.add(self.line_of(key), f"{key} is one of {', '.join(choices)}, not {text!r}{hint}")
            return choices[0]
        return text.lower()

    def trigger(self, key: str) -> str | None:
        text = self.text(key)
        if text is None or text == AVAILABLE_NOW:
            return text
        span = parse_span(text)
        if span is None:
            self.problems.add(
                self.line_of(key), f"{key}: {text!r} is no trigger; 10 seconds is one, and {AVAILABLE_NOW}"
            )
        return span

    def span(self, key: str) -> str | None:
        """As Spark takes it; None where nothing is said."""
        text = self.text(key)
        if text is None:
            return None
        found = parse_span(text)
        if found is None:
            self.problems.add(self.line_of(key), f"{key}: {text!r} is no time; 10 minutes is one")
        return found or text

    def only_with(self, kind: str, keys: Sequence[str], instead: str) -> None:
        for key in keys:
            if key in self._members:
                self.problems.add(
                    self.line_of(key), f"{key} is for steps with {kind}, and {self.what} is {instead}"
                )

    def _inner(self, key: str) -> list[tuple[str, Node]]:
        node = self.member(key)
        if node is None:
            return []
        if not isinstance(node.value, dict):
            self.problems.add(node.line, f"{key} of {self.what} is keys and values, not a list or one value")
            return []
        return list(node.value.items())


def nearest(word: str, known: Sequence[str]) -> str | None:
    close = difflib.get_close_matches(word[:128].lower(), known, n=1, cutoff=0.6)
    return close[0] if close else None


def parse_span(text: str) -> str | None:
    """A span as Spark takes it.

    >>> parse_span("10s"), parse_span("5 minutes"), parse_span("1 Hour"), parse_span("soon")
    ('10 seconds', '5 minutes', '1 hours', None)
    """
    found = SPAN.fullmatch(text.strip())
    if found is None:
        return None
    unit = found["unit"].lower()
    short = "ms" if unit.startswith(("ms", "milli")) else unit[0]
    return f"{int(found['count'])} {_UNITS[short]}"
