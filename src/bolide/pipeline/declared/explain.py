"""What a pipeline is to Spark: its parts with their columns, and the plan of every query.  Nothing is read."""

from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from bolide.pipeline.declared.build import build
from bolide.pipeline.declared.definition import Dedup, Definition, Join, Source

NO_PLAN = "Spark shows the plan of a join of streams only while it runs"


@dataclass(frozen=True)
class Explained:
    kind: str
    """source, step, sink or quarantine."""
    name: str
    inputs: Sequence[str]
    columns: Mapping[str, str]
    plan: str = ""
    """Of a sink: how Spark will go about it."""
    what: str = ""
    """Of a step that keeps state of rows: of which, and for how long."""


def explain(spark: SparkSession, definition: Definition) -> Sequence[Explained]:
    """In the order in which rows go; `ConfigError` says what Spark does not understand, and where it stands."""
    built = build(spark, definition)
    parts = [
        Explained("source", part.name, (), _columns(built.frames[part.name]))
        if isinstance(part, Source)
        else Explained(
            "step",
            part.name,
            tuple(part.inputs),
            _columns(built.frames[part.name]),
            what=str(part.work) if isinstance(part.work, Dedup | Join) else "",
        )
        for part in definition.in_order()
    ]
    return parts + [
        Explained(
            "sink" if query.name in definition.sinks else "quarantine",
            query.name,
            (query.sink.input,),
            _columns(query.frame) if query.name not in definition.sinks else {},
            _plan(query.frame),
        )
        for query in built.queries
    ]


def _columns(frame: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in frame.schema}


def _plan(frame: DataFrame) -> str:
    shown = StringIO()
    try:
        with redirect_stdout(shown):
            frame.explain()
    except AnalysisException:
        return NO_PLAN
    return shown.getvalue()
