"""`bolide store …`: look into a store directory, check it, repair it, take its messages out.  No broker is needed."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bolide.cli.options import AsJson
from bolide.cli.outcome import ExitCode
from bolide.cli.output import counted, read_or_not, say, write_json, write_json_line, write_line
from bolide.cli.progress import progress_bar
from bolide.cli.since import parse_since
from bolide.model.errors import ConfigError, NothingFound

if TYPE_CHECKING:
    from bolide.offline.verify import Examination

app = typer.Typer(
    help="Look into a store directory, check it, repair it, take its messages out.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Directory = Annotated[
    Path, typer.Argument(metavar="DIR", help="The store: where commitlog and consumequeue are.")
]
Topic = Annotated[str | None, typer.Option("--topic", "-t", metavar="TOPIC", help="Only this topic.")]


@app.command()
def inspect(
    directory: Directory,
    topic: Topic = None,
    count: Annotated[bool, typer.Option("--count", help="Read the whole log and count its records.")] = False,
    as_json: AsJson = False,
) -> None:
    """What is in a store: log, topics, queues, groups with their lag, index files, tables.

    Reads little of a large store, so it is quick; whether all is sound is told by
    [bold]bolide store verify[/bold].

    [bold]Examples[/bold]

        bolide store inspect ~/.bolide/data
        bolide store inspect /var/lib/rocketmq/store --topic orders --json
    """
    from bolide.cli.store_survey import print_survey, survey_as_json
    from bolide.offline.survey import count_records, survey
    from bolide.store.disk_os import OsDisk

    found = survey(OsDisk(), str(directory.expanduser()), topic=topic)
    if topic is not None and not found.queues:
        raise NothingFound(f"{found.root} has no queue of the topic {topic!r}; leave out --topic to see all")
    counts = None
    if count:
        total = len(found.segments) * found.segment_bytes
        with progress_bar("counting", total) as watch:
            counts = count_records(OsDisk(), found.root, progress=watch)
    if as_json:
        write_json(survey_as_json(found, counts))
    else:
        print_survey(found, counts)


@app.command()
def verify(directory: Directory, as_json: AsJson = False) -> None:
    """Check everything in a store and name each damage with its place and what follows from it.

    Reads all records, queue entries, index entries and tables; changes nothing and
    goes on behind damage. What an unclean stop leaves behind is normal and told as
    a note. Exit code 0 when the store is sound, 1 when it is damaged. With --json
    one line per finding and a summary.

    [bold]Examples[/bold]

        bolide store verify ~/.bolide/data
    """
    from bolide.offline.verify import size_to_verify
    from bolide.offline.verify import verify as examine
    from bolide.store.disk_os import OsDisk

    root = str(directory.expanduser())
    with progress_bar("checking", size_to_verify(OsDisk(), root)) as watch:
        found = examine(OsDisk(), root, progress=watch)
    with read_or_not():
        print_examination(found, root, as_json=as_json)
    if not found.is_sound:
        raise typer.Exit(ExitCode.FAILED)


@app.command()
def repair(
    directory: Directory,
    apply: Annotated[bool, typer.Option("--apply", help="Do it. Without this nothing is written.")] = False,
) -> None:
    """Tell what can be done about a damaged store; with --apply, do it.

    Damage in the middle of the log cannot be undone: it is bridged, so that everything
    behind it stays readable and consumers pass over what is lost. Queues and index files
    are made again from the log, damaged tables get their .bak back. Everything that is
    replaced is kept in DIR/repair-TIME. Refused with code 1 while a broker runs on the
    store. Exit code 1 when damage is left.

    [bold]Examples[/bold]

        bolide store repair ~/.bolide/data
        bolide store repair ~/.bolide/data --apply
    """
    from bolide.net.clock import SystemClock
    from bolide.offline.repair import Repair
    from bolide.offline.verify import size_to_verify
    from bolide.offline.verify import verify as examine
    from bolide.store.disk_os import OsDisk

    root = str(directory.expanduser())
    total = size_to_verify(OsDisk(), root)
    with progress_bar("checking", total) as watch:
        plan = Repair(OsDisk(), root, SystemClock(), watch)
    try:
        with read_or_not():
            for step in plan.steps:
                write_line(f"{step.file}: {step.what}")
        if not apply or not plan.steps:
            _say_plan(len(plan.steps), len(plan.found.findings.damages))
            if not plan.found.is_sound:
                raise typer.Exit(ExitCode.FAILED)
            return
        say(f"done; what was replaced is in {plan.apply()}")
    finally:
        plan.close()
    with progress_bar("checking again", total) as watch:
        found = examine(OsDisk(), root, progress=watch)
    print_examination(found, root, as_json=False)
    if not found.is_sound:
        raise typer.Exit(ExitCode.FAILED)


def _say_plan(steps: int, damages: int) -> None:
    if steps:
        say(f"nothing was written; --apply takes {'this step' if steps == 1 else f'these {steps} steps'}")
    elif damages:
        say("nothing can be done about this damage; `bolide store verify` names it")
    else:
        say("the store is sound: there is nothing to repair")


@app.command()
def export(
    directory: Directory,
    topic: Topic = None,
    queue: Annotated[int | None, typer.Option("--queue", min=0, metavar="N", help="Only this queue.")] = None,
    since: Annotated[
        str, typer.Option("--since", metavar="WHEN", help="Stored from then on: a span like 2h, an ISO time.")
    ] = "beginning",
    until: Annotated[str, typer.Option("--until", metavar="WHEN", help="Stored before that.")] = "end",
    form: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help="jsonl or parquet.")
    ] = "jsonl",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Instead of standard output.")
    ] = None,
) -> None:
    """Messages of a store as JSON lines or Parquet, in the order in which they were stored.

    The columns are those of the Spark source. In JSON lines a body that is UTF-8 text
    is in "body", any other in "body_base64"; [bold]bolide send --json[/bold] reads both.
    Exit code 1 when a part of the log was unreadable and had to be left out.

    [bold]Examples[/bold]

        bolide store export ~/.bolide/data --topic orders --since 2h
        bolide store export ~/.bolide/data --format parquet -o orders.parquet
    """
    from bolide.cli.store_export import run_export
    from bolide.net.clock import SystemClock
    from bolide.offline.export import TIME_MS_MAX, Selection

    if form not in ("jsonl", "parquet"):
        raise ConfigError(f"--format is jsonl or parquet, not {form[:16]!r}")
    if form == "parquet" and output is None:
        raise ConfigError("Parquet is no text for a terminal or a pipe: name a file with -o")
    now_ms = SystemClock().now_ms()
    begin, end = parse_since(since, now_ms), parse_since(until, now_ms)
    selection = Selection(
        topic, queue, now_ms if begin is None else begin, TIME_MS_MAX if end is None else end
    )
    run_export(str(directory.expanduser()), selection, form, output)


def print_examination(found: "Examination", root: str, *, as_json: bool) -> None:
    damages = found.findings.damages
    if as_json:
        summary = {
            "kind": "summary",
            "sound": found.is_sound,
            "damages": len(damages),
            "records": found.records,
            "queue_entries": found.entries,
            "index_entries": found.index_entries,
            "log_start": found.log_start,
            "log_end": found.log_end,
        }
        for members in [*(finding.as_json() for finding in found.findings), summary]:
            write_json_line(members)
        return
    for damage in damages:
        write_line(f"DAMAGE {damage.file} at {damage.at}: {damage.what}")
        write_line(f"       {damage.consequence}")
    for note in found.findings.notes:
        write_line(f"note   {note.file}: {note.text}")
    looked = (
        f"{found.records} records, {found.entries} queue entries and {found.index_entries} index entries"
        f" in {found.log_end - found.log_start} bytes of log"
    )
    write_line(
        f"sound: {looked}" if found.is_sound else f"damaged in {counted(len(damages), 'place')}: {looked}"
    )
    if not found.is_sound:
        say(f"`bolide store repair {shlex.quote(root)}` tells what can be done about it")
