"""`bolide pipeline …`: pipelines that are declared in one file, on Spark.

What is declared, checked and run is in `bolide.pipeline.declared`; here are words, tables and signals.
"""

import asyncio
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.cli.access import access
from bolide.cli.options import AsJson
from bolide.cli.outcome import ExitCode, Refused, exit_code_of
from bolide.cli.output import counted, say, write_json, write_line, write_table
from bolide.cli.pipeline_archive import archive
from bolide.cli.pipeline_audit import audit
from bolide.cli.pipeline_dlq import app as dlq_app
from bolide.cli.pipeline_recipes import dedup, join
from bolide.cli.pipeline_replay import replay
from bolide.cli.pipeline_running import counts_of, run_definition
from bolide.cli.pipeline_stats import stats
from bolide.cli.settings import parse_assignments
from bolide.cli.since import format_moment
from bolide.cli.spans import format_span
from bolide.cli.spark_run import Master, SparkSettings
from bolide.model.errors import ConfigError

if TYPE_CHECKING:
    from bolide.pipeline.declared.definition import Definition, Problem
    from bolide.pipeline.declared.files import Loaded
    from bolide.pipeline.declared.status import PipelineStatus, QueryStatus

DEFAULT_FILE = "pipeline.yaml"

app = typer.Typer(
    help="Declare, check and run data pipelines on Spark.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

File = Annotated[Path, typer.Argument(metavar="[FILE]", help="The definition, in YAML or Python.")]
CheckpointPlace = Annotated[
    str | None,
    typer.Option("--checkpoint", metavar="DIR", help="Where a restart goes on from, instead of the file's."),
]


@app.command()
def init(
    file: File = Path(DEFAULT_FILE),
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Of the pipeline; the file's unless given.")
    ] = None,
) -> None:
    """Write a pipeline to begin with: it runs as it is, and its comments explain it.

    [bold]Examples[/bold]

        bolide pipeline init
        bolide pipeline init orders.py
    """
    from bolide.pipeline.declared.example import PYTHON, YAML
    from bolide.pipeline.declared.files import YAML_SUFFIXES

    if file.suffix not in (*YAML_SUFFIXES, ".py"):
        raise ConfigError(f"{file} is neither YAML ({', '.join(YAML_SUFFIXES)}) nor Python (.py)")
    text = (PYTHON if file.suffix == ".py" else YAML).format(file=file, name=name or file.stem)
    try:
        with file.open("x") as new:
            new.write(text)
    except FileExistsError as error:
        raise Refused(f"{file} is there already, and is left as it is") from error
    say(
        f"{file} is written; `bolide pipeline check {file}` looks at it, `bolide pipeline run {file}` runs it"
    )


