"""`bolide topic …`: list, describe, create, update and delete topics."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.cli.ask import ask, check_can_ask, confirm
from bolide.cli.options import (
    DEFAULT_NAMESERVER,
    AsJson,
    IfNotExists,
    Nameserver,
    OnBroker,
    OnCluster,
    Preview,
    System,
    TopicName,
    Yes,
)
from bolide.cli.output import counted, say, write_json, write_line, write_table
from bolide.cli.shrink import Wait, change_topic, perm_text
from bolide.cli.silent import end_for
from bolide.cli.since import format_moment
from bolide.model.errors import ConfigError
from bolide.model.limits import TOPIC_QUEUES_MAX
from bolide.model.names import is_system_topic

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection
    from bolide.admin.topics import TopicDescription
    from bolide.model.topic import Permission, TopicConfig

app = typer.Typer(
    help="List, describe, create, change and delete topics.", no_args_is_help=True, rich_markup_mode="rich"
)

NewTopic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]
Queues = Annotated[
    int | None,
    typer.Option(
        "--queues", min=1, max=TOPIC_QUEUES_MAX, metavar="N", help="Read and write queues per broker."
    ),
]
ReadQueues = Annotated[
    int | None,
    typer.Option(
        "--read-queues", min=1, max=TOPIC_QUEUES_MAX, metavar="N", help="Queues that consumers read."
    ),
]
WriteQueues = Annotated[
    int | None,
    typer.Option(
        "--write-queues", min=1, max=TOPIC_QUEUES_MAX, metavar="N", help="Queues that producers send to."
    ),
]
Perm = Annotated[
    str | None, typer.Option("--perm", metavar="PERM", help="What clients may do: rw, r, w or none.")
]
Order = Annotated[
    bool | None, typer.Option("--order/--no-order", help="Whether the topic is marked as ordered.")
]

DEFAULT_QUEUES = 8
QUIET_S = 35
"""Clients ask name servers every 30 seconds where a topic lives (pollNameServerInterval): until then, and a little
longer, a producer may send to a queue that is gone from its topic."""

PERMISSIONS = {"none": 0, "w": 2, "r": 4, "rw": 6, "wr": 6}


@app.command("list")
def list_(
    system: System = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Names of all topics, one per line.

    A broker that is down is unknown to the name server, and so are its topics: stderr says whose these are.
    """
    from bolide.admin.cluster import listed

    topics, brokers = ask(nameserver, lambda servers: _topics_and_brokers(servers, system))
    if as_json:
        write_json(topics)
    elif topics:
        for name in topics:
            write_line(name)
        say(
            f"{counted(len(topics), 'topic')} of {counted(len(brokers), 'broker')} that the name server knows:"
            f" {listed(brokers)}"
        )
    else:
        say("the brokers have no topics yet; `bolide topic create NAME` makes one, and so does a first send")


@app.command()
def describe(topic: TopicName, as_json: AsJson = False, nameserver: Nameserver = DEFAULT_NAMESERVER) -> None:
    """Settings on every broker, and each queue with its offsets and the time of its last message.

    A broker that does not answer is named, with exit code 3 (1 when it refuses), and the others are shown.
    One that is down for good is unknown to the name server: count the brokers.
    """
    from bolide.admin.topics import describe_topic

    found = ask(nameserver, lambda servers: describe_topic(servers, topic, partly=True))
    if as_json:
        write_json(_as_json(found))
    else:
        _write_description(found)
    end_for(found.silent, ", so its queues are missing here")


