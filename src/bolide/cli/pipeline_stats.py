"""`bolide pipeline stats`: what goes through topics, as tables, as JSON, as Parquet and as a page with charts."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bolide.cli import complete
from bolide.cli.access import cluster_at
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, Nameserver
from bolide.cli.output import can_be_steered, counted, say, write_json
from bolide.cli.pipeline_stats_tables import write_report
from bolide.cli.settings import parse_assignments
from bolide.cli.since import parse_since, parse_span
from bolide.cli.spark_run import Master, SparkSettings
from bolide.model.errors import ConfigError
from bolide.model.limits.spark import STATS_NAMES_MAX

if TYPE_CHECKING:
    from bolide.pipeline.access import ClusterAccess
    from bolide.pipeline.stats.report import Asked, Wish
    from bolide.pipeline.stats.sources import Source

WINDOW_MIN_MS = 1000
PARTS_LOCAL = 16

Topics = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TOPIC…",
        help="With --store or --archive, none means all of it.",
        autocompletion=complete.topics,
    ),
]
Groups = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="GROUP",
        help="How far it is behind, too; may be given often.",
        autocompletion=complete.groups,
    ),
]
Store = Annotated[
    Path | None,
    typer.Option("--store", metavar="DIR", help="Read a broker's directory; no broker is asked."),
]
Archive = Annotated[
    str | None, typer.Option("--archive", metavar="DIR", help="Read an archive; no broker is asked.")
]
Since = Annotated[
    str, typer.Option("--since", metavar="TIME", help="Stored then or later: 1h, yesterday, an ISO time.")
]
Until = Annotated[str, typer.Option("--until", metavar="TIME", help="Stored before that.")]
Window = Annotated[
    str | None,
    typer.Option("--window", metavar="SPAN", help="'5 minutes', 1h; as it suits the span unless given."),
]
Top = Annotated[
    int,
    typer.Option(
        "--top", metavar="N", min=0, max=STATS_NAMES_MAX, help="Keys and tags of a topic; 0 counts no keys."
    ),
]
HtmlFile = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write a page with charts that needs nothing else."),
]
ParquetFolder = Annotated[
    Path | None, typer.Option("--parquet", metavar="DIR", help="Write a Parquet file for each table.")
]
LagHistory = Annotated[
    Path | None,
    typer.Option(
        "--lag-history", metavar="FILE", help="Add the lag to this file, and show how it went; needs --group."
    ),
]


def stats(
    topics: Topics = None,
    groups: Groups = None,
    store: Store = None,
    archive: Archive = None,
    since: Since = "beginning",
    until: Until = "end",
    window: Window = None,
    top: Top = 10,
    html: HtmlFile = None,
    parquet: ParquetFolder = None,
    lag_history: LagHistory = None,
    as_json: AsJson = False,
    master: Master = "local[*]",
    spark_settings: SparkSettings = None,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Traffic, sizes, latencies, hot keys and skewed queues of topics, and how far groups are behind.

    Everything is read once; the report has sums alone.  Latency is from born to stored.

    [bold]Examples[/bold]

        bolide pipeline stats orders
        bolide pipeline stats orders payments --since 1d --window '15 minutes' --html report.html
        bolide pipeline stats orders --group billing --lag-history lag.jsonl --html report.html
        bolide pipeline stats orders --archive /archive/shop --since 30d --html report.html
        bolide pipeline stats --store /data/store --json | jq '.topics[] | {topic, messages, skew, verdict}'
    """
    from bolide.net.clock import SystemClock
    from bolide.pipeline.session import session_for
    from bolide.pipeline.stats.report import make_report
    from bolide.pipeline.stats.tables import report_json, write_tables

    now_ms = SystemClock().now_ms()
    cluster = cluster_at(nameserver)
    source = _source(topics or [], store, archive, cluster)
    wish = _wish(since, until, window, top, now_ms)
    _check_places(html, parquet, lag_history, groups or [], store or archive)
    settings = parse_assignments(spark_settings or (), "--spark")
    asked = asyncio.run(_ask(source, groups or [], cluster, lag_history))
    say(f"reading {source} with Spark ({master})")
    with session_for(
        "bolide stats", master=master, settings={**_defaults(master, archive), **settings}
    ) as spark:
        report = make_report(spark, source, wish, asked, now_ms)
    if html is not None:
        from bolide.pipeline.stats.page import write_page

        write_page(report, html)
        say(f"{html} is written")
    if parquet is not None:
        say(f"{counted(len(write_tables(report, parquet)), 'table')} written to {parquet}")
    if as_json:
        write_json(report_json(report))
    else:
        write_report(report)