@app.command()
def check(file: File = Path(DEFAULT_FILE), as_json: AsJson = False) -> None:
    """Find what is wrong with a pipeline, with lines.  Needs no server, and does not start Spark.

    What only Spark knows, columns and types, [bold]bolide pipeline explain[/bold] finds.

    [bold]Examples[/bold]

        bolide pipeline check orders.yaml
    """
    from bolide.pipeline.declared.files import load

    loaded = load(file)
    if as_json:
        write_json(
            {
                "file": str(file),
                "problems": [dataclasses.asdict(problem) for problem in loaded.problems],
            }
        )
    else:
        for problem in loaded.problems:
            write_line(_told(file, problem))
        if not loaded.errors:
            assert loaded.definition is not None
            write_line(f"{file} is sound: {counts_of(loaded.definition)}")
    if loaded.errors:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def explain(
    file: File = Path(DEFAULT_FILE),
    master: Master = "local[*]",
    spark_settings: SparkSettings = None,
    plan: Annotated[bool, typer.Option("--plan", help="Spark's plan of every query, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a pipeline is: every step with its inputs and columns, as Spark understands it.  Reads no message.

    [bold]Examples[/bold]

        bolide pipeline explain orders.yaml
        bolide pipeline explain orders.yaml --plan
    """
    from bolide.pipeline.declared.explain import explain as explained
    from bolide.pipeline.declared.run import session_of

    definition = _sound(file, spark_settings)
    with session_of(definition, master) as spark:
        found = explained(spark, definition)
    if as_json:
        write_json([dataclasses.asdict(part) for part in found])
        return
    for part in found:
        write_line(f"{part.kind} {part.name}" + (f" from {', '.join(part.inputs)}" if part.inputs else ""))
        if part.what:
            write_line(f"  {part.what}")
        for column, kind in part.columns.items():
            write_line(f"  {column}: {kind}")
        if plan and part.plan:
            for line in part.plan.rstrip().splitlines():
                write_line(f"  {line}")


@app.command()
def run(
    file: File = Path(DEFAULT_FILE),
    once: Annotated[
        bool, typer.Option("--once", help="Read all that is there now, then end; else until told to stop.")
    ] = False,
    master: Master = "local[*]",
    checkpoint: CheckpointPlace = None,
    spark_settings: SparkSettings = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="A line of JSON for every batch, on stdout.")
    ] = False,
) -> None:
    """Run a pipeline until it is told to stop, or with --once until all is read.

    Ctrl-C and SIGTERM let the batch in hand end; a second one does not wait.  The next run goes on from there.

    [bold]Examples[/bold]

        bolide pipeline run orders.yaml
        bolide pipeline run orders.yaml --once
        bolide pipeline run orders.yaml --master spark://host:7077 --spark spark.executor.memory=4g
    """
    definition = _sound(file, spark_settings)
    run_definition(definition, once=once, master=master, checkpoint=checkpoint, as_json=as_json)


@app.command()
def status(
    file: File = Path(DEFAULT_FILE),
    checkpoint: CheckpointPlace = None,
    queues: Annotated[bool, typer.Option("--queues", help="Every queue by itself.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell how far a pipeline has come: its state, its last batch, and how far it is behind its topics.

    Ends with 1 when it has failed or was killed, with 3 when no broker says how far it is behind.

    [bold]Examples[/bold]

        bolide pipeline status orders.yaml
        bolide pipeline status orders.yaml --queues
    """
    from bolide.net.clock import SystemClock
    from bolide.pipeline.declared.checkpoint import Checkpoint
    from bolide.pipeline.declared.status import pipeline_status

    definition = _sound(file, None)
    found = asyncio.run(pipeline_status(definition, Checkpoint.of(definition, checkpoint)))
    now_ms = SystemClock().now_ms()
    if as_json:
        write_json(_status_json(found, now_ms))
    else:
        _write_status(found, now_ms, queues)
    for query in found.queries:
        if query.unknown is not None:
            say(f"{query.name}: {query.unknown}")
    raise typer.Exit(_status_code(found))


# ---- what commands share -----------------------------------------------------------------------------------------


def _sound(file: Path, spark_settings: Sequence[str] | None) -> "Definition":
    """The definition of a file without errors; otherwise all of them are told, and nothing is done."""
    from bolide.pipeline.declared.access import with_access
    from bolide.pipeline.declared.files import load

    loaded: Loaded = load(file)
    for problem in loaded.problems:
        say(_told(file, problem))
    if loaded.errors or loaded.definition is None:
        raise ConfigError(f"{file} has {counted(len(loaded.errors), 'error')}, so nothing was started")
    settings = {**loaded.definition.settings, **parse_assignments(spark_settings or (), "--spark")}
    return with_access(dataclasses.replace(loaded.definition, settings=settings), access())


def _told(file: Path, problem: "Problem") -> str:
    return f"{file}:{problem.line}: {'warning: ' if problem.is_warning else ''}{problem.text}"


# ---- status ------------------------------------------------------------------------------------------------------


def _status_code(found: "PipelineStatus") -> ExitCode:
    """What is known of the pipeline counts before what nobody could say about its topics."""
    codes = {exit_code_of(query.unknown) for query in found.queries if query.unknown is not None}
    if found.is_broken:
        return ExitCode.FAILED
    return ExitCode.UNREACHABLE if ExitCode.UNREACHABLE in codes else max(codes, default=ExitCode.OK)


def _write_status(found: "PipelineStatus", now_ms: int, queues: bool) -> None:
    write_line(f"{found.name}: {found.state}{_since(found, now_ms)}")
    if found.error and found.state == "failed":
        write_line(f"  {found.error}")
    if found.queries:
        write_line()
        write_table(
            ("SINK", "BATCH", "PLANNED", "IN HAND", "BEHIND", "WAITING"),
            [_status_row(query, now_ms) for query in found.queries],
        )
    if queues and any(query.lags for query in found.queries):
        write_line()
        _write_queues(found.queries, now_ms)


def _since(found: "PipelineStatus", now_ms: int) -> str:
    moment_ms = found.started_ms if found.state == "running" else found.ended_ms
    return (
        "" if moment_ms is None else f" since {format_moment(moment_ms)} ({format_span(now_ms - moment_ms)})"
    )


def _status_row(query: "QueryStatus", now_ms: int) -> Sequence[object]:
    return (
        query.name,
        "-" if query.done is None else query.done.number,
        "-" if query.done is None else format_moment(query.done.planned_ms),
        "-" if query.in_hand is None else query.in_hand,
        query.behind if query.lags else "-",
        format_span(query.waits_ms(now_ms)) if query.behind else "-",
    )


def _write_queues(queries: "Sequence[QueryStatus]", now_ms: int) -> None:
    write_table(
        ("SINK", "TOPIC", "BROKER", "QUEUE", "OFFSET", "END", "BEHIND", "WAITING"),
        [
            (
                query.name,
                lag.queue.topic,
                lag.queue.broker_name,
                lag.queue.queue_id,
                lag.offset,
                lag.end,
                lag.behind,
                format_span(lag.waits_ms(now_ms)) if lag.behind else "-",
            )
            for query in queries
            for lag in query.lags
        ],
    )


def _status_json(found: "PipelineStatus", now_ms: int) -> dict[str, Any]:
    return {
        "name": found.name,
        "state": found.state,
        "error": found.error,
        "started_ms": found.started_ms,
        "ended_ms": found.ended_ms,
        "queries": [
            {
                "name": query.name,
                "batch": None if query.done is None else query.done.number,
                "planned_ms": None if query.done is None else query.done.planned_ms,
                "in_hand": query.in_hand,
                "behind": query.behind if query.lags else None,
                "waits_ms": query.waits_ms(now_ms) if query.lags else None,
                "queues": [
                    {
                        "topic": lag.queue.topic,
                        "broker": lag.queue.broker_name,
                        "queue": lag.queue.queue_id,
                        "offset": lag.offset,
                        "end": lag.end,
                        "behind": lag.behind,
                        "waits_ms": lag.waits_ms(now_ms),
                    }
                    for lag in query.lags
                ],
                "unknown": None if query.unknown is None else str(query.unknown),
            }
            for query in found.queries
        ],
    }


# ---- ready-made pipelines ------------------------------------------------------------------------------------------

for command in (archive, audit, replay, stats, dedup, join):
    app.command()(command)
app.add_typer(dlq_app, name="dlq")
