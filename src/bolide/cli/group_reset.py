"""`bolide group reset` and `clone-offsets`: where a group goes on.  First the plan is shown, then it is done."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.cli import complete
from bolide.cli.ask import ask, confirm
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, GroupName, Nameserver, OnBroker, Preview, Yes
from bolide.cli.output import counted, say, write_json, write_table
from bolide.cli.since import parse_since
from bolide.model.errors import ConfigError
from bolide.model.moments import SECONDS_FROM

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection
    from bolide.admin.reset import Move, Target

Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC",
        help="Only in this topic; may be given often.",
        show_default="all in which it has come somewhere",
        autocompletion=complete.topics,
    ),
]

_OFFSET = re.compile(r"(offset:)?([0-9]{1,18})")


def reset(
    group: GroupName,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="WHERE",
            help="earliest, latest, an offset (17, offset:17) or a moment (10m, -10m, yesterday, an ISO time).",
        ),
    ],
    topics: Topics = None,
    broker: OnBroker = None,
    queue: Annotated[
        int | None, typer.Option("--queue", min=0, metavar="N", help="Only in this queue, of one topic.")
    ] = None,
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Let a group go on elsewhere: consume again what it has consumed, or skip what waits.

    Shows for each queue where it goes on now and where then, and how many messages it gets again
    or never. Asks first on a terminal; elsewhere it wants --yes. With --preview nothing is changed.
    Members that are connected go on there with their next pull.

    [bold]Examples[/bold]

        bolide group reset readers --to latest --preview
        bolide group reset readers --to -10m --topic orders
        bolide group reset readers --to 1200 --topic orders --queue 3 --yes
    """
    from bolide.net.clock import SystemClock

    target = parse_target(to, SystemClock().now_ms())
    if queue is not None and len(topics or ()) != 1:
        raise ConfigError("--queue is of one topic: name it with --topic")
    _move(
        nameserver,
        group,
        lambda servers, known: _plan_reset(servers, group, target, topics or known, broker, queue),
        preview=preview,
        yes=yes,
        as_json=as_json,
    )


def clone_offsets(
    source: Annotated[
        str,
        typer.Argument(metavar="FROM", help="The group that is copied.", autocompletion=complete.groups),
    ],
    group: Annotated[
        str,
        typer.Argument(metavar="TO", help="The group that goes on there.", autocompletion=complete.groups),
    ],
    topics: Topics = None,
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Let a group go on where another one is: a new version beside the old one, a second reader.

    Queues in which the first has not begun stay as they are for the second.

    [bold]Examples[/bold]

        bolide group create readers-v2
        bolide group clone-offsets readers readers-v2 --preview
        bolide group clone-offsets readers readers-v2 --topic orders --yes
    """
    if source == group:
        raise ConfigError("a group cannot be copied to itself")
    _move(
        nameserver,
        group,
        lambda servers, known: _plan_clone(servers, source, group, topics),
        preview=preview,
        yes=yes,
        as_json=as_json,
    )


def parse_target(text: str, now_ms: int) -> "Target":
    """Where to: a word, an offset or a moment.  A number that could be a time of `date +%s` is one."""
    from bolide.admin.reset import BEGINNING, END, Target

    word = text.strip().lower()
    if word == "earliest":
        return BEGINNING
    if word == "latest":
        return END
    number = _OFFSET.fullmatch(word)
    if number and (number[1] or int(number[2]) < SECONDS_FROM):
        return Target(offset=int(number[2]))
    try:
        moment_ms = parse_since(text, now_ms)
    except ConfigError as error:
        raise ConfigError(
            f"{text[:64]!r} is nowhere to go: give earliest, latest, an offset (17, offset:17), a span back (10m) or a"
            " time (2026-01-31T10:00, 10:00, yesterday)"
        ) from error
    if moment_ms is None:
        return END
    return Target(moment_ms=moment_ms) if moment_ms else BEGINNING


def _move(nameserver: str, group: str, plan: Any, *, preview: bool, yes: bool, as_json: bool) -> None:
    from bolide.admin.reset import move_offsets

    moves = ask(nameserver, lambda servers: _look(servers, group, plan))
    again, skipped = sum(move.again for move in moves), sum(move.skipped for move in moves)
    words = f"{counted(again, 'message')} again, {counted(skipped, 'message')} skipped"
    if as_json and preview:
        write_json(_as_json(group, moves, preview=True))
    elif not as_json:
        _write_moves(moves)
    if preview:
        say(f"{group} would get {words}. Nothing was changed")
        return
    confirm(
        f"Move {group}? {words}.",
        yes=yes,
        stakes=f"this moves {group}: {words}",
        otherwise="nothing was changed",
    )
    ask(nameserver, lambda servers: move_offsets(servers, group, moves))
    if as_json:
        write_json(_as_json(group, moves, preview=False))
    else:
        say(f"moved {group}: {words}")


async def _look(servers: "AdminConnection", group: str, plan: Any) -> "list[Move]":
    from bolide.admin.groups import group_configs
    from bolide.admin.reset import topics_of_group

    await group_configs(servers, group)
    moves: list[Move] = await plan(servers, await topics_of_group(servers, group))
    return moves


async def _plan_reset(
    servers: "AdminConnection",
    group: str,
    target: "Target",
    topics: Sequence[str],
    broker: str | None,
    queue: int | None,
) -> "list[Move]":
    from bolide.admin.reset import plan_reset

    return await plan_reset(servers, group, target, topics, broker=broker, queue_id=queue)


async def _plan_clone(
    servers: "AdminConnection", source: str, group: str, topics: Sequence[str] | None
) -> "list[Move]":
    from bolide.admin.groups import group_configs
    from bolide.admin.reset import plan_clone, topics_of_group

    await group_configs(servers, source)
    return await plan_clone(servers, source, group, topics or await topics_of_group(servers, source))


def _write_moves(moves: "Sequence[Move]") -> None:
    write_table(
        ("TOPIC", "BROKER", "QUEUE", "NOW AT", "THEN AT", "AGAIN", "SKIPPED"),
        [
            (
                move.place.queue.topic,
                move.place.queue.broker_name,
                move.place.queue.queue_id,
                "-" if move.old is None else move.old,
                move.new,
                move.again,
                move.skipped,
            )
            for move in moves
        ],
    )


def _as_json(group: str, moves: "Sequence[Move]", *, preview: bool) -> dict[str, Any]:
    return {
        "group": group,
        "preview": preview,
        "again": sum(move.again for move in moves),
        "skipped": sum(move.skipped for move in moves),
        "queues": [
            {
                "topic": move.place.queue.topic,
                "broker": move.place.queue.broker_name,
                "queue": move.place.queue.queue_id,
                "old": move.old,
                "new": move.new,
                "again": move.again,
                "skipped": move.skipped,
            }
            for move in moves
        ],
    }
