"""`bolide topic …`: list, describe, create, update and delete topics."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.cli.ask import ask
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, Nameserver
from bolide.cli.outcome import ExitCode
from bolide.cli.output import counted, say, write_json, write_line, write_table
from bolide.cli.since import format_moment
from bolide.model.errors import ConfigError

if TYPE_CHECKING:
    from bolide.admin.topics import TopicDescription
    from bolide.model.topic import Permission, TopicConfig

app = typer.Typer(
    help="List, describe, create, change and delete topics.", no_args_is_help=True, rich_markup_mode="rich"
)

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
Queues = Annotated[
    int | None, typer.Option("--queues", "-q", min=1, metavar="N", help="Read and write queues per broker.")
]
ReadQueues = Annotated[
    int | None, typer.Option("--read-queues", min=1, metavar="N", help="Queues that consumers read.")
]
WriteQueues = Annotated[
    int | None, typer.Option("--write-queues", min=1, metavar="N", help="Queues that producers send to.")
]
Perm = Annotated[
    str | None, typer.Option("--perm", metavar="PERM", help="What clients may do: rw, r, w or none.")
]
Order = Annotated[
    bool | None, typer.Option("--order/--no-order", help="Whether the topic is marked as ordered.")
]
Broker = Annotated[str | None, typer.Option("--broker", metavar="NAME", help="Only on this broker.")]
Cluster = Annotated[
    str | None, typer.Option("--cluster", metavar="NAME", help="On the masters of this cluster.")
]

PERMISSIONS = {"none": 0, "w": 2, "r": 4, "rw": 6, "wr": 6}


@app.command("list")
def list_(
    system: Annotated[
        bool, typer.Option("--system", help="Also the topics that RocketMQ itself uses.")
    ] = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Names of all topics, one per line."""
    from bolide.admin.topics import list_topics

    topics = ask(nameserver, lambda servers: list_topics(servers, system=system))
    if as_json:
        write_json(topics)
    elif topics:
        for name in topics:
            write_line(name)
    else:
        say("there are no topics yet; `bolide topic create NAME` makes one, and so does a first send")


@app.command()
def describe(topic: Topic, as_json: AsJson = False, nameserver: Nameserver = DEFAULT_NAMESERVER) -> None:
    """Settings on every broker, and each queue with its offsets and the time of its last message."""
    from bolide.admin.topics import describe_topic

    found = ask(nameserver, lambda servers: describe_topic(servers, topic))
    if as_json:
        write_json(_as_json(found))
        return
    print(f"{topic}: {counted(found.messages, 'message')} in {counted(len(found.queues), 'queue')}\n")
    write_table(
        ("BROKER", "ADDRESS", "READ", "WRITE", "PERM"),
        [
            (name, found.addresses[name], config.read_queues, config.write_queues, _perm_text(config))
            for name, config in found.configs.items()
        ],
    )
    print()
    write_table(
        ("BROKER", "QUEUE", "FIRST", "NEXT", "MESSAGES", "LAST STORED"),
        [
            (
                queue.broker_name,
                queue.queue_id,
                queue.bounds.offset_min,
                queue.bounds.offset_max,
                queue.messages,
                format_moment(queue.bounds.last_stored_ms) if queue.bounds.last_stored_ms > 0 else "-",
            )
            for queue in found.queues
        ],
    )


@app.command()
def create(
    topic: Topic,
    queues: Queues = None,
    read_queues: ReadQueues = None,
    write_queues: WriteQueues = None,
    perm: Perm = None,
    order: Order = None,
    cluster: Cluster = None,
    broker: Broker = None,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Create a topic on every master of a cluster; when this returns, clients can use it.

    A topic that exists gets these settings.
    Without --queues it has 8 read and 8 write queues on each broker.

    [bold]Examples[/bold]

        bolide topic create orders
        bolide topic create orders --queues 16 --broker broker-a
    """
    from bolide.admin.topics import create_topic
    from bolide.model.topic import TopicConfig

    each = queues or 8
    config = TopicConfig(
        topic,
        read_queues=read_queues or each,
        write_queues=write_queues or each,
        perm=_perm(perm) if perm is not None else 6,
        order=bool(order),
    )
    names = ask(nameserver, lambda servers: create_topic(servers, config, cluster=cluster, broker=broker))
    if as_json:
        write_json({"topic": topic, "brokers": names})
    else:
        say(f"created {topic} on {', '.join(names)}")


@app.command()
def update(
    topic: Topic,
    queues: Queues = None,
    read_queues: ReadQueues = None,
    write_queues: WriteQueues = None,
    perm: Perm = None,
    order: Order = None,
    broker: Broker = None,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Change some settings of a topic and leave the others as they are.

    To make a topic smaller and lose nothing: lower --write-queues, wait until
    the queues above are read, then lower --read-queues.

    [bold]Examples[/bold]

        bolide topic update orders --write-queues 8
        bolide topic update orders --perm r            # no more sends
    """
    from bolide.admin.topics import TopicChange, update_topic

    change = TopicChange(
        read_queues=read_queues or queues,
        write_queues=write_queues or queues,
        perm=_perm(perm) if perm is not None else None,
        order=order,
    )
    if change == TopicChange():
        raise ConfigError(
            "nothing to change: give --queues, --read-queues, --write-queues, --perm or --order"
        )
    changed = ask(nameserver, lambda servers: update_topic(servers, topic, change, broker=broker))
    if as_json:
        write_json({"topic": topic, "brokers": {name: _settings(config) for name, config in changed.items()}})
    else:
        say(f"changed {topic} on {', '.join(changed)}")


@app.command()
def delete(
    topic: Topic,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Delete a topic with its queues. Asks first on a terminal; elsewhere it wants --yes."""
    from bolide.admin.topics import delete_topic

    _confirm(f"Delete {topic} and the messages in its queues?", yes)
    names = ask(nameserver, lambda servers: delete_topic(servers, topic))
    if as_json:
        write_json({"topic": topic, "brokers": names})
    else:
        say(f"deleted {topic} on {', '.join(names)}")


def _confirm(question: str, yes: bool) -> None:
    import sys

    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError("this deletes messages: say --yes when nobody is there to be asked")
    if not typer.confirm(question, err=True):
        say("nothing was deleted")
        raise typer.Exit(ExitCode.FAILED)


def _perm(text: str) -> "Permission":
    from bolide.model.topic import Permission

    number = PERMISSIONS.get(text.lower())
    if number is None:
        raise ConfigError(f"--perm is rw, r, w or none, not {text[:16]!r}")
    return Permission(number)


def _perm_text(config: "TopicConfig") -> str:
    return ("r" if config.readable else "") + ("w" if config.writable else "") or "none"


def _settings(config: "TopicConfig") -> dict[str, Any]:
    return {
        "read_queues": config.read_queues,
        "write_queues": config.write_queues,
        "perm": _perm_text(config),
        "order": config.order,
    }


def _as_json(found: "TopicDescription") -> dict[str, Any]:
    return {
        "topic": found.name,
        "messages": found.messages,
        "brokers": {
            name: {"address": found.addresses[name], **_settings(config)}
            for name, config in found.configs.items()
        },
        "queues": [
            {
                "broker": queue.broker_name,
                "queue": queue.queue_id,
                "offset_min": queue.bounds.offset_min,
                "offset_max": queue.bounds.offset_max,
                "messages": queue.messages,
                "last_stored_ms": queue.bounds.last_stored_ms,
            }
            for queue in found.queues
        ],
    }
