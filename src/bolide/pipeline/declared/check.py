"""What is wrong with a definition, found without Spark: names that lead nowhere, cycles, options, missing code.

Pure but for Python files of steps, which are read and never run.  What only Spark knows (columns, types, whether a
query is SQL) is for `explain` to find.
"""

import ast
import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import CycleError
from itertools import pairwise

from bolide.model.errors import ConfigError
from bolide.pipeline.declared.check_state import check_state
from bolide.pipeline.declared.definition import (
    AVAILABLE_NOW,
    DELTA,
    TOPIC_FORMAT,
    Action,
    CodePlace,
    Definition,
    Function,
    Quarantine,
    Sink,
    Source,
    Sql,
    Stateful,
    Step,
)
from bolide.pipeline.declared.fields import Problems, nearest
from bolide.pipeline.declared.sql_names import table_names
from bolide.pipeline.delta_log import check_library
from bolide.pipeline.folders import scheme_of

FILE_FORMATS = ("parquet", "json", "csv", "orc", "text", "avro", "xml")
"""Spark's formats of files: as streams they need a schema, and they only take what is appended."""

TOPIC_OPTIONS = ("subscribe", "topic", "subscribePattern", "assign", "retryOf", "dlqOf")
"""Ways to say which topics are read."""

ENDING_OPTIONS = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp")

WITHOUT_SCHEMA = frozenset({"text"})
WITH_PATH = (*FILE_FORMATS, DELTA)
KNOWN_FORMATS = (
    *WITH_PATH,
    TOPIC_FORMAT,
    "rocketmq-store",
    "console",
    "memory",
    "noop",
    "kafka",
    "rate",
    "socket",
)


def check_definition(definition: Definition, problems: Problems) -> None:
    """Adds all problems that can be found in a definition as a whole."""
    if not definition.sources:
        problems.add(1, "the pipeline has no sources: what shall it read?")
    if not definition.sinks:
        problems.add(1, "the pipeline has no sinks: where shall its rows go?")
    _check_names(definition, problems)
    is_round = _check_cycles(definition, problems)
    for source in definition.sources.values():
        _check_source(source, problems)
        _check_table(definition, source, problems)
    for step in definition.steps.values():
        _check_step(step, problems)
    for sink in definition.sinks.values():
        _check_sink(sink, problems)
        if not is_round:
            _check_flow(definition, sink, problems)
    _check_paths(definition, problems)
    _check_quarantine(definition, problems)
    if not is_round:
        _check_use(definition, problems)
        check_state(definition, problems)


# ---- names and order ---------------------------------------------------------------------------------------------


def _check_names(definition: Definition, problems: Problems) -> None:
    sources, steps = definition.sources, definition.steps
    seen: dict[str, str] = {}
    for one in definition.parts:
        other = seen.setdefault(one.name.lower(), one.name)
        if other is not one.name or (one.name in sources and one.name in steps and isinstance(one, Step)):
            problems.add(
                one.line, f"{one.name} is there twice: names of sources and steps are names of tables"
            )
    for step in steps.values():
        for name, line in _inputs_of(step):
            if not _known(definition, name):
                problems.add(line, f"the step {step.name} reads {_unknown(definition, name)}")
    for sink in definition.sinks.values():
        if sink.input and not _known(definition, sink.input):
            problems.add(sink.line, f"the sink {sink.name} gets rows of {_unknown(definition, sink.input)}")


def _inputs_of(step: Step) -> Iterator[tuple[str, int]]:
    """With the lines where they stand."""
    lines: Mapping[str, int] = {}
    if isinstance(step.work, Sql):
        lines = {table.name: step.work.line + table.line for table in table_names(step.work.text)}
    for name in step.inputs:
        yield name, lines.get(name, step.line)


def _known(definition: Definition, name: str) -> bool:
    return definition.part(name) is not None


def _unknown(definition: Definition, name: str) -> str:
    names = [*definition.sources, *definition.steps]
    near = nearest(name, names)
    hint = f": did you mean {near}?" if near else f"; there are {', '.join(names) or 'none'}"
    return f"{name}, and there is no such source or step{hint}"


def _check_cycles(definition: Definition, problems: Problems) -> bool:
    """Whether there is one; the first that is found is told."""
    try:
        definition.in_order()
    except CycleError as error:
        names: list[str] = error.args[1][::-1]  # found from a step to those that read it
        first = definition.steps[names[0]]
        problems.add(first.line, f"steps read each other in a circle: {' reads '.join(names)}")
        return True
    return False