def _write_description(found: "TopicDescription") -> None:
    brokers = counted(len(found.configs), "broker")
    print(
        f"{found.name}: {counted(found.messages, 'message')} in {counted(len(found.queues), 'queue')} on {brokers}\n"
    )
    write_table(
        ("BROKER", "ADDRESS", "READ", "WRITE", "PERM"),
        [
            (name, found.addresses[name], config.read_queues, config.write_queues, perm_text(config))
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
    topic: NewTopic,
    queues: Queues = None,
    read_queues: ReadQueues = None,
    write_queues: WriteQueues = None,
    perm: Perm = None,
    order: Order = None,
    cluster: OnCluster = None,
    broker: OnBroker = None,
    if_not_exists: IfNotExists = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Create a topic on every master of a cluster; when this returns, clients can use it.

    A topic that exists is left as it is, with exit code 1; `bolide topic update` changes it.
    Without --queues it has 8 read and 8 write queues on each broker.

    [bold]Examples[/bold]

        bolide topic create orders
        bolide topic create orders --queues 16 --broker broker-a
    """
    from bolide.admin.topics import create_topic
    from bolide.model.topic import TopicConfig

    each = queues or DEFAULT_QUEUES
    read = read_queues or max(each, write_queues or 0)
    config = TopicConfig(
        topic,
        read_queues=read,
        write_queues=write_queues or min(each, read),
        perm=_perm(perm) if perm is not None else 6,
        order=bool(order),
    )
    names = ask(
        nameserver,
        lambda servers: create_topic(
            servers, config, cluster=cluster, broker=broker, if_not_exists=if_not_exists
        ),
    )
    if as_json:
        write_json({"topic": topic, "brokers": names})
    elif names:
        say(f"created {topic} on {', '.join(names)}")
    else:
        say(f"{topic} exists and was left as it is; `bolide topic describe {topic}` shows it")


@app.command()
def update(
    topic: TopicName,
    queues: Queues = None,
    read_queues: ReadQueues = None,
    write_queues: WriteQueues = None,
    perm: Perm = None,
    order: Order = None,
    broker: OnBroker = None,
    preview: Preview = False,
    yes: Yes = False,
    force: Annotated[
        bool, typer.Option("--force", help="Take read queues away without waiting for groups to read them.")
    ] = False,
    quiet_s: Annotated[
        int,
        typer.Option(
            "--quiet-time",
            min=0,
            max=3600,
            metavar="SECONDS",
            help="Before read queues go, nothing may have come into them for so long: clients look for changes of"
            " a topic every 30 seconds.",
        ),
    ] = QUIET_S,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Change some settings of a topic and leave the others as they are.

    What lies in a read queue that is taken away could not be read any more.
    So it goes as a write queue first, then this waits until every group has
    consumed it, and only then it goes. Ctrl-C in between loses nothing.

    [bold]Examples[/bold]

        bolide topic update orders --queues 16
        bolide topic update orders --queues 4 --preview
        bolide topic update orders --queues 4 --yes
        bolide topic update orders --perm r            # no more sends
    """
    from bolide.admin.topics import TopicChange

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
    if is_system_topic(topic):
        raise ConfigError(f"the topic {topic} belongs to the broker and cannot be changed")
    wait = Wait(yes=yes, for_groups=not force, quiet_ms=1000 * quiet_s)
    changed = change_topic(nameserver, topic, change, broker, wait, preview=preview)
    if as_json:
        brokers = {name: _settings(config) for name, config in changed.items()}
        write_json({"topic": topic, "brokers": brokers, "preview": preview})
    elif not preview:
        say(f"changed {topic} on {', '.join(changed)}")


@app.command()
def delete(
    topic: TopicName,
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Delete a topic with its queues. Asks first on a terminal; elsewhere it wants --yes.

    --preview tells how many messages that are, and which groups have read some of them.
    """
    from bolide.admin.topics import delete_topic

    if not preview and not yes:
        check_can_ask("this deletes messages")
    found, groups = ask(nameserver, lambda servers: _at_stake(servers, topic))
    stake = f"{counted(found.messages, 'message')} in {counted(len(found.queues), 'queue')}"
    told = {
        "topic": topic,
        "brokers": list(found.configs),
        "messages": found.messages,
        "groups": groups,
        "preview": preview,
    }
    if preview:
        if as_json:
            write_json(told)
        else:
            readers = f", read by {', '.join(groups)}" if groups else ""
            say(
                f"{topic} would go from {', '.join(found.configs)}, with {stake}{readers}. Nothing was deleted"
            )
        return
    confirm(
        f"Delete {topic} and the {stake}?",
        yes=yes,
        stakes=f"this deletes {stake}",
        otherwise="nothing was deleted",
    )
    names = ask(nameserver, lambda servers: delete_topic(servers, topic))
    if as_json:
        write_json({**told, "brokers": names})
    else:
        say(f"deleted {topic} on {', '.join(names)}")


async def _at_stake(servers: "AdminConnection", topic: str) -> "tuple[TopicDescription, list[str]]":
    """What a deletion takes, and which groups have been there."""
    from bolide.admin.topics import describe_topic, groups_of

    return await describe_topic(servers, topic), await groups_of(servers, topic)


async def _topics_and_brokers(servers: "AdminConnection", system: bool) -> "tuple[list[str], list[str]]":
    from bolide.admin.cluster import cluster_info
    from bolide.admin.topics import list_topics

    return await list_topics(servers, system=system), list((await cluster_info(servers)).brokers)


def _perm(text: str) -> "Permission":
    from bolide.model.topic import Permission

    number = PERMISSIONS.get(text.lower())
    if number is None:
        raise ConfigError(f"--perm is rw, r, w or none, not {text[:16]!r}")
    return Permission(number)


def _settings(config: "TopicConfig") -> dict[str, Any]:
    return {
        "read_queues": config.read_queues,
        "write_queues": config.write_queues,
        "perm": perm_text(config),
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
        "silent": {name: str(error) for name, error in found.silent.items()},
    }
