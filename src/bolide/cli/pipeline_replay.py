"""`bolide pipeline replay`: messages of a topic or an archive, once more into a topic.  What it is asked for."""

from collections.abc import Sequence
from typing import Annotated

import typer

from bolide.cli import complete
from bolide.cli.access import cluster_at
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, Nameserver, Preview, Yes
from bolide.cli.outcome import Refused
from bolide.cli.pipeline_replay_work import ReplayWork, Session
from bolide.cli.settings import parse_assignments
from bolide.cli.since import format_moment, parse_since
from bolide.cli.spark_run import Master, SparkSettings
from bolide.model.errors import ConfigError
from bolide.model.limits.spark import SPARK_WRITE_RATE_MAX
from bolide.model.names import check_topic

From = Annotated[
    str | None,
    typer.Option("--from", metavar="WHEN", help="Stored then or later: 2h, yesterday, an ISO time."),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="Stored before that, said in the same way.")
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only this tag; may be given often.")
]
Keys = Annotated[
    list[str] | None,
    typer.Option("--key", "-k", metavar="KEY", help="Only with this key; may be given often."),
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="SQL", help="Only where this is true, over the columns of a topic."),
]
Rate = Annotated[
    int | None,
    typer.Option(
        "--rate", min=1, max=SPARK_WRITE_RATE_MAX, metavar="N", help="At most so many per second, in all."
    ),
]
To = Annotated[
    str, typer.Option("--to", metavar="TOPIC", help="Where they go.", autocompletion=complete.topics)
]
FromTopic = Annotated[
    list[str] | None,
    typer.Option(
        "--from-topic",
        metavar="TOPIC",
        help="Read this topic, or this one of the archive; may be given often.",
        autocompletion=complete.topics,
    ),
]
FromArchive = Annotated[
    str | None, typer.Option("--from-archive", metavar="DIR", help="Read an archive instead of brokers.")
]
KeepOrder = Annotated[
    bool,
    typer.Option("--keep-order", help="What was in one queue, or had one sharding key, stays in order."),
]
SameTopic = Annotated[bool, typer.Option("--same-topic", help="Allow --to to be the topic that is read.")]
SkipExpired = Annotated[
    bool, typer.Option("--skip-expired", help="Go on without messages that retention deletes meanwhile.")
]
ReplayId = Annotated[
    str | None,
    typer.Option("--id", metavar="NAME", help="Of the replay; the same name again goes on with it."),
]
ReplaysPlace = Annotated[
    str | None,
    typer.Option(
        "--checkpoint", metavar="DIR", help="Where replays are kept.", show_default="~/.bolide/replays"
    ),
]


def replay(
    to: To,
    from_topic: FromTopic = None,
    from_archive: FromArchive = None,
    since: From = None,
    until: Until = None,
    tag: Tags = None,
    key: Keys = None,
    where: Where = None,
    rate: Rate = None,
    keep_order: KeepOrder = False,
    same_topic: SameTopic = False,
    skip_expired: SkipExpired = False,
    replay_id: ReplayId = None,
    checkpoint: ReplaysPlace = None,
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    master: Master = "local[*]",
    spark_settings: SparkSettings = None,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Send messages of a topic or an archive once more into a topic, on Spark.

    What is replayed is fixed before the first message: what comes later is not part of it, whatever is read and
    written. Body, tag, keys and properties stay; REPLAY_ID, REPLAY_OF and REPLAY_FROM say where a message comes from.

    A replay that was stopped or killed goes on when it is started with its --id again. On bolide every message is
    then stored once.

    [bold]Examples[/bold]

        bolide pipeline replay --from-topic orders --from 2h --to orders-test --preview
        bolide pipeline replay --from-topic orders --from 10:00 --until 11:00 --tag PAID --to orders-test --rate 200
        bolide pipeline replay --from-archive /archive --from-topic orders --from yesterday --to orders --id fix-7
        bolide pipeline replay --from-topic orders --where "properties['city'] = 'Köln'" --to orders-test --yes
    """
    from bolide.net.clock import SystemClock
    from bolide.pipeline.replay.plan import Asked, Selection

    now_ms = SystemClock().now_ms()
    topics, archive = tuple(dict.fromkeys(from_topic or ())), _place(from_archive)
    _check_ends(topics, archive, to, same_topic=same_topic)
    selection = Selection(*_span(since, until, now_ms), tuple(tag or ()), tuple(key or ()), where)
    words = {name: text for name, text in (("from", since), ("until", until)) if text is not None}
    asked = Asked(check_topic(to), topics, archive, selection, words, keep_order, rate, nameserver)
    with Session(master, parse_assignments(spark_settings or (), "--spark")) as session:
        work = ReplayWork(cluster_at(nameserver), session, asked, replay_id, checkpoint, now_ms)
        if preview:
            work.show(skip_expired=skip_expired, as_json=as_json)
        else:
            work.run(yes=yes, skip_expired=skip_expired, as_json=as_json)


def _check_ends(topics: Sequence[str], archive: str | None, to: str, *, same_topic: bool) -> None:
    if not topics and archive is None:
        raise ConfigError("say what is replayed: --from-topic TOPIC, or --from-archive DIR")
    for topic in topics:
        check_topic(topic)
    if archive is None and to in topics and not same_topic:
        raise Refused(
            f"{to} is the topic that is read: every group that reads it gets these messages once more, and the next"
            " replay finds them twice. --same-topic allows it"
        )


def _place(archive: str | None) -> str | None:
    """A path as Spark wants it, wherever the command is called next time; addresses (`s3://…`) as they are."""
    from bolide.pipeline.folders import whole

    return None if archive is None else whole(archive)


def _span(since: str | None, until: str | None, now_ms: int) -> tuple[int | None, int | None]:
    from_ms = None if since is None else parse_since(since, now_ms)
    until_ms = None if until is None else parse_since(until, now_ms)
    if since is not None and from_ms is None:
        raise ConfigError("--from end leaves nothing to replay: give a moment before now")
    if from_ms and until_ms is not None and until_ms <= from_ms:
        raise ConfigError(
            f"--until ({format_moment(until_ms)}) is not behind --from ({format_moment(from_ms)})"
        )
    return from_ms or None, until_ms