def _check_use(definition: Definition, problems: Problems) -> None:
    used: set[str] = set()
    for sink in definition.sinks.values():
        used.update(part.name for part in definition.behind(sink.input))
    for one in definition.parts:
        if one.name not in used and definition.sinks and one not in definition.quarantining():
            kind = "source" if isinstance(one, Source) else "step"
            problems.add(one.line, f"no sink gets rows of the {kind} {one.name}", is_warning=True)


# ---- sources, steps and sinks ------------------------------------------------------------------------------------


def _check_source(source: Source, problems: Problems) -> None:
    what = f"the source {source.name}"
    _check_format(source.format, what, source.line, problems)
    if source.format == TOPIC_FORMAT:
        _check_topic_source(source, what, problems)
    elif source.format in WITH_PATH and "path" not in source.options:
        problems.add(source.line, f"{what} needs path: where are its files?")
    if (
        source.is_stream
        and source.format in FILE_FORMATS
        and source.schema is None
        and source.format not in WITHOUT_SCHEMA
    ):
        problems.add(
            source.line, f"{what} is a stream of files and needs schema: id long, name string; or batch: true"
        )


def _check_topic_source(source: Source, what: str, problems: Problems) -> None:
    """By the rules of the source itself."""
    from bolide.pipeline.option_table import Use
    from bolide.pipeline.options import parse_options

    options = dict(source.options)
    if not _has(options, *TOPIC_OPTIONS):
        problems.add(source.line, f"{what} needs topic: which topics, separated by ','?")
        options["subscribe"] = "topic"
    use = Use.STREAM if source.is_stream else Use.BATCH
    _hear(lambda: parse_options(options, use), what, source.line, problems)


def _check_table(definition: Definition, source: Source, problems: Problems) -> None:
    """What Spark knows of a topic that is a table is of the moment when a run first needs it."""
    if source.is_stream or source.format != TOPIC_FORMAT:
        return
    what = f"the source {source.name}"
    if any(name.lower() == "pushfilters" and said.lower() == "true" for name, said in source.options.items()):
        problems.add(
            source.line, f"{what}: pushFilters is for a frame that is used once, and each batch uses a table"
        )
    if _goes_on(definition) and not _has(source.options, *ENDING_OPTIONS):
        problems.add(
            source.line,
            f"{what} is read once in a run (batch: true): what comes to its topic later is for the next run;"
            " endingOffsets: latest says that this is meant",
            is_warning=True,
        )


def _goes_on(definition: Definition) -> bool:
    """Whether a query of it does when all that was there at its start is read: a sink may have a trigger of its own."""
    triggers = {sink.trigger or definition.trigger for sink in definition.sinks.values()}
    if definition.quarantining():
        triggers.add(definition.trigger)
    return bool(triggers - {AVAILABLE_NOW})


def _hear(check: Callable[[], object], what: str, line: int, problems: Problems) -> None:
    try:
        check()
    except ConfigError as error:
        first, *others = str(error).splitlines()
        for text in others or [first]:
            problems.add(line, f"{what}: {text.strip()}")


def _has(options: Mapping[str, str], *names: str) -> bool:
    return any(name.lower() in (wanted.lower() for wanted in names) for name in options)


def _check_step(step: Step, problems: Problems) -> None:
    match step.work:
        case Sql(text=text) if not text.strip():
            problems.add(step.line, f"the step {step.name} has no SQL")
        case Function(code=code) | Stateful(code=code):
            _check_code(step, code, isinstance(step.work, Stateful), problems)


def _check_code(step: Step, code: CodePlace, is_class: bool, problems: Problems) -> None:
    if code.file is None or not code.name:
        return
    try:
        tree = ast.parse(code.file.read_bytes())
    except OSError as error:
        problems.add(step.line, f"the step {step.name}: {code.file} cannot be read: {error.strerror}")
        return
    except (SyntaxError, ValueError) as error:
        where = f" line {error.lineno}" if isinstance(error, SyntaxError) else ""
        problems.add(step.line, f"the step {step.name}: {code.file}{where} is not Python: {error}")
        return
    names = sorted(set(_names_of(tree)))
    if code.name not in names:
        near = nearest(code.name, names)
        hint = f": did you mean {near}?" if near else ""
        kind = "class" if is_class else "function"
        problems.add(step.line, f"the step {step.name}: {code.file} has no {kind} {code.name}{hint}")