def _defaults(master: str, archive: str | None) -> dict[str, str]:
    """A bar while Spark reads, where somebody looks; and on one machine not the 200 parts of sums that Spark makes."""
    from bolide.pipeline.session import for_messages

    bar = {"spark.ui.showConsoleProgress": "true"} if can_be_steered(sys.stderr) else {}
    parts = {"spark.sql.shuffle.partitions": str(PARTS_LOCAL)} if master.startswith("local") else {}
    return {**bar, **parts, **(for_messages(master) if archive is not None else {})}


def _source(
    topics: Sequence[str], store: Path | None, archive: str | None, cluster: "ClusterAccess"
) -> "Source":
    from bolide.model.names import check_topic
    from bolide.pipeline.archive.place import folder_of
    from bolide.pipeline.stats.sources import ArchiveSource, ClusterSource, StoreSource

    named = list(dict.fromkeys(check_topic(topic) for topic in topics))
    if store is not None and archive is not None:
        raise ConfigError("--store and --archive are two places to read: leave one out")
    if archive is not None:
        return ArchiveSource(str(folder_of(archive)), named)
    if store is not None:
        return StoreSource(str(store.absolute()), named)
    if not named:
        raise ConfigError(
            "name the topics to look at, `bolide topic list` lists them; or a --store or --archive"
        )
    return ClusterSource(cluster, named)


def _wish(since: str, until: str, window: str | None, top: int, now_ms: int) -> "Wish":
    from bolide.pipeline.stats.report import Wish
    from bolide.pipeline.stats.sources import Span

    since_ms, until_ms = parse_since(since, now_ms), parse_since(until, now_ms)
    if since_ms is None or until_ms == 0:
        raise ConfigError(
            "that is a report of nothing: --since comes before the end, --until behind the beginning"
        )
    if until_ms is not None and until_ms <= since_ms:
        raise ConfigError(f"--since {since!r} is not before --until {until!r}")
    window_ms = None if window is None else parse_span(window)
    if window_ms is not None and window_ms < WINDOW_MIN_MS:
        raise ConfigError(f"--window {window!r}: a window is a second wide, or wider")
    return Wish(Span(since_ms or None, until_ms), window_ms, top)


def _check_places(
    html: Path | None,
    parquet: Path | None,
    lag_history: Path | None,
    groups: Sequence[str],
    files: Path | str | None,
) -> None:
    from bolide.pipeline.stats.files import check_file, check_folder

    if groups and files is not None:
        raise ConfigError(
            "--group asks the brokers how far it is, and --store and --archive ask none: leave one out"
        )
    if lag_history is not None and not groups:
        raise ConfigError("--lag-history keeps how far groups are behind: name them with --group")
    if html is not None:
        check_file(html, "--html")
    if parquet is not None:
        check_folder(parquet, "--parquet")
    if lag_history is not None:
        check_file(lag_history, "--lag-history")


async def _ask(
    source: "Source", groups: Sequence[str], cluster: "ClusterAccess", history: Path | None
) -> "Asked":
    """What is told without Spark; whatever does not exist ends the command before anything is started."""
    from bolide.pipeline.stats.lag import add_to_history, lag_now, read_history
    from bolide.pipeline.stats.report import Asked

    asked = Asked(await source.queues())
    if not groups:
        return asked
    lags, at_ms = await lag_now(cluster, groups, source.topics)
    notes: list[str] = []
    for group in groups:
        if not any(lag.group == group for lag in lags):
            notes.append(f"the group {group} has consumed nothing of these topics yet")
    asked = replace(asked, lags=lags, notes=notes)
    if history is None:
        return asked
    add_to_history(history, lags, at_ms)
    samples, unread = read_history(history, groups, source.topics)
    if unread:
        notes.append(f"{counted(unread, 'line')} of {history} cannot be read: passed over")
    return replace(asked, lag_history=samples)
