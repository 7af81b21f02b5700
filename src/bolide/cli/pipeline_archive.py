"""`bolide pipeline archive`: topics to files, every message once.  The work is in `bolide.pipeline.archive`."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bolide.cli import complete
from bolide.cli.access import cluster_at
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, Nameserver
from bolide.cli.outcome import ExitCode
from bolide.cli.output import counted, say, write_json, write_line, write_table
from bolide.cli.settings import parse_assignments
from bolide.cli.spans import format_bytes
from bolide.cli.spark_run import Master, SparkSettings, stop_signals
from bolide.model.errors import ConfigError
from bolide.model.limit import MIB
from bolide.model.names import check_topic

if TYPE_CHECKING:
    from bolide.pipeline.archive.place import Place
    from bolide.pipeline.archive.run import Done
    from bolide.pipeline.archive.wanted import Wanted
    from bolide.pipeline.declared.checkpoint import Checkpoint
    from bolide.pipeline.declared.run import Stop

Topics = Annotated[
    list[str],
    typer.Argument(metavar="TOPIC...", help="Which topics.", autocompletion=complete.topics),
]


To = Annotated[
    str, typer.Option("--to", metavar="DIR", help="The archive: a new folder, or one that goes on.")
]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="parquet|delta", help="Of a new archive; parquet unless given."),
]
Once = Annotated[
    bool, typer.Option("--once", help="Archive all that is there now, then end; else until told to stop.")
]
TRIGGER = "1 minute"
FILE_MIB = 128

Trigger = Annotated[
    str | None,
    typer.Option(
        "--trigger",
        metavar="SPAN",
        help="How often a batch begins: '10 seconds', '5 minutes'.",
        show_default=TRIGGER,
    ),
]
Compact = Annotated[
    bool, typer.Option("--compact", help="Make few large files of the small ones of days that are over.")
]
FileMib = Annotated[
    int | None,
    typer.Option(
        "--file-size",
        metavar="MIB",
        min=1,
        help="How large compacted files shall be.",
        show_default=str(FILE_MIB),
    ),
]
BatchMib = Annotated[
    int, typer.Option("--batch-size", metavar="MIB", min=1, help="About how much a batch takes at most.")
]
AllowGaps = Annotated[
    bool, typer.Option("--allow-gaps", help="Go on when messages have expired before they were archived.")
]
CheckpointPlace = Annotated[
    str | None,
    typer.Option("--checkpoint", metavar="DIR", help="Of Spark's stream, instead of DIR/checkpoint."),
]


def archive(
    topics: Topics,
    to: To,
    format_: Format = None,
    once: Once = False,
    trigger: Trigger = None,
    compact: Compact = False,
    file_mib: FileMib = None,
    batch_mib: BatchMib = 1024,
    allow_gaps: AllowGaps = False,
    checkpoint: CheckpointPlace = None,
    master: Master = "local[*]",
    spark_settings: SparkSettings = None,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Keep topics as Parquet or Delta, by date and topic, every message exactly once, with a manifest that proves it.

    Ctrl-C and SIGTERM let the batch in hand end; a second one does not wait.  The next run goes on from there, and
    finishes what a killed one has begun.  [bold]bolide pipeline audit[/bold] holds an archive against its topics.

    [bold]Examples[/bold]

        bolide pipeline archive orders --to /archive/orders
        bolide pipeline archive orders payments --to /archive/shop --once --compact
        bolide pipeline archive orders --to /archive/lake --format delta --trigger '5 minutes'
    """
    from bolide.pipeline.archive.place import open_or_make
    from bolide.pipeline.archive.wanted import Wanted
    from bolide.pipeline.declared.checkpoint import Checkpoint
    from bolide.pipeline.declared.fields import parse_span
    from bolide.pipeline.declared.run import Stop

    names = unique_topics(topics)
    if once and trigger is not None:
        raise ConfigError("--once reads what is there and ends, so --trigger has no use: give one of them")
    if file_mib is not None and not compact:
        raise ConfigError("--file-size is for --compact: give both, or neither")
    span = parse_span(trigger or TRIGGER)
    if span is None:
        raise ConfigError(f"--trigger: {trigger!r} is no span of time; 10 seconds is one")
    settings = parse_assignments(spark_settings or (), "--spark")
    _check_place(to, format_)
    cluster = cluster_at(nameserver)
    wanted = Wanted(
        names,
        cluster,
        span,
        once=once,
        allow_gaps=allow_gaps,
        batch_bytes=batch_mib * MIB,
        target_bytes=(file_mib or FILE_MIB) * MIB if compact else None,
    )
    asyncio.run(wanted.ends())  # are they there?  Spark takes long to say no
    place = open_or_make(to, format_)
    kept = Checkpoint.at(checkpoint or str(place.folder / "checkpoint"), Path.cwd())
    stop = Stop()
    done = _run(place, kept, wanted, stop, master, settings)
    _tell(place, done, as_json=as_json)
    if stop.is_at_once or (once and stop.is_asked):  # whoever asked for all of it did not get that
        raise typer.Exit(ExitCode.INTERRUPTED)


