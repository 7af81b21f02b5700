"""`bolide group create`, `update` and `delete`: the settings of consumer groups."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.cli.ask import ask, confirm
from bolide.cli.options import (
    DEFAULT_NAMESERVER,
    AsJson,
    GroupName,
    IfNotExists,
    Nameserver,
    OnBroker,
    OnCluster,
    Preview,
    Yes,
)
from bolide.cli.outcome import Refused
from bolide.cli.output import counted, say, write_json
from bolide.model.errors import ConfigError
from bolide.model.limits import TOPIC_QUEUES_MAX
from bolide.model.names import is_system_group
from bolide.model.numbers import INT32_MAX

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection
    from bolide.admin.groups import GroupChange
    from bolide.model.topic import GroupConfig

NewGroup = Annotated[str, typer.Argument(metavar="GROUP", help="The group's name.")]
Consume = Annotated[
    bool | None, typer.Option("--consume/--no-consume", help="Whether its members get messages at all.")
]
Broadcast = Annotated[
    bool | None,
    typer.Option("--broadcast/--no-broadcast", help="Whether members may each want every message."),
]
Orderly = Annotated[
    bool | None,
    typer.Option("--orderly/--no-orderly", help="A note that it consumes in order; its members decide."),
]
Retries = Annotated[
    int | None,
    typer.Option(
        "--retries",
        min=0,
        max=INT32_MAX,
        metavar="N",
        help="So often a failed message comes again; a limit that its members have goes first.",
    ),
]
RetryQueues = Annotated[
    int | None,
    typer.Option(
        "--retry-queues", min=1, max=TOPIC_QUEUES_MAX, metavar="N", help="Queues of its topic of retries."
    ),
]
Timeout = Annotated[
    int | None,
    typer.Option(
        "--timeout",
        min=1,
        max=INT32_MAX,
        metavar="MINUTES",
        help="A note of how long consuming may take; members keep their own.",
    ),
]


def create(
    group: NewGroup,
    consume: Consume = None,
    broadcast: Broadcast = None,
    orderly: Orderly = None,
    retries: Retries = None,
    retry_queues: RetryQueues = None,
    timeout: Timeout = None,
    cluster: OnCluster = None,
    broker: OnBroker = None,
    if_not_exists: IfNotExists = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Create a group on every master of a cluster, before its first consumer comes.

    A group that exists is left as it is, with exit code 1; `bolide group update` changes it.
    Brokers that do not make groups by themselves (autoCreateSubscriptionGroup=false) want this first.

    [bold]Examples[/bold]

        bolide group create readers
        bolide group create readers --retries 3 --orderly
    """
    from bolide.admin.groups import create_group
    from bolide.model.topic import GroupConfig

    change = _change(consume, broadcast, orderly, retries, retry_queues, timeout)
    config = change.applied(GroupConfig(group))
    names = ask(
        nameserver,
        lambda servers: create_group(
            servers, config, cluster=cluster, broker=broker, if_not_exists=if_not_exists
        ),
    )
    if as_json:
        write_json({"group": group, "brokers": names})
    elif names:
        say(f"created {group} on {', '.join(names)}")
    else:
        say(f"{group} exists and was left as it is; `bolide group describe {group}` shows it")


def update(
    group: GroupName,
    consume: Consume = None,
    broadcast: Broadcast = None,
    orderly: Orderly = None,
    retries: Retries = None,
    retry_queues: RetryQueues = None,
    timeout: Timeout = None,
    broker: OnBroker = None,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Change some settings of a group and leave the others as they are.

    [bold]Examples[/bold]

        bolide group update readers --retries 3
        bolide group update readers --no-consume      # pauses all its members
        bolide group update readers --consume         # and lets them go on
    """
    from bolide.admin.groups import GroupChange, update_group

    change = _change(consume, broadcast, orderly, retries, retry_queues, timeout)
    if change == GroupChange():
        raise ConfigError(
            "nothing to change: give --consume, --broadcast, --orderly, --retries, --retry-queues or --timeout"
        )
    changed = ask(nameserver, lambda servers: update_group(servers, group, change, broker=broker))
    if as_json:
        write_json(
            {"group": group, "brokers": {name: settings_json(config) for name, config in changed.items()}}
        )
    else:
        say(f"changed {group} on {', '.join(changed)}")


def delete(
    group: GroupName,
    keep_offsets: Annotated[
        bool, typer.Option("--keep-offsets", help="A group of that name goes on where this one was.")
    ] = False,
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Delete a group, its settings and its offsets. Its messages stay where they are.

    A group with connected members is not deleted: they would make it again.
    Asks first on a terminal; elsewhere it wants --yes.
    """
    from bolide.admin.groups import delete_group

    if is_system_group(group):
        raise Refused(
            f"{group} is a group of RocketMQ's own, without which brokers do not work as they should"
        )
    names, members, behind = ask(nameserver, lambda servers: _at_stake(servers, group))
    loss = (
        "keeps its offsets"
        if keep_offsets
        else f"forgets how far it was, with {counted(behind, 'message')} before it"
    )
    if members:
        raise Refused(
            f"{group} has {counted(members, 'connected member')}, who would make it again: stop them first"
        )
    if preview:
        if as_json:
            write_json({"group": group, "brokers": names, "behind": behind, "preview": True})
        else:
            say(f"{group} would go from {', '.join(names)}; it {loss}. Nothing was changed")
        return
    confirm(
        f"Delete {group}? It {loss}.",
        yes=yes,
        stakes=f"this deletes the group {group}",
        otherwise="nothing was deleted",
    )
    names = ask(nameserver, lambda servers: delete_group(servers, group, with_offsets=not keep_offsets))
    if as_json:
        write_json({"group": group, "brokers": names, "behind": behind, "preview": False})
    else:
        say(f"deleted {group} on {', '.join(names)}")


async def _at_stake(servers: "AdminConnection", group: str) -> tuple[list[str], int, int]:
    """Brokers that have it, members, messages before it."""
    from bolide.admin.groups import group_configs, group_members
    from bolide.admin.progress import group_progress

    configs = await group_configs(servers, group)
    members = await group_members(servers, group)
    progress = await group_progress(servers, group)
    return list(configs), len(members.members), sum(max(0, one.behind) for one in progress.values())


def settings_json(config: "GroupConfig") -> dict[str, Any]:
    return {
        "consume": config.consume_enable,
        "broadcast": config.consume_broadcast_enable,
        "orderly": config.consume_message_orderly,
        "retries": config.retry_max_times,
        "retry_queues": config.retry_queues,
        "timeout_minutes": config.consume_timeout_minute,
    }


def _change(
    consume: bool | None,
    broadcast: bool | None,
    orderly: bool | None,
    retries: int | None,
    retry_queues: int | None,
    timeout: int | None,
) -> "GroupChange":
    from bolide.admin.groups import GroupChange

    return GroupChange(
        consume_enable=consume,
        consume_broadcast_enable=broadcast,
        consume_message_orderly=orderly,
        retry_max_times=retries,
        retry_queues=retry_queues,
        consume_timeout_minute=timeout,
    )