def _names_of(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.ImportFrom(names=aliases) | ast.Import(names=aliases):
                yield from (alias.asname or alias.name for alias in aliases)


def _check_sink(sink: Sink, problems: Problems) -> None:
    what = f"the sink {sink.name}"
    _check_place(sink, what, problems)
    if sink.format in WITH_PATH and sink.output_mode != "append":
        problems.add(
            sink.line, f"{what} writes files, which only grow: output is append, not {sink.output_mode}"
        )
    if sink.partition_by and sink.format not in WITH_PATH:
        problems.add(sink.line, f"{what}: partition_by is for files, not for {sink.format}")


def _check_place(place: Sink | Quarantine, what: str, problems: Problems) -> None:
    _check_format(place.format, what, place.line, problems)
    if place.format in WITH_PATH and "path" not in place.options:
        problems.add(place.line, f"{what} needs path: where shall its files be?")
    if place.format == DELTA:
        _check_delta(place, what, problems)
    if place.format == TOPIC_FORMAT:
        _hear(lambda: _check_write(place.options), what, place.line, problems)


def _check_delta(place: Sink | Quarantine, what: str, problems: Problems) -> None:
    _hear(check_library, what, place.line, problems)
    if scheme_of(place.options.get("path", "")):
        problems.add(
            place.line,
            f"{what}: a Delta table is a folder that this machine and Spark's workers see under the same path",
        )
    if others := sorted(set(place.options) - {"path"}):
        problems.add(
            place.line, f"{what}: a Delta table takes no options but path, and not {', '.join(others)}"
        )


def _check_write(options: Mapping[str, str]) -> None:
    """By the rules of the sink itself; which columns there are, nobody knows yet."""
    try:
        from pyspark.sql.types import StringType, StructField, StructType
    except ImportError:
        return
    from bolide.pipeline.option_table import Use
    from bolide.pipeline.write_options import parse_write

    columns = StructType([StructField("body", StringType()), StructField("topic", StringType())])
    parse_write(options, columns, Use.STREAM_WRITE)


def _check_format(kind: str, what: str, line: int, problems: Problems) -> None:
    near = difflib.get_close_matches(kind.lower(), KNOWN_FORMATS, n=1, cutoff=0.75)
    if kind not in KNOWN_FORMATS and near:
        problems.add(line, f"{what} has the format {kind!r}: did you mean {near[0]}?", is_warning=True)


# ---- how they fit together ---------------------------------------------------------------------------------------


def _check_flow(definition: Definition, sink: Sink, problems: Problems) -> None:
    parts = list(definition.behind(sink.input))
    sources = [part for part in parts if isinstance(part, Source)]
    if sources and not any(source.is_stream for source in sources):
        problems.add(
            sink.line,
            f"the sink {sink.name} gets rows of tables alone (batch: true), and a pipeline goes on:"
            " one must be a stream",
        )
    for part in parts:
        if (
            isinstance(part, Step)
            and isinstance(part.work, Stateful)
            and part.work.output_mode != sink.output_mode
        ):
            problems.add(
                sink.line,
                f"the sink {sink.name} has output: {sink.output_mode}, and the step {part.name} behind it"
                f" output: {part.work.output_mode}; they must be the same",
            )


def _check_paths(definition: Definition, problems: Problems) -> None:
    """Two queries that write to one folder break each other's record of what belongs to it."""
    placed: Sequence[tuple[str, Sink]] = sorted(
        (
            (sink.options["path"].rstrip("/"), sink)
            for sink in definition.sinks.values()
            if "path" in sink.options
        ),
        key=lambda pair: (pair[0], pair[1].line),
    )
    for (path, first), (other, second) in pairwise(placed):
        if path == other:
            problems.add(second.line, f"the sinks {first.name} and {second.name} write to one path, {path}")


def _check_quarantine(definition: Definition, problems: Problems) -> None:
    quarantine = definition.quarantine
    if quarantine is not None:
        _check_place(quarantine, "the quarantine", problems)
        if quarantine.format == TOPIC_FORMAT and not _has(quarantine.options, "topic"):
            problems.add(quarantine.line, "the quarantine needs topic or path: where shall its rows go?")
        if not definition.quarantining():
            problems.add(quarantine.line, "no expectation sends rows to the quarantine", is_warning=True)
        return
    for one in definition.quarantining():
        expected = next(item for item in one.expectations if item.action is Action.QUARANTINE)
        problems.add(
            expected.line,
            f"the expectation {expected.name} sends rows to a quarantine, and there is none:"
            " quarantine: {path: quarantine}",
        )
