"""`bolide message …`: find messages and look at them; `message_again.py` has the commands that deliver one again."""

from typing import TYPE_CHECKING, Annotated

import typer

from bolide.cli import complete, message_again, message_recall
from bolide.cli.ask import ask
from bolide.cli.finding import message_of, one_queue
from bolide.cli.messages_out import write_json_lines, write_list, write_whole
from bolide.cli.options import (
    DEFAULT_NAMESERVER,
    AsJson,
    AsJsonLines,
    MessageId,
    Nameserver,
    TopicName,
    TopicOfId,
)
from bolide.cli.output import say, write_json, write_table
from bolide.cli.silent import end_for
from bolide.cli.since import parse_since
from bolide.model.errors import ConfigError, NothingFound

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection
    from bolide.admin.many import Silent
    from bolide.admin.track import Track
    from bolide.record.stored import StoredMessage

app = typer.Typer(
    help="Find messages, see who consumed them, deliver them again, recall them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command()
def find(
    topic: TopicName,
    key: Annotated[str, typer.Option("--key", "-k", metavar="KEY", help="One of the message's keys.")],
    since: Annotated[
        str,
        typer.Option("--since", metavar="WHEN", help="Stored then or later: 10m, yesterday, an ISO time."),
    ] = "beginning",
    until: Annotated[
        str, typer.Option("--until", metavar="WHEN", help="Stored then or before, said in the same way.")
    ] = "end",
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=64, metavar="N", help="At most so many, the newest.")
    ] = 64,
    as_json: AsJsonLines = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Messages of a topic that have a key, oldest first.

    Brokers keep an index of all keys and give up to 64 messages for one of them.
    The key is compared whole: upper and lower case differ.
    A broker that does not answer is named, with exit code 3 (1 when it refuses), and what others have is shown.

    [bold]Examples[/bold]

        bolide message find orders --key 42
        bolide message find orders --key 42 --since 2h --json | jq -r .body
    """
    from bolide.admin.messages import find_messages

    since_ms, until_ms = _window(since, until)
    silent: Silent = {}
    found = ask(
        nameserver,
        lambda servers: find_messages(
            servers, topic, key, since_ms=since_ms, until_ms=until_ms, count_max=limit, silent=silent
        ),
    )
    if not found and not silent:
        raise NothingFound(f"no broker of {topic} that is up has a message with the key {key!r} in this time")
    if as_json:
        write_json_lines(found)
    elif found:
        write_list(found)
    end_for(silent, ", so its messages are missing here")


@app.command()
def get(
    message_id: MessageId,
    topic: TopicOfId = None,
    as_json: AsJsonLines = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Everything about one message.

    A message has two ids: the unique id, given by its producer, and the offset id, given by its broker.
    A unique id is looked up in a topic, so it needs --topic; an offset id says by itself where the message lies.

    [bold]Examples[/bold]

        bolide message get 7F00000100002A9F0000000000000162
        bolide message get 7F0000015FA1257ECA984ACE66A50001 --topic orders
    """
    found = ask(nameserver, lambda servers: message_of(servers, message_id, topic))
    if as_json:
        write_json_lines([found])
    else:
        write_whole(found)


@app.command()
def at(
    topic: TopicName,
    queue: Annotated[int, typer.Argument(min=0, metavar="QUEUE", help="The number of its queue.")],
    offset: Annotated[int, typer.Argument(min=0, metavar="OFFSET", help="Its offset there.")],
    broker: Annotated[
        str | None,
        typer.Option(
            "--broker", metavar="NAME", help="Where several have this queue.", autocompletion=complete.brokers
        ),
    ] = None,
    as_json: AsJsonLines = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Everything about the message at an offset of a queue.

    [bold]Examples[/bold]

        bolide message at orders 3 1200
        bolide message at orders 3 1200 --broker broker-b --json
    """
    found = ask(nameserver, lambda servers: _message_there(servers, topic, queue, offset, broker))
    if as_json:
        write_json_lines([found])
    else:
        write_whole(found)


@app.command()
def track(
    message_id: MessageId,
    topic: TopicOfId = None,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Who has consumed a message: each group that reads its topic, and how far it is.

    A group is past a message when its offset is. Whether the listener liked it, offsets do not tell:
    a message that failed comes again from the group's retries, or lies in %DLQ%GROUP.

    [bold]Examples[/bold]

        bolide message track 7F00000100002A9F0000000000000162
        bolide message track 7F0000015FA1257ECA984ACE66A50001 --topic orders
    """
    tracks = ask(nameserver, lambda servers: _tracks(servers, message_id, topic))
    if as_json:
        write_json(
            [
                {"group": one.group, "state": one.state.name, "members": one.members, "before": one.before}
                for one in tracks
            ]
        )
    elif tracks:
        write_table(
            ("GROUP", "CONSUMED", "MEMBERS", "BEFORE IT"),
            [(one.group, one.state.value, one.members, one.before) for one in tracks],
        )
    else:
        say("no group reads the topic of this message")


app.command()(message_again.consume)
app.command()(message_again.resend)
app.command()(message_again.replay)
app.command()(message_recall.recall)


async def _message_there(
    servers: "AdminConnection", topic: str, queue_id: int, offset: int, broker: str | None
) -> "StoredMessage":
    from bolide.admin.queues import message_at

    return await message_at(servers, await one_queue(servers, topic, queue_id, broker), offset)


async def _tracks(servers: "AdminConnection", message_id: str, topic: str | None) -> "list[Track]":
    from bolide.admin.track import track as track_message

    return await track_message(servers, await message_of(servers, message_id, topic))


def _window(since: str, until: str) -> tuple[int, int]:
    from bolide.admin.messages import END_MS
    from bolide.net.clock import SystemClock

    now_ms = SystemClock().now_ms()
    since_ms, until_ms = parse_since(since, now_ms), parse_since(until, now_ms)
    if since_ms is None:
        raise ConfigError("--since end would find nothing: give a moment before now")
    if until_ms is not None and until_ms < since_ms:
        raise ConfigError("--until lies before --since")
    return since_ms, END_MS if until_ms is None else until_ms
