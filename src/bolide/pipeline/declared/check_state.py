"""What is wrong with steps that keep state of rows, duplicates and joins: found without Spark, as all of `check.py` is.

The rules are Spark's.  It would say most of this, too, but only when the query starts and not in the words of the file.
"""

from bolide.pipeline.declared.definition import (
    Action,
    Dedup,
    Definition,
    Join,
    Source,
    Stateful,
    Step,
    span_ms,
)
from bolide.pipeline.declared.fields import Problems
from bolide.pipeline.declared.lateness import is_same, said_behind, wanted_of


def check_state(definition: Definition, problems: Problems) -> None:
    """Of a definition whose steps read each other in some order."""
    for step in definition.steps.values():
        if isinstance(step.work, Dedup | Join):
            _check_spans(step, step.work, problems)
            _check_sides(step, problems)
            for name in step.inputs:
                _check_input(definition, step, name, problems)
            _check_lateness(definition, step, step.work, problems)
    _check_output(definition, problems)
    _check_quarantine(definition, problems)


def _check_spans(step: Step, work: Dedup | Join, problems: Problems) -> None:
    if work.within.split()[:1] == ["0"]:
        problems.add(step.line, f"the step {step.name}: within is no time at all; 10 minutes is one")
    if isinstance(work, Dedup) and work.late is not None and span_ms(work.late) < span_ms(work.within):
        problems.add(
            step.line,
            f"the step {step.name}: late is {work.late}, and is within or longer ({work.within}): duplicates are"
            " known for as long as rows may come late",
        )


def _check_sides(step: Step, problems: Problems) -> None:
    names = [name.lower() for name in step.inputs]
    if len(set(names)) != len(names):
        problems.add(
            step.line,
            f"the step {step.name} joins {step.inputs[0]} with itself: declare a second source of the same rows",
        )


def _check_input(definition: Definition, step: Step, name: str, problems: Problems) -> None:
    behind = list(definition.behind(name))
    sources = [part for part in behind if isinstance(part, Source)]
    if sources and not any(source.is_stream for source in sources):
        instead = (
            "join it in a step with sql" if isinstance(step.work, Join) else "SELECT DISTINCT is for tables"
        )
        problems.add(
            step.line,
            f"the step {step.name} keeps state of streams, and {name} is a table (batch: true): {instead}",
        )
    for part in behind:
        if isinstance(part, Step) and isinstance(part.work, Join | Stateful):
            problems.add(
                step.line,
                f"the step {step.name} keeps state of rows of {part.name}, which keeps state itself:"
                " let that one write to a topic or files, and read these in another pipeline",
            )


def _check_lateness(definition: Definition, step: Step, work: Dedup | Join, problems: Problems) -> None:
    for name, wanted in zip(step.inputs, wanted_of(work), strict=False):
        for part, said in said_behind(definition, name):
            if not is_same(work, wanted, said):
                kind = "source" if isinstance(part, Source) else "step"
                problems.add(
                    step.line,
                    f"the step {step.name} has rows up to {wanted.delay} late by {wanted.column}, and the {kind}"
                    f" {part.name} behind it {said.delay} by {said.column}: say the same, or leave it to one",
                )


def _check_output(definition: Definition, problems: Problems) -> None:
    for sink in definition.sinks.values():
        for part in definition.behind(sink.input):
            if (
                isinstance(part, Step)
                and isinstance(part.work, Dedup | Join)
                and sink.output_mode != "append"
            ):
                problems.add(
                    sink.line,
                    f"the sink {sink.name} has output: {sink.output_mode}, and the step {part.name} behind it"
                    " gives rows once and for all: output is append",
                )


def _check_quarantine(definition: Definition, problems: Problems) -> None:
    """A quarantine is a query of its own.

    Of two rows that say the same, its state may have the good one and the sink's the bad one: neither is written.
    """
    for one in definition.quarantining():
        keeping = [
            part
            for part in definition.behind(one.name)
            if isinstance(part, Step) and isinstance(part.work, Dedup | Join | Stateful)
        ]
        if keeping:
            which = "which" if keeping[0] is one else f"and {keeping[0].name} behind it"
            expected = next(item for item in one.expectations if item.action is Action.QUARANTINE)
            problems.add(
                expected.line,
                f"the expectation {expected.name} puts rows of the step {one.name} aside, {which} keeps state:"
                " the quarantine has its own, and a row may end in neither place;"
                " expect it of the source, or in a step before",
            )
