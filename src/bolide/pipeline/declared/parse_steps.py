"""Steps of a definition: what kind each is, what it reads, and what is said of its rows.

Sources say the last part in the same words, so how late rows may come and what is expected of them is here, too.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bolide.pipeline.declared.definition import (
    STORED,
    Action,
    CodePlace,
    Dedup,
    Expectation,
    Function,
    Join,
    JoinType,
    Sql,
    Stateful,
    Step,
    Watermark,
    Work,
)
from bolide.pipeline.declared.fields import Fields, Problems
from bolide.pipeline.declared.sql_names import table_names
from bolide.pipeline.declared.tree import Node

OF_STATE = ("key", "schema", "time", "output")
"""Keys of steps with a state of their own code."""

DEDUP_KEYS = ("from", "by", "within", "late", "time")
JOIN_KEYS = ("left", "right", "on", "within", "late", "time", "type", "select")
EXPECTATION_KEYS = ("condition", "action")
WATERMARK_KEYS = ("column", "delay")

TIME_MODES = {"none": "None", "processing": "ProcessingTime", "event": "EventTime"}
OUTPUT_MODES = ("append", "update", "complete")

Made = tuple[Work, Sequence[str]]
"""What a step does, and which sources and steps it reads."""


def parse_step(name: str, node: Node, folder: Path, problems: Problems) -> Step:
    fields = Fields(node, f"the step {name}", STEP_KEYS, problems)
    given = [kind for kind in KINDS if fields.member(kind) is not None]
    if len(given) != 1:
        said = "says none of them" if not given else f"says {' and '.join(given)}"
        *most, last = KINDS
        problems.add(node.line, f"{fields.what} is one of {', '.join(most)} and {last}, and {said}")
    kind = given[0] if given else "sql"
    if kind != "state":
        fields.only_with("state", OF_STATE, kind)
    work, inputs = KINDS[kind](fields, folder)
    if given and not inputs and kind in ("python", "state"):
        problems.add(node.line, f"{fields.what} has no from: which source or step does it read?")
    return Step(
        name=name,
        work=work,
        inputs=inputs,
        line=node.line,
        watermark=parse_watermark(fields),
        expectations=parse_expectations(fields),
    )


# ---- the kinds ---------------------------------------------------------------------------------------------------


def _sql(fields: Fields, folder: Path) -> Made:
    text = fields.member("sql")
    work = Sql(fields.text("sql") or "", fields.line if text is None else text.text_line)
    return work, fields.words("from") or [table.name for table in table_names(work.text)]


def _python(fields: Fields, folder: Path) -> Made:
    return Function(_code(fields, "python", folder)), fields.words("from")


def _state(fields: Fields, folder: Path) -> Made:
    inputs = fields.words("from")
    if len(inputs) > 1:
        fields.problems.add(
            fields.line_of("from"), f"{fields.what} keeps state of one input, not of {len(inputs)}"
        )
    work = Stateful(
        code=_code(fields, "state", folder),
        key=fields.words("key") or fields.missing("key", "customer", ()),
        schema=fields.text("schema") or fields.missing("schema", "customer string, orders long", ""),
        time_mode=TIME_MODES[fields.choice("time", tuple(TIME_MODES))],
        output_mode=fields.choice("output", OUTPUT_MODES[:2]),
    )
    return work, inputs


def _dedup(fields: Fields, folder: Path) -> Made:
    inner = _inner(fields, "dedup", DEDUP_KEYS)
    inputs = inner.words("from") or inner.missing("from", "orders", [])
    if len(inputs) > 1:
        inner.problems.add(inner.line_of("from"), f"{inner.what} has one input, not {len(inputs)}")
    work = Dedup(
        by=inner.text("by") or inner.missing("by", "id", ""),
        within=inner.span("within") or inner.missing("within", "1 hour", ""),
        late=inner.span("late"),
        time=inner.text("time") or STORED,
    )
    return work, inputs


def _join(fields: Fields, folder: Path) -> Made:
    inner = _inner(fields, "join", JOIN_KEYS)
    inputs = [inner.text(side) or inner.missing(side, example, "") for side, example in SIDES.items()]
    times = inner.words("time") or [STORED]
    if len(times) > 2:
        inner.problems.add(inner.line_of("time"), "time is one column, or one of left and one of right")
    work = Join(
        on=inner.text("on") or inner.missing("on", "key", ""),
        within=inner.span("within") or inner.missing("within", "10 minutes", ""),
        late=inner.span("late"),
        times=(times[0], times[-1]),
        type=JoinType(inner.choice("type", tuple(JoinType))),
        select=inner.text("select"),
    )
    return work, [name for name in inputs if name]


SIDES = {"left": "orders", "right": "payments"}


def _inner(fields: Fields, kind: str, keys: Sequence[str]) -> Fields:
    node = fields.member(kind)
    assert node is not None, kind
    inner = Fields(node, f"{kind} of {fields.what}", keys, fields.problems)
    if fields.member("from") is not None:
        fields.problems.add(fields.line_of("from"), f"what {fields.what} reads stands inside of {kind}")
    if fields.member("watermark") is not None:
        fields.problems.add(
            fields.line_of("watermark"),
            f"{fields.what} has its watermark from within and late, and gives rows as late as it gets them",
        )
    return inner


KINDS: Mapping[str, Callable[[Fields, Path], Made]] = {
    "sql": _sql,
    "python": _python,
    "state": _state,
    "dedup": _dedup,
    "join": _join,
}
STEP_KEYS = (*KINDS, "from", *OF_STATE, "watermark", "expect")


def _code(fields: Fields, key: str, folder: Path) -> CodePlace:
    node = fields.member(key)
    if node is not None and node.object is not None:
        return CodePlace(getattr(node.object, "__name__", key), object=node.object)
    text = fields.text(key) or ""
    file, _, name = text.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        fields.problems.add(
            fields.line_of(key), f"{key}: {text!r} is no place in a file; steps.py:clean is one"
        )
        return CodePlace("", folder)
    return CodePlace(name, folder / Path(file).expanduser())


# ---- of sources, too ---------------------------------------------------------------------------------------------


def parse_watermark(fields: Fields) -> Watermark | None:
    node = fields.member("watermark")
    if node is None:
        return None
    inner = Fields(node, f"the watermark of {fields.what}", WATERMARK_KEYS, fields.problems)
    column = inner.text("column") or inner.missing("column", "storeTimestamp", "")
    delay = inner.span("delay") or inner.missing("delay", "10 minutes", "1 minute")
    return Watermark(column, delay)


def parse_expectations(fields: Fields) -> Sequence[Expectation]:
    found: list[Expectation] = []
    for name, node in fields.named("expect"):
        action = Action.WARN
        if isinstance(node.value, dict):
            inner = Fields(node, f"the expectation {name}", EXPECTATION_KEYS, fields.problems)
            condition = inner.text("condition") or inner.missing("condition", "amount > 0", "true")
            action = Action(inner.choice("action", tuple(Action)))
        else:
            condition = fields.scalar(node, f"expect: {name}") or ""
        if not condition.strip():
            fields.problems.add(node.line, f"the expectation {name} has no condition: {name}: amount > 0")
        found.append(Expectation(name, condition.strip(), action, node.line))
    return found
