"""`bolide pipeline audit`: is what is stored, archived and consumed the same?  `bolide.pipeline.archive` finds out."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.cli import complete
from bolide.cli.access import cluster_at
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, Nameserver
from bolide.cli.outcome import ExitCode
from bolide.cli.output import counted, read_or_not, say, write_json, write_line, write_table
from bolide.cli.pipeline_archive import unique_topics
from bolide.cli.settings import parse_assignments
from bolide.cli.spark_run import Master, SparkSettings
from bolide.model.errors import ConfigError, NothingFound
from bolide.model.names import check_group

if TYPE_CHECKING:
    from bolide.pipeline.access import ClusterAccess
    from bolide.pipeline.archive.audit import Stored
    from bolide.pipeline.archive.compare import Audit, QueueAudit
    from bolide.pipeline.archive.manifest import State
    from bolide.pipeline.archive.place import Place
    from bolide.pipeline.archive.spans import Span

LOOKS_MAX = 3
"""An archive that is written to meanwhile looks wrong; a sound one does not, again and again."""


Topics = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[TOPIC]...",
        help="Which topics; all of the archive, unless named.",
        autocompletion=complete.topics,
    ),
]
ArchivePlace = Annotated[
    str | None, typer.Option("--archive", metavar="DIR", help="Made by `bolide pipeline archive`.")
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group", metavar="GROUP", help="Who should have consumed it.", autocompletion=complete.groups
    ),
]
Deep = Annotated[
    bool,
    typer.Option("--deep", help="Read the topics too, and compare every message that is still stored."),
]
Deleted = Annotated[
    list[str] | None,
    typer.Option(
        "--deleted",
        metavar="TOPIC",
        help="An archived topic that no broker need have any more; may be given often.",
    ),
]


def audit(
    topics: Topics = None,
    archive: ArchivePlace = None,
    group: Group = None,
    deep: Deep = False,
    deleted: Deleted = None,
    master: Master = "local[*]",
    spark_settings: SparkSettings = None,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Tell for every queue whether stored = archived = consumed; the gaps are listed, and the exit code is 1.

    Counts and checksums of the archive's files are computed anew and held against its manifest, the manifest against
    the offsets of the brokers, and these against a group's.  Nothing is changed.

    [bold]Examples[/bold]

        bolide pipeline audit orders --archive /archive/orders
        bolide pipeline audit orders --archive /archive/orders --group billing --deep
        bolide pipeline audit orders --group billing
        bolide pipeline audit --archive /archive/shop --deleted old-orders
    """
    if archive is None and group is None:
        raise ConfigError("--archive, --group or both say what stored messages are compared with")
    if archive is None and (deep or not topics):
        raise ConfigError("without --archive give topics to compare with the group, and no --deep")
    if archive is None and deleted:
        raise ConfigError("--deleted is about archived topics: give --archive too, or leave it out")
    if group is not None:
        check_group(group)
    wanted, cluster = unique_topics(topics or ()), cluster_at(nameserver)
    if archive is None:
        found = _offsets_alone(cluster, wanted, group)
    else:
        settings = parse_assignments(spark_settings or (), "--spark")
        gone = unique_topics(deleted or ())
        found = _with_archive(
            cluster, archive, wanted, group, deep=deep, deleted=gone, master=master, settings=settings
        )
    with read_or_not():
        if as_json:
            write_json(_as_json(found, archive, group))
        else:
            _tell(found, has_archive=archive is not None, group=group)
    if not found.is_equal:
        raise typer.Exit(ExitCode.FAILED)


def _offsets_alone(cluster: "ClusterAccess", topics: Sequence[str], group: str | None) -> "Audit":
    from bolide.pipeline.archive.audit import ask_stored, compared
    from bolide.pipeline.archive.compare import Audit

    stored = asyncio.run(ask_stored(cluster, topics, group))
    return Audit(list(compared(stored, None, topics, has_group=True).values()))


