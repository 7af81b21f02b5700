"""`bolide message …`: find messages by key, and show one by its id."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bolide.cli import complete
from bolide.cli.ask import ask
from bolide.cli.options import DEFAULT_NAMESERVER, Nameserver
from bolide.cli.output import say, write_table
from bolide.cli.since import format_moment, parse_since
from bolide.model.errors import ConfigError, NothingFound
from bolide.model.printable import printable_bytes

if TYPE_CHECKING:
    from bolide.model.message import StoredMessage

BODY_SHOWN = 40
"""Characters of a body in a table."""

app = typer.Typer(
    help="Find messages by key, show one by its id.", no_args_is_help=True, rich_markup_mode="rich"
)

AsJsonLines = Annotated[
    bool, typer.Option("--json", help="One JSON object per line; `bolide send --json` reads it.")
]


@app.command()
def find(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Where to look.", autocompletion=complete.topics)
    ],
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

    [bold]Examples[/bold]

        bolide message find orders --key 42
        bolide message find orders --key 42 --since 2h --json | jq -r .body
    """
    from bolide.admin.messages import find_messages

    since_ms, until_ms = _window(since, until)
    found = ask(
        nameserver,
        lambda servers: find_messages(
            servers, topic, key, since_ms=since_ms, until_ms=until_ms, count_max=limit
        ),
    )
    if not found:
        raise NothingFound(f"no broker of {topic} that is up has a message with the key {key!r} in this time")
    if as_json:
        _write_json(*found)
    else:
        _write_list(found)


@app.command()
def get(
    message_id: Annotated[str, typer.Argument(metavar="ID", help="The message's id, see above.")],
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic",
            "-t",
            metavar="TOPIC",
            help="The topic of a unique id.",
            autocompletion=complete.topics,
        ),
    ] = None,
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
    from bolide.admin.messages import message_by_offset_id, message_by_unique_id

    if topic is None:
        found = ask(nameserver, lambda servers: message_by_offset_id(servers, message_id))
    else:
        found = ask(nameserver, lambda servers: message_by_unique_id(servers, topic, message_id))
    if as_json:
        _write_json(found)
    else:
        _write_whole(found)


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


def _write_json(*messages: "StoredMessage") -> None:
    from bolide.cli.layout import json_line

    for message in messages:
        sys.stdout.buffer.write(json_line(message))
    sys.stdout.buffer.flush()


def _write_list(messages: "list[StoredMessage]") -> None:
    from bolide.cli.layout import shown_body

    write_table(
        ("STORED", "BROKER", "QUEUE", "OFFSET", "ID", "TAG", "KEYS", "BODY"),
        [
            (
                format_moment(message.store_timestamp_ms),
                message.broker_name,
                message.queue_id,
                message.queue_offset,
                message.message_id,
                message.tags or "-",
                " ".join(message.keys),
                _beginning(shown_body(message)),
            )
            for message in messages
        ],
    )
    say(f"{len(messages)} found")


def _write_whole(message: "StoredMessage") -> None:
    from bolide.cli.layout import shown_body

    rows = {
        "id": message.message_id,
        "offset id": message.offset_message_id,
        "topic": message.topic,
        "place": f"broker {message.broker_name}, queue {message.queue_id}, offset {message.queue_offset}",
        "stored": f"{format_moment(message.store_timestamp_ms)} at {message.store_host}",
        "sent": f"{format_moment(message.born_timestamp_ms)} from {message.born_host}",
        "retries": str(message.reconsume_times),
        **dict(message.properties),
        "body": f"{len(message.body)} bytes",
    }
    width = max(map(len, rows))
    text = (
        "".join(f"{name:<{width}}  {value}\n" for name, value in rows.items()).encode()
        + b"\n"
        + shown_body(message)
    )
    out = sys.stdout.buffer
    out.write(printable_bytes(text) if sys.stdout.isatty() else text)
    out.write(b"" if text.endswith(b"\n") else b"\n")
    out.flush()


def _beginning(body: bytes) -> str:
    """The first characters of a body, in one line."""
    text = body[: 4 * BODY_SHOWN].decode("utf-8", "replace").replace("\n", " ").replace("\t", " ")
    return text[:BODY_SHOWN] + ("…" if len(text) > BODY_SHOWN or len(body) > 4 * BODY_SHOWN else "")
