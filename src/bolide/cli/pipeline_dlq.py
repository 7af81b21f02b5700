"""`bolide pipeline dlq …`: what a group's dead letters died of, and sending them again by a plan.

What is counted, planned and sent is in `bolide.pipeline.dead_letters`; here are words and tables.
"""

import dataclasses
import secrets
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.cli.access import cluster_at
from bolide.cli.ask import ask, confirm
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, GroupName, Nameserver, Preview, Yes
from bolide.cli.outcome import ExitCode, Partly, Refused
from bolide.cli.output import counted, say, write_json, write_line, write_table
from bolide.cli.pipeline_replay import Rate, Tags, Where
from bolide.cli.pipeline_replay_work import stamp
from bolide.cli.progress import status_line
from bolide.cli.settings import parse_assignments
from bolide.cli.since import format_moment, parse_since, parse_span
from bolide.cli.spark_run import Master, SparkSettings
from bolide.model.errors import ConfigError, NothingFound
from bolide.model.names import DEAD_LETTER_PREFIX, check_group, check_topic

if TYPE_CHECKING:
    from bolide.pipeline.access import ClusterAccess
    from bolide.pipeline.dead_letters.plan import KnownBy, Plan
    from bolide.pipeline.dead_letters.redrive import Outcome
    from bolide.pipeline.dead_letters.report import Report

BARS = "▁▂▃▄▅▆▇█"
MISSING_SHOWN = 20
TARGETS_SHOWN = 20

app = typer.Typer(
    help="Look at dead letters by cause, and send them again by a plan.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Since = Annotated[
    str, typer.Option("--since", metavar="WHEN", help="Died then or later: 10m, yesterday, an ISO time.")
]
NotIn = Annotated[
    list[Path] | None,
    typer.Option("--not-in", metavar="PLAN", help="Leave out what this plan has sent; may be given often."),
]
By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="SQL", help="What the cause is, beside topic and tag; over columns of a topic."
    ),
]


