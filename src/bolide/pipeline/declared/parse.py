"""From a tree of nodes to a definition.  Goes on after an error, so that all of them are told at once.

What is wrong here is wrong by itself: a key that nobody knows, a value of the wrong kind, something that is missing.
How the parts fit together is looked at in `check.py`.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from bolide.pipeline.declared.definition import (
    AVAILABLE_NOW,
    TOPIC_FORMAT,
    Action,
    CodePlace,
    Definition,
    Expectation,
    Function,
    Problem,
    Quarantine,
    Sink,
    Source,
    Sql,
    Stateful,
    Step,
    Watermark,
)
from bolide.pipeline.declared.sql_names import table_names
from bolide.pipeline.declared.tree import Node

PIPELINE_KEYS = (
    "name",
    "nameserver",
    "trigger",
    "checkpoint",
    "settings",
    "sources",
    "steps",
    "sinks",
    "quarantine",
)
PLACE_KEYS = ("format", "topic", "nameserver", "path", "options")
SOURCE_KEYS = (*PLACE_KEYS, "schema", "batch", "watermark", "expect")
STEP_KEYS = (
    "sql",
    "python",
    "state",
    "from",
    "key",
    "schema",
    "time",
    "output",
    "watermark",
    "expect",
)
SINK_KEYS = (*PLACE_KEYS, "from", "output", "partition_by", "trigger")
QUARANTINE_KEYS = PLACE_KEYS
EXPECTATION_KEYS = ("condition", "action")
WATERMARK_KEYS = ("column", "delay")

TIME_MODES = {"none": "None", "processing": "ProcessingTime", "event": "EventTime"}
OUTPUT_MODES = ("append", "update", "complete")

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
PIPELINE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
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


def parse_definition(root: Node, file: Path, problems: Problems) -> Definition:
    """The definition as far as it can be understood; it is only one when nothing but warnings was added."""
    pipeline = Fields(root, "a pipeline", PIPELINE_KEYS, problems)
    name = pipeline.text("name") or file.stem
    if not PIPELINE_NAME.fullmatch(name):
        problems.add(
            pipeline.line_of("name"), f"name: {name!r} is no name: letters, digits, '_', '-' and '.'"
        )
    places = _Places(pipeline.text("nameserver"), file.parent)
    quarantine = pipeline.member("quarantine")
    return Definition(
        name=name,
        file=file,
        sources={key: _source(key, node, places, problems) for key, node in pipeline.named("sources")},
        steps={key: _step(key, node, file.parent, problems) for key, node in pipeline.named("steps")},
        sinks={key: _sink(key, node, places, problems) for key, node in pipeline.named("sinks")},
        quarantine=None if quarantine is None else _quarantine(quarantine, places, problems),
        trigger=pipeline.trigger("trigger") or "1 second",
        checkpoint=pipeline.text("checkpoint"),
        settings=pipeline.texts("settings"),
    )


# ---- the parts ---------------------------------------------------------------------------------------------------


def _source(name: str, node: Node, places: "_Places", problems: Problems) -> Source:
    fields = Fields(node, f"the source {name}", SOURCE_KEYS, problems)
    kind, options = places.of(fields, "subscribe")
    return Source(
        name=name,
        format=kind,
        options=options,
        line=node.line,
        schema=fields.text("schema"),
        is_stream=not fields.flag("batch"),
        watermark=_watermark(fields, problems),
        expectations=_expectations(fields, problems),
    )


def _step(name: str, node: Node, folder: Path, problems: Problems) -> Step:
    fields = Fields(node, f"the step {name}", STEP_KEYS, problems)
    given = [key for key in ("sql", "python", "state") if fields.member(key) is not None]
    if len(given) != 1:
        said = "says none of them" if not given else f"says {' and '.join(given)}"
        problems.add(node.line, f"{fields.what} is one of sql, python and state, and {said}")
    kind = given[0] if given else "sql"
    inputs = fields.words("from")
    work: Sql | Function | Stateful
    if kind == "sql":
        text = fields.member("sql")
        work = Sql(fields.text("sql") or "", node.line if text is None else text.text_line)
        inputs = inputs or [table.name for table in table_names(work.text)]
        fields.only_with("state", ("key", "schema", "time", "output"), kind)
    elif kind == "python":
        work = Function(_code(fields, "python", folder, problems))
        fields.only_with("state", ("key", "schema", "time", "output"), kind)
    else:
        work = _stateful(fields, folder, problems)
        if len(inputs) > 1:
            problems.add(
                fields.line_of("from"), f"{fields.what} keeps state of one input, not of {len(inputs)}"
            )
    if kind != "sql" and not inputs and given:
        problems.add(node.line, f"{fields.what} has no from: which source or step does it read?")
    return Step(
        name=name,
        work=work,
        inputs=inputs,
        line=node.line,
        watermark=_watermark(fields, problems),
        expectations=_expectations(fields, problems),
    )


def _stateful(fields: "Fields", folder: Path, problems: Problems) -> Stateful:
    return Stateful(
        code=_code(fields, "state", folder, problems),
        key=fields.words("key") or fields.missing("key", "customer", ()),
        schema=fields.text("schema") or fields.missing("schema", "customer string, orders long", ""),
        time_mode=TIME_MODES[fields.choice("time", tuple(TIME_MODES))],
        output_mode=fields.choice("output", OUTPUT_MODES[:2]),
    )


def _sink(name: str, node: Node, places: "_Places", problems: Problems) -> Sink:
    fields = Fields(node, f"the sink {name}", SINK_KEYS, problems)
    kind, options = places.of(fields, "topic")
    inputs = fields.words("from")
    if len(inputs) != 1:
        problems.add(node.line, f"{fields.what} needs from: the one source or step whose rows it gets")
    return Sink(
        name=name,
        input=inputs[0] if inputs else "",
        format=kind,
        options=options,
        line=node.line,
        output_mode=fields.choice("output", OUTPUT_MODES),
        partition_by=fields.words("partition_by"),
        trigger=fields.trigger("trigger"),
    )


def _quarantine(node: Node, places: "_Places", problems: Problems) -> Quarantine:
    fields = Fields(node, "the quarantine", QUARANTINE_KEYS, problems)
    kind, options = places.of(fields, "topic")
    return Quarantine(kind, options, node.line)


def _watermark(fields: "Fields", problems: Problems) -> Watermark | None:
    node = fields.member("watermark")
    if node is None:
        return None
    inner = Fields(node, f"the watermark of {fields.what}", WATERMARK_KEYS, problems)
    column = inner.text("column") or inner.missing("column", "storeTimestamp", "")
    delay = inner.text("delay") or inner.missing("delay", "10 minutes", "1 minute")
    if parse_span(delay) is None:
        problems.add(inner.line_of("delay"), f"delay: {delay!r} is no time; 10 minutes is one")
    return Watermark(column, parse_span(delay) or delay)


def _expectations(fields: "Fields", problems: Problems) -> Sequence[Expectation]:
    found: list[Expectation] = []
    for name, node in fields.named("expect"):
        action = Action.WARN
        if isinstance(node.value, dict):
            inner = Fields(node, f"the expectation {name}", EXPECTATION_KEYS, problems)
            condition = inner.text("condition") or inner.missing("condition", "amount > 0", "true")
            action = Action(inner.choice("action", tuple(Action)))
        else:
            condition = fields.scalar(node, f"expect: {name}") or ""
        if not condition.strip():
            problems.add(node.line, f"the expectation {name} has no condition: {name}: amount > 0")
        found.append(Expectation(name, condition.strip(), action, node.line))
    return found


def _code(fields: "Fields", key: str, folder: Path, problems: Problems) -> CodePlace:
    node = fields.member(key)
    if node is not None and node.object is not None:
        return CodePlace(getattr(node.object, "__name__", key), object=node.object)
    text = fields.text(key) or ""
    file, _, name = text.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        problems.add(fields.line_of(key), f"{key}: {text!r} is no place in a file; steps.py:clean is one")
        return CodePlace("", folder)
    return CodePlace(name, folder / Path(file).expanduser())


@dataclass(frozen=True)
class _Places:
    """Where sources and sinks are, as the file's short forms say it: `topic`, `path`, `nameserver`."""

    nameserver: str | None
    folder: Path

    def of(self, fields: "Fields", topic_option: str) -> tuple[str, Mapping[str, str]]:
        """Format and options.  A topic needs no format, a path does not say which it is."""
        options = dict(fields.texts("options"))
        lower = {name.lower() for name in options}
        topic, path, nameserver = (fields.text(key) for key in ("topic", "path", "nameserver"))
        kind = fields.text("format") or (TOPIC_FORMAT if topic or not path else "parquet")
        given = {topic_option: topic, "path": self.resolve(path) if path else None, "nameserver": nameserver}
        for option, value in given.items():
            if value is not None and option.lower() in lower:
                fields.problems.add(fields.line, f"{fields.what} says {option} twice: once in options")
            elif value is not None:
                options[option] = value
        if kind == TOPIC_FORMAT and self.nameserver and "nameserver" not in lower | options.keys():
            options["nameserver"] = self.nameserver
        return kind, options

    def resolve(self, path: str) -> str:
        """A path of the file is beside the file, wherever the command is called."""
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path):
            return path
        return str((self.folder / Path(path).expanduser()).absolute())


# ---- reading nodes -----------------------------------------------------------------------------------------------


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
