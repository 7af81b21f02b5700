"""`bolide group …`: what there is to see of consumer groups; `group_changes.py` has the commands that change them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.cli import complete, group_changes, group_reset
from bolide.cli.ask import ask, watching
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, GroupName, Nameserver, System
from bolide.cli.output import counted, say, write_json, write_json_line, write_line, write_table
from bolide.cli.silent import end_for, say_silent
from bolide.cli.spans import format_span
from bolide.model.names import RETRY_PREFIX

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection
    from bolide.admin.groups import GroupMembers
    from bolide.admin.many import Silent
    from bolide.admin.progress import TopicLag
    from bolide.admin.subscriptions import Difference
    from bolide.model.topic import GroupConfig

app = typer.Typer(
    help="See how far groups are, who is in them, and move them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command("list")
def list_(
    system: System = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """All groups: members that are connected, and messages they have not consumed.

    A broker that does not answer is named, with exit code 3 (1 when it refuses), and the others are shown.

    [bold]Examples[/bold]

        bolide group list
        bolide group list --json | jq -r '.[] | select(.members == 0) | .group'
    """
    silent: Silent = {}
    rows = ask(nameserver, lambda servers: _overview(servers, system, silent))
    if as_json:
        write_json(rows)
    elif rows:
        write_table(
            ("GROUP", "MEMBERS", "BEHIND"), [(row["group"], row["members"], row["behind"]) for row in rows]
        )
    else:
        say("the brokers have no groups yet; a first consumer makes one, and so does `bolide group create`")
    end_for(silent)


@app.command()
def describe(group: GroupName, as_json: AsJson = False, nameserver: Nameserver = DEFAULT_NAMESERVER) -> None:
    """Settings, members, subscriptions, and how far the group is in every queue.

    Behind counts messages whatever their tags; waiting is how long the oldest of them lies there.
    Members that subscribe differently take messages from each other: that is said first.

    [bold]Examples[/bold]

        bolide group describe readers
        bolide group describe readers --json | jq '.topics[] | {topic, behind, waits_ms}'
    """
    from bolide.admin.subscriptions import differences

    configs, members, lags, now_ms = ask(nameserver, lambda servers: _everything(servers, group))
    differing = differences(members)
    if as_json:
        write_json(
            {
                "group": group,
                **_members_json(members),
                "differences": [
                    {
                        "topic": one.topic,
                        "wanted": [{"by": who, "what": what} for what, who in one.wanted.items()],
                    }
                    for one in differing
                ],
                "settings": {
                    broker: group_changes.settings_json(config) for broker, config in configs.items()
                },
                "behind": sum(lag.behind for lag in lags),
                "waits_ms": max((lag.waits_ms(now_ms) for lag in lags), default=0),
                "topics": [_lag_json(lag, now_ms) for lag in lags],
            }
        )
        return
    write_line(f"{group}: {counted(len(members.members), 'member')}, {_behind(lags, now_ms)}")
    _say_differences(differing)
    _write_settings(configs)
    if members.is_online:
        print()
        _write_members(members)
    if lags:
        print()
        _write_queues(lags, now_ms)


@app.command()
def lag(
    groups: Annotated[
        list[str] | None,
        typer.Argument(metavar="GROUP…", help="All, when none is named.", autocompletion=complete.groups),
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option(
            "--topic", "-t", metavar="TOPIC", help="Only in this topic.", autocompletion=complete.topics
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again every two seconds, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """How far groups are behind, one line for each topic: in messages, and in time.

    Waiting is how long the oldest message lies there that the group has not consumed.
    With --watch --json, one JSON document per line and look.

    [bold]Examples[/bold]

        bolide group lag
        bolide group lag readers --watch
        bolide group lag --json | jq '.[] | select(.waits_ms > 60000)'
    """

    async def look(servers: "AdminConnection") -> None:
        silent: Silent = {}
        lags, now_ms = await _lags(servers, groups or [], topic, silent)
        if as_json:
            rows = [_lag_json(one, now_ms) for one in lags]
            (write_json_line if watch else write_json)(rows)
        elif lags:
            _write_lags(lags, now_ms)
        else:
            say(_no_lag(groups or [], topic))
        (say_silent if watch else end_for)(silent)

    ask(nameserver, (lambda servers: watching(lambda: look(servers))) if watch else look)


@app.command()
def members(group: GroupName, as_json: AsJson = False, nameserver: Nameserver = DEFAULT_NAMESERVER) -> None:
    """Who is connected, with which version, and what for."""
    from bolide.admin.groups import group_members
    from bolide.admin.subscriptions import differences

    async def look(servers: "AdminConnection") -> "GroupMembers":
        from bolide.admin.groups import group_configs

        await group_configs(servers, group)
        return await group_members(servers, group)

    found = ask(nameserver, look)
    if as_json:
        write_json({"group": group, **_members_json(found)})
    elif found.is_online:
        _say_differences(differences(found))
        _write_members(found)
    else:
        say(f"no member of {group} is connected now")


app.command()(group_changes.create)
app.command()(group_changes.update)
app.command()(group_changes.delete)
app.command()(group_reset.reset)
app.command("clone-offsets")(group_reset.clone_offsets)


# ---- asking


async def _overview(servers: "AdminConnection", system: bool, silent: "Silent") -> list[dict[str, Any]]:
    from bolide.admin.groups import group_members, list_groups
    from bolide.admin.many import of_each
    from bolide.admin.progress import group_progress

    async def one(group: str) -> dict[str, Any]:
        members = await group_members(servers, group, silent)
        progress = await group_progress(servers, group, silent=silent)
        behind = sum(max(0, state.behind) for state in progress.values())
        return {"group": group, "members": len(members.members), "behind": behind}

    return await of_each(await list_groups(servers, system=system, silent=silent), one)


async def _everything(
    servers: "AdminConnection", group: str
) -> "tuple[dict[str, GroupConfig], GroupMembers, list[TopicLag], int]":
    from bolide.admin.groups import group_configs, group_members
    from bolide.admin.progress import group_lag

    configs = await group_configs(servers, group)
    members = await group_members(servers, group)
    return configs, members, await group_lag(servers, group), servers.clock.now_ms()


async def _lags(
    servers: "AdminConnection", groups: Sequence[str], topic: str | None, silent: "Silent"
) -> "tuple[list[TopicLag], int]":
    from bolide.admin.groups import group_configs, list_groups
    from bolide.admin.many import of_each
    from bolide.admin.progress import group_lag
    from bolide.admin.topics import topic_route

    for group in groups:
        await group_configs(servers, group, silent)
    if topic is not None:
        await topic_route(servers, topic)
    chosen = groups or await list_groups(servers, silent=silent)
    found = await of_each(chosen, lambda group: group_lag(servers, group, topic, silent))
    return [lag for lags in found for lag in lags], servers.clock.now_ms()


# ---- showing


def _behind(lags: "Sequence[TopicLag]", now_ms: int) -> str:
    behind = sum(lag.behind for lag in lags)
    if not behind:
        return "no message is ready for it"
    waits_ms = max(lag.waits_ms(now_ms) for lag in lags)
    return f"behind by {counted(behind, 'message')} and {format_span(waits_ms)}"


def _no_lag(groups: Sequence[str], topic: str | None) -> str:
    where = f" of {topic}" if topic else ""
    if not groups:
        return f"no group has consumed anything{where} yet"
    who = f"group {groups[0]} has" if len(groups) == 1 else f"groups {', '.join(groups)} have"
    return f"the {who} stored no offset{where} yet"


def _say_differences(differing: "Sequence[Difference]") -> None:
    for one in differing:
        say(f"warning: members want different messages of {one.topic}, so each of them misses some:")
        for what, who in one.wanted.items():
            say(f"  {what or 'nothing'}: {', '.join(who)}")
        say("  Give all members of the group the same subscriptions, or a group each.")


def _write_settings(configs: "dict[str, GroupConfig]") -> None:
    """One column where all brokers agree."""
    told = {broker: group_changes.settings_json(config) for broker, config in configs.items()}
    first = next(iter(told.values()))
    columns = {"VALUE": first} if all(one == first for one in told.values()) else told
    print()
    write_table(
        ("SETTING", *columns), [(name, *(_word(one[name]) for one in columns.values())) for name in first]
    )


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _write_members(found: "GroupMembers") -> None:
    from bolide.model.versions import version_name

    write_table(
        ("MEMBER", "ADDRESS", "LANGUAGE", "VERSION", "ON"),
        [
            (
                member.connection.client_id,
                member.connection.address,
                member.connection.language.lower(),
                version_name(member.connection.version),
                ", ".join(member.brokers),
            )
            for member in found.members
        ],
    )
    print()
    write_table(
        ("SUBSCRIBED TO", "MESSAGES"),
        [
            (
                topic,
                one.expression
                if one.expression_type == "TAG"
                else f"{one.expression_type}: {one.expression}",
            )
            for topic, one in sorted(found.subscriptions.items())
        ],
    )


def _write_queues(lags: "Sequence[TopicLag]", now_ms: int) -> None:
    write_table(
        ("TOPIC", "BROKER", "QUEUE", "OFFSET", "END", "BEHIND", "WAITING"),
        [
            (
                _topic(one.topic),
                queue.queue.broker_name,
                queue.queue.queue_id,
                queue.offset,
                queue.end,
                queue.behind,
                format_span(queue.waits_ms(now_ms)) if queue.behind else "-",
            )
            for one in lags
            for queue in one.queues
        ],
    )


def _write_lags(lags: "Sequence[TopicLag]", now_ms: int) -> None:
    write_table(
        ("GROUP", "TOPIC", "QUEUES", "BEHIND", "WAITING"),
        [
            (
                one.group,
                _topic(one.topic),
                len(one.queues),
                one.behind,
                format_span(one.waits_ms(now_ms)) if one.behind else "-",
            )
            for one in lags
        ],
    )


def _topic(topic: str) -> str:
    return "(its retries)" if topic.startswith(RETRY_PREFIX) else topic


def _lag_json(lag: "TopicLag", now_ms: int) -> dict[str, Any]:
    return {
        "group": lag.group,
        "topic": lag.topic,
        "behind": lag.behind,
        "waits_ms": lag.waits_ms(now_ms),
        "queues": [
            {
                "broker": queue.queue.broker_name,
                "queue": queue.queue.queue_id,
                "offset": queue.offset,
                "end": queue.end,
                "behind": queue.behind,
                "waits_ms": queue.waits_ms(now_ms),
            }
            for queue in lag.queues
        ],
    }


def _members_json(found: "GroupMembers") -> dict[str, Any]:
    from bolide.model.versions import version_name

    consuming = found.consuming
    return {
        "consume_type": consuming.consume_type.value if consuming else None,
        "message_model": consuming.message_model.value if consuming else None,
        "consume_from": consuming.consume_from.value if consuming else None,
        "members": [
            {
                "client_id": member.connection.client_id,
                "address": member.connection.address,
                "language": member.connection.language,
                "version": version_name(member.connection.version),
                "brokers": list(member.brokers),
            }
            for member in found.members
        ],
        "subscriptions": [
            {"topic": topic, "expression": one.expression, "type": one.expression_type}
            for topic, one in sorted(found.subscriptions.items())
        ],
    }