def _run(
    place: "Place",
    checkpoint: "Checkpoint",
    wanted: "Wanted",
    stop: "Stop",
    master: str,
    settings: Mapping[str, str],
) -> "Done":
    from bolide.cli.pipeline_progress import Display
    from bolide.net.clock import SystemClock
    from bolide.pipeline.declared.run import Watch
    from bolide.pipeline.session import for_messages, session_for

    say(f"starting Spark ({master}); {place.format.capitalize()} in {place.folder}")
    with session_for("bolide archive", master=master, settings={**for_messages(master), **settings}) as spark:
        from bolide.pipeline.archive.run import run_archive  # not before PySpark is known to be there

        with stop_signals(stop), Display(None) as display:
            watch = Watch(
                started=lambda: say(f"archiving {counted(len(wanted.topics), 'topic')}; Ctrl-C ends it"),
                progress=display.show,
            )
            return run_archive(
                spark, place, checkpoint, wanted, now_ms=SystemClock().now_ms, stop=stop, watch=watch
            )


def unique_topics(topics: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(check_topic(topic) for topic in topics))


def _check_place(to: str, format_: str | None) -> None:
    """Before anything is made."""
    from bolide.pipeline.archive.place import DELTA, FORMATS, HEAD, folder_of, open_place
    from bolide.pipeline.delta_log import check_library

    if format_ is not None and format_ not in FORMATS:
        raise ConfigError(f"--format is one of {', '.join(FORMATS)}, not {format_!r}")
    if (folder_of(to) / HEAD).exists():
        place = open_place(to)
        place.check_free()
        format_ = place.format
    if format_ == DELTA:
        check_library()


def _tell(place: "Place", done: "Done", *, as_json: bool) -> None:
    compacted = done.compacted
    if as_json:
        write_json(
            {
                "archive": str(place.folder),
                "format": place.format,
                "topics": {
                    topic: {"rows": one.rows, "files": one.files, "bytes": one.size_bytes}
                    for topic, one in sorted(done.added.items())
                },
                "compacted": None
                if compacted is None
                else {
                    "partitions": compacted.partitions,
                    "files_before": compacted.files_before,
                    "files_after": compacted.files_after,
                },
            }
        )
        return
    if done.added:
        write_table(
            ("TOPIC", "ROWS", "FILES", "SIZE"),
            [
                (topic, one.rows, one.files, format_bytes(one.size_bytes))
                for topic, one in sorted(done.added.items())
            ],
        )
    rows = sum(one.rows for one in done.added.values())
    write_line(f"{counted(rows, 'row')} archived in {place.data}")
    if compacted is not None:
        write_line(
            f"{counted(compacted.partitions, 'partition')} compacted:"
            f" {counted(compacted.files_before, 'file')} became {compacted.files_after}"
        )
