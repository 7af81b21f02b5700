"""`bolide queue …`: the queues of a topic, and what lies in them.  Looking joins no group and moves no offset."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bolide.cli.ask import ask
from bolide.cli.finding import one_queue
from bolide.cli.group_reset import parse_target
from bolide.cli.messages_out import write_json_lines, write_list
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, AsJsonLines, Nameserver, OnBroker, TopicName
from bolide.cli.output import counted, say, write_json, write_line, write_table
from bolide.cli.silent import end_for
from bolide.cli.since import format_moment
from bolide.cli.spans import format_span

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection
    from bolide.admin.many import Silent
    from bolide.admin.queues import PlacedQueue
    from bolide.admin.reset import Target
    from bolide.record.stored import StoredMessage

app = typer.Typer(
    help="See the queues of a topic, and peek into them.", no_args_is_help=True, rich_markup_mode="rich"
)

PEEK_MAX = 1000

Queue = Annotated[int, typer.Argument(min=0, metavar="QUEUE", help="The queue's number.")]


@app.command("list")
def list_(
    topic: TopicName,
    broker: OnBroker = None,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """A topic's queues with their offsets, and how long ago their first and last messages were stored.

    A broker that does not answer is named, with exit code 3 (1 when it refuses), and the others are shown.
    """
    from bolide.net.clock import SystemClock

    silent: Silent = {}
    queues = ask(nameserver, lambda servers: _queues(servers, topic, broker, None, silent))
    now_ms = SystemClock().now_ms()
    if as_json:
        write_json([_as_json(queue, first_ms) for queue, first_ms in queues])
    else:
        _write_queues(queues, now_ms)
    end_for(silent, ", so its queues are missing here")


def _write_queues(queues: "Sequence[tuple[PlacedQueue, int | None]]", now_ms: int) -> None:
    write_table(
        ("BROKER", "QUEUE", "FIRST", "NEXT", "MESSAGES", "OLDEST", "NEWEST"),
        [
            (
                queue.place.queue.broker_name,
                queue.place.queue.queue_id,
                queue.bounds.offset_min,
                queue.bounds.offset_max,
                queue.bounds.offset_max - queue.bounds.offset_min,
                _ago(first_ms, now_ms),
                _ago(queue.bounds.last_stored_ms, now_ms),
            )
            for queue, first_ms in queues
        ],
    )


@app.command()
def describe(
    topic: TopicName,
    queue: Queue,
    broker: OnBroker = None,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """One queue, and where each group is in it."""
    queues = ask(nameserver, lambda servers: _queues(servers, topic, broker, queue))
    groups = ask(nameserver, lambda servers: _groups(servers, [one for one, _ in queues]))
    if as_json:
        write_json(
            [
                {
                    **_as_json(one, first_ms),
                    "groups": [
                        {"group": group, "offset": offset, "behind": max(0, one.bounds.offset_max - offset)}
                        for group, offset in groups[one.place.queue.broker_name].items()
                    ],
                }
                for one, first_ms in queues
            ]
        )
        return
    for one, first_ms in queues:
        bounds = one.bounds
        messages = counted(bounds.offset_max - bounds.offset_min, "message")
        write_line(f"{one.place.queue}: {messages}, from {bounds.offset_min} to before {bounds.offset_max}")
        write_line(f"oldest {_moment(first_ms)}, newest {_moment(bounds.last_stored_ms)}")
        there = groups[one.place.queue.broker_name]
        if there:
            print()
            write_table(
                ("GROUP", "OFFSET", "BEHIND"),
                [(group, offset, max(0, bounds.offset_max - offset)) for group, offset in there.items()],
            )
        else:
            say("no group has come here yet")


@app.command()
def peek(
    topic: TopicName,
    queue: Queue,
    at: Annotated[
        str,
        typer.Option(
            "--at", metavar="WHERE", help="earliest, latest, an offset (17) or a moment (10m, 10:30)."
        ),
    ] = "latest",
    count: Annotated[
        int, typer.Option("--count", min=1, max=PEEK_MAX, metavar="N", help="At most so many messages.")
    ] = 10,
    broker: OnBroker = None,
    as_json: AsJsonLines = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Messages of a queue, read without a group; at the end, the last ones.

    [bold]Examples[/bold]

        bolide queue peek orders 0
        bolide queue peek orders 0 --at 1200 --count 1 --json
        bolide queue peek orders 0 --at 10m
    """
    from bolide.net.clock import SystemClock

    target = parse_target(at, SystemClock().now_ms())
    found = ask(nameserver, lambda servers: _peek(servers, topic, queue, broker, target, count))
    if as_json:
        write_json_lines(found)
    elif found:
        write_list(found)
    else:
        say("nothing is there")


async def _queues(
    servers: "AdminConnection",
    topic: str,
    broker: str | None,
    queue_id: int | None,
    silent: "Silent | None" = None,
) -> "list[tuple[PlacedQueue, int | None]]":
    from bolide.admin.many import UNTOLD, of_each
    from bolide.admin.queues import first_stored_ms, queues_of

    queues = await queues_of(servers, topic, broker=broker, queue_id=queue_id, silent=silent)

    async def first(queue: "PlacedQueue") -> int | None:
        try:
            return await first_stored_ms(servers, queue.place)
        except UNTOLD as error:
            if silent is None:
                raise
            silent[queue.place.queue.broker_name] = error
            return None

    firsts = await of_each(queues, first)
    return list(zip(queues, firsts, strict=True))


async def _groups(servers: "AdminConnection", queues: "Sequence[PlacedQueue]") -> dict[str, dict[str, int]]:
    """Of each broker, the groups that have come somewhere in its queue, and how far."""
    from bolide.admin.queues import offsets_in

    return {queue.place.queue.broker_name: await offsets_in(servers, queue.place) for queue in queues}


async def _peek(
    servers: "AdminConnection", topic: str, queue_id: int, broker: str | None, target: "Target", count: int
) -> "Sequence[StoredMessage]":
    from bolide.admin.queues import messages_from, offset_at, queues_of

    place = await one_queue(servers, topic, queue_id, broker)
    if target.moment_ms is not None:
        return await messages_from(servers, place, await offset_at(servers, place, target.moment_ms), count)
    start = target.offset or 0
    if target.is_end:
        (queue,) = await queues_of(servers, topic, broker=place.queue.broker_name, queue_id=queue_id)
        start = max(queue.bounds.offset_min, queue.bounds.offset_max - count)
    return await messages_from(servers, place, start, count)


def _ago(moment_ms: int | None, now_ms: int) -> str:
    if moment_ms is None or moment_ms <= 0:
        return "-"
    return f"{format_span(max(0, now_ms - moment_ms))} ago"


def _moment(moment_ms: int | None) -> str:
    return format_moment(moment_ms) if moment_ms is not None and moment_ms > 0 else "-"


def _as_json(queue: "PlacedQueue", first_ms: int | None) -> dict[str, object]:
    return {
        "topic": queue.place.queue.topic,
        "broker": queue.place.queue.broker_name,
        "queue": queue.place.queue.queue_id,
        "offset_min": queue.bounds.offset_min,
        "offset_max": queue.bounds.offset_max,
        "messages": queue.bounds.offset_max - queue.bounds.offset_min,
        "first_stored_ms": first_ms,
        "last_stored_ms": queue.bounds.last_stored_ms or None,
    }