def _with_archive(
    cluster: "ClusterAccess",
    archive: str,
    topics: Sequence[str],
    group: str | None,
    *,
    deep: bool,
    deleted: Sequence[str],
    master: str,
    settings: dict[str, str],
) -> "Audit":
    from bolide.pipeline.archive.audit import compared, prove
    from bolide.pipeline.archive.place import open_place
    from bolide.pipeline.archive.read import committed
    from bolide.pipeline.session import for_messages, session_for

    place = open_place(archive)
    if not topics and not committed(place).ranges:
        raise NothingFound(
            f"{place.folder} has no message, and no topic is named: there is nothing to compare"
        )
    say(f"starting Spark ({master}) to read {place.data}")
    with session_for("bolide audit", master=master, settings={**for_messages(master), **settings}) as spark:
        for _ in range(LOOKS_MAX):
            stored, state = _asked(place, cluster, topics, group)
            named = topics or sorted({queue.topic for queue in state.ranges})
            found = prove(
                spark,
                place,
                state,
                compared(stored, state, named, has_group=group is not None, deleted=deleted),
                topics=topics or None,
                deep=stored if deep else None,
                cluster=cluster,
            )
            if found.is_equal or committed(place).last == state.last:
                return found
            say("the archive was written to meanwhile: looking again")
    return found


def _asked(
    place: "Place", cluster: "ClusterAccess", topics: Sequence[str], group: str | None
) -> "tuple[Stored, State]":
    """The brokers first, then the manifest: what is archived meanwhile is no gap."""
    from bolide.pipeline.archive.audit import ask_stored
    from bolide.pipeline.archive.read import committed

    known = {queue.topic for queue in committed(place).ranges}
    stored = asyncio.run(ask_stored(cluster, topics or sorted(known), group, archived=known))
    return stored, committed(place)


# ---- words -------------------------------------------------------------------------------------------------------


def _tell(found: "Audit", *, has_archive: bool, group: str | None) -> None:
    from bolide.pipeline.archive.compare import MEANINGS

    columns = ["TOPIC", "BROKER", "QUEUE", "STORED", *(["ARCHIVED"] if has_archive else [])]
    columns += [*([f"CONSUMED BY {group}"] if group else []), "EQUAL"]
    write_table(columns, [_row(one, has_archive=has_archive, group=group) for one in found.queues])
    if found.is_equal:
        write_line(f"all equal: {counted(len(found.queues), 'queue')}")
        return
    write_line()
    for one in found.queues:
        for finding in sorted(one.findings):
            count = counted(finding.span.rows, "message")
            write_line(f"{one.queue}: {finding.span} ({count}): {MEANINGS[finding.kind]}")
    for file in found.files:
        write_line(f"{file.path}: {file.problem}")


def _row(one: "QueueAudit", *, has_archive: bool, group: str | None) -> list[object]:
    queue = one.queue
    row: list[object] = [
        queue.topic,
        queue.broker_name,
        queue.queue_id,
        _spans([one.stored] if one.stored else []),
    ]
    if has_archive:
        row.append(_spans(one.archived))
    if group:
        row.append("-" if one.consumed is None else f"up to {one.consumed}")
    return [*row, "no" if one.findings else "yes"]


def _spans(spans: "Sequence[Span]") -> str:
    return ", ".join(str(span) for span in spans if span.rows) or "-"


def _as_json(found: "Audit", archive: str | None, group: str | None) -> dict[str, Any]:
    def span(one: "Span | None") -> dict[str, int] | None:
        return None if one is None else {"first": one.first, "end": one.end}

    return {
        "equal": found.is_equal,
        "archive": archive,
        "group": group,
        "queues": [
            {
                "topic": one.queue.topic,
                "broker": one.queue.broker_name,
                "queue": one.queue.queue_id,
                "stored": span(one.stored),
                "archived": [span(part) for part in one.archived],
                "consumed": one.consumed,
                "findings": [
                    {"kind": finding.kind.value, "first": finding.span.first, "end": finding.span.end}
                    for finding in sorted(one.findings)
                ],
            }
            for one in found.queues
        ],
        "files": [{"path": file.path, "problem": file.problem} for file in found.files],
    }
