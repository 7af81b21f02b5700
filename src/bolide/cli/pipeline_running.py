"""A pipeline that runs in this command: Spark is started, its progress shown, and signals end it in order."""

import asyncio
from typing import TYPE_CHECKING

import typer

from bolide.cli.outcome import ExitCode
from bolide.cli.output import counted, say, write_json_line
from bolide.cli.spark_run import stop_signals

if TYPE_CHECKING:
    from bolide.pipeline.declared.definition import Definition


def run_definition(
    definition: "Definition", *, once: bool, master: str, checkpoint: str | None, as_json: bool
) -> None:
    """Until it is told to stop, or with `once` until all is read."""
    from bolide.cli.pipeline_progress import Display
    from bolide.net.clock import SystemClock
    from bolide.pipeline.declared.checkpoint import Checkpoint
    from bolide.pipeline.declared.reach import check_topics
    from bolide.pipeline.declared.run import Stop, Watch, run, session_of

    place = Checkpoint.of(definition, checkpoint)
    place.check_free()
    if place.folder is not None and not place.queries():  # one that goes on knows its queues
        asyncio.run(check_topics(definition))
    say(f"{definition.name}: starting Spark ({master}); checkpoints in {place.location}")
    stop = Stop()
    with session_of(definition, master) as spark, stop_signals(stop), Display(definition) as display:
        watch = Watch(
            started=lambda: say(f"{definition.name}: {counts_of(definition)}; Ctrl-C ends it"),
            progress=display.show,
            batch=lambda query, report: write_json_line({"query": query, **report}) if as_json else None,
        )
        queries = run(
            definition, spark, place, now_ms=SystemClock().now_ms, once=once, stop=stop, watch=watch
        )
    display.tell_end(queries)
    if stop.is_at_once:
        raise typer.Exit(ExitCode.INTERRUPTED)


def counts_of(definition: "Definition") -> str:
    kinds = (("source", definition.sources), ("step", definition.steps), ("sink", definition.sinks))
    return ", ".join(counted(len(parts), kind) for kind, parts in kinds)