@app.command()
def report(
    group: GroupName,
    since: Since = "beginning",
    by: By = None,
    as_json: AsJson = False,
    master: Master = "local[*]",
    spark_settings: SparkSettings = None,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Count the dead letters of a group by cause, by age and by hour or day.

    A consumer does not tell the broker why it failed. The cause is what is known: the topic and tag of the message, the
    host that failed last, and after how many attempts. Where a property or the body says more, give it with --by.

    [bold]Examples[/bold]

        bolide pipeline dlq report billing
        bolide pipeline dlq report billing --since yesterday --json
        bolide pipeline dlq report billing --by "get_json_object(cast(body AS string), '$.version')"
    """
    from bolide.net.clock import SystemClock

    group, now_ms = _group(group), SystemClock().now_ms()
    since_ms = _since(since, now_ms)
    _check_there(nameserver, group, since_ms)
    with _spark(master, spark_settings) as spark:
        from bolide.pipeline.dead_letters.letters import dead_letters
        from bolide.pipeline.dead_letters.report import report as counted_letters

        found = counted_letters(
            dead_letters(spark, cluster_at(nameserver), group, since_ms=since_ms, by=by), now_ms
        )
    if as_json:
        write_json({"group": group, **dataclasses.asdict(found)})
    else:
        _write_report(group, found)


@app.command()
def plan(
    group: GroupName,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The plan that is written.")],
    tag: Tags = None,
    cause: Annotated[
        list[str] | None,
        typer.Option("--cause", metavar="CAUSE", help="Only of this cause of a report; may be given often."),
    ] = None,
    since: Since = "beginning",
    older: Annotated[
        str | None, typer.Option("--older", metavar="SPAN", help="Dead for at least so long: 10m, 2h, 3d.")
    ] = None,
    where: Where = None,
    by: By = None,
    not_in: NotIn = None,
    as_json: AsJson = False,
    master: Master = "local[*]",
    spark_settings: SparkSettings = None,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Write down which dead letters of a group are to be sent again, and where each goes. Sends nothing.

    The plan is JSON with a line for each letter: look at it, take lines out, change where one goes. A cause that was
    found with --by needs the same --by here.

    [bold]Examples[/bold]

        bolide pipeline dlq plan billing --output plan.json
        bolide pipeline dlq plan billing --cause 1f2e3d4c --older 10m --output plan.json
        bolide pipeline dlq plan billing --tag PAID --where "attempts > 3" --output plan.json
        bolide pipeline dlq plan billing --not-in plan.json --output next.json
    """
    from bolide.net.clock import SystemClock

    group, now_ms = _group(group), SystemClock().now_ms()
    since_ms = _since(since, now_ms)
    until_ms = None if older is None else now_ms - parse_span(older)
    if out.exists():
        raise Refused(f"{out} is there already, and is left as it is")
    sent = _sent_by_others(group, not_in or ())
    _check_there(nameserver, group, since_ms)
    with _spark(master, spark_settings) as spark:
        from bolide.pipeline.dead_letters.letters import chosen, dead_letters
        from bolide.pipeline.dead_letters.plan import letters_of
        from bolide.pipeline.replay.source import chosen_by

        letters = dead_letters(spark, cluster_at(nameserver), group, since_ms=since_ms, by=by)
        letters = chosen(letters, tags=tag or (), causes=cause or (), until_ms=until_ms)
        found = letters_of(chosen_by(letters, where), sent)
    if found.sent_before:
        say(f"{counted(found.sent_before, 'dead letter')} left out: sent by a plan of --not-in")
    if found.damaged:
        say(
            f"{counted(found.damaged, 'dead letter')} left out: damaged in the broker's store, and cannot be read"
        )
    if not found.entries:
        raise NothingFound(f"{group} has no dead letters that are meant, so no plan was written")
    said = {"--tag": tag, "--cause": cause, "--older": older, "--where": where, "--by": by}
    said |= {"--since": since if since_ms > 0 else None, "--not-in": [str(plan) for plan in not_in or ()]}
    words = {name: value for name, value in said.items() if value}
    count = _write_plan(out, group, now_ms, words, found.entries)
    more = found.in_all - count
    if as_json:
        counts = {"letters": count, "not_planned": more}
        counts |= {"damaged": found.damaged, "sent_before": found.sent_before}
        write_json({"group": group, "file": str(out), **counts})
    if more:
        say(f"{more} more are meant than a plan can have: redrive these, then plan again with --not-in {out}")
    _warn_of_absent(nameserver, Counter(entry["to"] for entry in found.entries[:count] if entry["to"]))
    say(f"{counted(count, 'dead letter')} planned; `bolide pipeline dlq redrive {out} --preview` looks at it")


def _warn_of_absent(nameserver: str, targets: Counter[str]) -> None:
    """What a letter says of its origin its producer may have written, and a redrive may make topics."""
    from bolide.admin.topics import list_topics

    there = set(ask(nameserver, list_topics))
    absent = [(topic, count) for topic, count in targets.most_common() if topic not in there]
    for topic, count in absent[:TARGETS_SHOWN]:
        say(
            f"no broker has the topic {topic}, of which {counted(count, 'dead letter')} of the plan say they were:"
            " a redrive would make it; change their `to`, or take them out"
        )
    if (more := len(absent) - TARGETS_SHOWN) > 0:
        say(f"and {more} more topics that no broker has")


def _sent_by_others(group: str, plans: Sequence[Path]) -> "set[KnownBy]":
    """The letters that these plans have sent."""
    from bolide.pipeline.dead_letters.plan import read_plan
    from bolide.pipeline.dead_letters.record import record_of, recorded

    sent: set[KnownBy] = set()
    for path in plans:
        plan = read_plan(path)
        if plan.group != group:
            raise ConfigError(f"--not-in {path}: that is a plan of the group {plan.group}, not of {group}")
        sent |= recorded(record_of(path), plan.id)
    return sent


@app.command()
def redrive(
    file: Annotated[Path, typer.Argument(metavar="PLAN", help="A plan of `bolide pipeline dlq plan`.")],
    rate: Rate = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="TOPIC", help="Where all of them go.", show_default="the topic of each"),
    ] = None,
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Send the dead letters of a plan again, each as a new message of the topic that it was of.

    Every group of that topic gets them; [bold]bolide message replay[/bold] sends to one group alone. What was sent is
    recorded beside the plan, in PLAN.sent.jsonl: run again, it sends what is not recorded, and nothing twice on bolide.

    [bold]Examples[/bold]

        bolide pipeline dlq redrive plan.json --preview
        bolide pipeline dlq redrive plan.json --rate 50 --yes
        bolide pipeline dlq redrive plan.json --to orders-repair
    """
    from bolide.pipeline.dead_letters.plan import read_plan
    from bolide.pipeline.dead_letters.record import record_of, sent_by
    from bolide.pipeline.dead_letters.redrive import look

    if to is not None and check_topic(to).startswith(DEAD_LETTER_PREFIX):
        raise Refused(f"{to} is a topic of dead letters: nobody would get them there")
    found: Plan = read_plan(file)
    cluster = cluster_at(nameserver)
    planned = look(found, cluster, to, sent_by(record_of(file), found.id, to))
    if preview:
        outcome = planned
    else:
        count = planned.topics.total()
        where = ", ".join(sorted(planned.topics)) or "nowhere"
        if count:
            confirm(
                f"Send {counted(count, 'dead letter')} to {where}?",
                yes=yes,
                stakes=f"every group of {where} gets these messages",
                otherwise="nothing was sent",
            )
        outcome = _redrive(file, found, cluster, to, rate)
    if as_json:
        write_json(_outcome_json(found, outcome, preview=preview))
    _tell(outcome, preview=preview)


# ---- redrive -----------------------------------------------------------------------------------------------------


def _redrive(
    file: Path, plan: "Plan", cluster: "ClusterAccess", to: str | None, rate: int | None
) -> "Outcome":
    from bolide.net.clock import SystemClock
    from bolide.pipeline.dead_letters.record import opened, record_of
    from bolide.pipeline.dead_letters.redrive import redrive as send

    clock, stops = SystemClock(), list[int]()
    with opened(record_of(file), plan.id, to) as record, status_line() as show, _noted(signal.SIGINT, stops):
        outcome = send(
            plan,
            cluster,
            record,
            to=to,
            rate=rate,
            now=lambda: format_moment(clock.now_ms()),
            progress=lambda sent: show(f"{sent} sent"),
            is_stopped=lambda: bool(stops),
        )
    if stops:
        say(f"interrupted: {counted(outcome.sent, 'dead letter')} sent; the same again goes on")
        raise typer.Exit(ExitCode.INTERRUPTED)
    return outcome


@contextmanager
def _noted(number: int, into: list[int]) -> Iterator[None]:
    """The first signal is taken note of; the second does what it always does."""
    before = signal.getsignal(number)

    def heard(which: int, frame: Any) -> None:
        say("stopping when what is on its way is stored; again to stop at once")
        into.append(which)
        signal.signal(number, before)

    signal.signal(number, heard)
    try:
        yield
    finally:
        signal.signal(number, before)


def _outcome_json(plan: "Plan", outcome: "Outcome", *, preview: bool) -> dict[str, Any]:
    return {
        "plan": plan.id,
        "group": plan.group,
        "preview": preview,
        "letters": outcome.letters,
        "sent_before": outcome.sent_before,
        "sent": outcome.sent,
        "topics": dict(outcome.topics),
        "missing": [{**dataclasses.asdict(letter), "why": why} for letter, why in outcome.missing],
    }


def _tell(outcome: "Outcome", *, preview: bool) -> None:
    for letter, why in outcome.missing[:MISSING_SHOWN]:
        say(f"{letter.id} ({letter.broker}, queue {letter.queue}, offset {letter.offset}): {why}")
    if len(outcome.missing) > MISSING_SHOWN:
        say(f"and {len(outcome.missing) - MISSING_SHOWN} more that cannot be sent")
    if outcome.sent_before:
        say(f"{counted(outcome.sent_before, 'dead letter')} of the plan were sent before, by its record")
    if preview:
        for topic, count in sorted(outcome.topics.items()):
            say(f"{counted(count, 'dead letter')} would go to {topic}")
        say("Nothing was sent")
    else:
        say(f"{counted(outcome.sent, 'dead letter')} sent")
    if outcome.missing:
        raise Partly(f"{counted(len(outcome.missing), 'dead letter')} of the plan cannot be sent")


# ---- report and plan ---------------------------------------------------------------------------------------------


def _write_plan(
    out: Path, group: str, now_ms: int, said: dict[str, Any], entries: Sequence[dict[str, Any]]
) -> int:
    from bolide.pipeline.dead_letters.plan import write_plan

    told = [{**entry, "died": format_moment(entry["died"] or 0)} for entry in entries]
    made = format_moment(now_ms)
    plan_id = f"{stamp(now_ms)}-{secrets.token_hex(4)}"
    return write_plan(out, plan_id, secrets.token_hex(16), group, made, said, told)


def _write_report(group: str, found: "Report") -> None:
    from bolide.pipeline.dead_letters.report import AGES, HOUR_MS, OLDER

    if not found.letters:
        write_line(f"{group} has no dead letters")
        return
    unit = "hour" if found.bin_ms == HOUR_MS else "day"
    by_why = any(one.why is not None for one in found.causes)
    write_table(
        (
            *("CAUSE", "WAS OF", "TAG", *(("WHY",) if by_why else ("LAST HOST", "ATTEMPTS"))),
            *("LETTERS", "FIRST", "LAST", *(name.upper() for name in (*AGES, OLDER)), f"BY {unit.upper()}"),
        ),
        [
            (
                *(one.cause, one.topic or "?", one.tag or "-"),
                *((one.why or "-",) if by_why else (one.last_host or "?", one.attempts or 0)),
                *(one.letters, format_moment(one.first_ms), format_moment(one.last_ms)),
                *(one.ages[name] for name in (*AGES, OLDER)),
                bars(one.trend),
            )
            for one in found.causes
        ],
    )
    write_line()
    write_line(f"{counted(found.letters, 'dead letter')}, by {unit}: {bars(found.trend)}")
    if found.more_causes:
        say(f"{counted(found.more_causes, 'cause')} more, each with fewer letters")


def bars(numbers: Sequence[int]) -> str:
    """
    >>> bars([0, 1, 4, 8])
    '·▁▄█'
    """
    most = max(numbers, default=0)
    return "".join("·" if not number else BARS[(number * len(BARS) - 1) // most] for number in numbers)


def _group(name: str) -> str:
    return check_group(name.removeprefix(DEAD_LETTER_PREFIX))


def _since(text: str, now_ms: int) -> int:
    since_ms = parse_since(text, now_ms)
    if since_ms is None:
        raise ConfigError("--since end would find nothing: give a moment before now")
    return since_ms


def _check_there(nameserver: str, group: str, since_ms: int) -> None:
    """Before Spark is started for nothing."""
    from bolide.admin.replay import dead_letters

    spans = ask(nameserver, lambda servers: dead_letters(servers, group, since_ms, None))
    if not sum(span.messages for span in spans):
        since = f" since {format_moment(since_ms)}" if since_ms > 0 else ""
        raise NothingFound(f"{group} has no dead letters{since}")


@contextmanager
def _spark(master: str, spark_settings: Sequence[str] | None) -> Iterator[Any]:
    from bolide.pipeline.session import session_for

    settings = parse_assignments(spark_settings or (), "--spark")
    say(f"starting Spark ({master})")
    with session_for("bolide dead letters", master=master, settings=settings) as spark:
        yield spark
