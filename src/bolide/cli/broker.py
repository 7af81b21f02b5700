"""`bolide broker …`: look after brokers that run; without a sub-command it runs one (`serve.py`)."""

import difflib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.cli import complete, serve
from bolide.cli.ask import ask, confirm
from bolide.cli.options import (
    DEFAULT_NAMESERVER,
    AsJson,
    BrokerName,
    Nameserver,
    OfCluster,
    Preview,
    Settings,
    Verbose,
    Yes,
)
from bolide.cli.outcome import Refused
from bolide.cli.output import counted, say, write_json, write_line, write_table
from bolide.cli.settings import parse_assignments
from bolide.cli.silent import end_for, silence
from bolide.cli.since import format_moment
from bolide.cli.spans import format_bytes, format_span
from bolide.model.errors import BolideError, ConfigError, NothingFound

if TYPE_CHECKING:
    from bolide.admin.brokers import BrokerReport
    from bolide.admin.connection import AdminConnection

app = typer.Typer(invoke_without_command=True, rich_markup_mode="rich", subcommand_metavar="[COMMAND]")
config_app = typer.Typer(
    help="See a broker's settings, and change those that may change while it runs.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.add_typer(config_app, name="config")

TOPICS_SHOWN = 5


@app.callback(help=serve.BROKER_HELP)
def run(
    ctx: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="The original's broker.conf, or TOML."),
    ] = None,
    nameserver: Annotated[
        str | None,
        typer.Option(
            "--nameserver",
            "-n",
            metavar="ADDRESS",
            help="Name server to register with, host:port; several with ';' between them.",
            show_default="namesrvAddr of the file, else BOLIDE_NAMESERVER or NAMESRV_ADDR",
        ),
    ] = None,
    settings: Settings = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say what would keep a broker from starting, and start nothing.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    if ctx.invoked_subcommand is None:
        serve.broker(config, nameserver, settings, check=check, verbose=verbose)
    elif config or nameserver or settings or check or verbose:
        raise ConfigError(
            f"options before {ctx.invoked_subcommand} would be of a broker that is started here: write them behind it"
        )


@app.command("list")
def list_(
    cluster: OfCluster = None,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Every broker that is registered: messages per second in and out, disk, how long it is up.

    A broker that does not answer is named, with exit code 3 (1 when it refuses), and the others are shown.
    """
    reports, now_ms = ask(nameserver, lambda servers: look(servers, cluster=cluster))
    if as_json:
        write_json([report_json(report, now_ms) for report in reports])
    else:
        write_reports(reports, now_ms)
    end_for(silent_in(reports))


@app.command()
def describe(
    broker: BrokerName, as_json: AsJson = False, nameserver: Nameserver = DEFAULT_NAMESERVER
) -> None:
    """How a broker is: what it takes and gives, how full its disk is, what waits.

    --json has all figures as the broker tells them.
    """
    reports, now_ms = ask(nameserver, lambda servers: look(servers, broker=broker))
    if as_json:
        write_json(
            [{**report_json(report, now_ms), "figures": dict(report.figures or {})} for report in reports]
        )
    else:
        for report in reports:
            if report.figures is not None:
                _write_words(report, now_ms)
    end_for(silent_in(reports))


@app.command()
def drain(
    broker: BrokerName,
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Take no more messages, and let consumers finish: before maintenance.

    Producers go to other brokers with their next look at the route, within half a minute.
    It lasts until `bolide broker undrain`, or until the broker starts again.

    [bold]Examples[/bold]

        bolide broker drain broker-a --preview
        bolide broker drain broker-a --yes && bolide group lag --watch
    """
    from bolide.admin.brokers import PERMISSION, change_settings, only_there

    topics = ask(nameserver, lambda servers: only_there(servers, broker))
    if topics:
        more = f" and {len(topics) - TOPICS_SHOWN} more" if len(topics) > TOPICS_SHOWN else ""
        say(
            f"only {broker} takes messages of {', '.join(topics[:TOPICS_SHOWN])}{more}: their producers will fail"
        )
    if preview:
        if as_json:
            write_json({"broker": broker, "only_there": topics, "preview": True})
        else:
            say(f"{broker} would take no more messages. Nothing was changed")
        return
    confirm(
        f"Let {broker} take no more messages?",
        yes=yes,
        stakes="producers are turned away from this broker",
        otherwise="nothing was changed",
    )
    ask(nameserver, lambda servers: change_settings(servers, broker, {PERMISSION: "4"}))
    if as_json:
        write_json({"broker": broker, "only_there": topics, "preview": False})
    else:
        say(f"{broker} takes no more messages; `bolide broker undrain {broker}` ends that")


@app.command()
def undrain(
    broker: BrokerName,
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Take messages again: producers come back within half a minute.

    Asks first, as drain does: somebody may still work on the machine.
    """
    from bolide.admin.brokers import PERMISSION, change_settings, master_address

    if preview:
        ask(nameserver, lambda servers: master_address(servers, broker))  # whether there is one
    else:
        confirm(
            f"Let {broker} take messages again?",
            yes=yes,
            stakes="producers come back to this broker",
            otherwise="nothing was changed",
        )
        ask(nameserver, lambda servers: change_settings(servers, broker, {PERMISSION: "6"}))
    if as_json:
        write_json({"broker": broker, "preview": preview})
    else:
        say(
            f"{broker} would take messages again. Nothing was changed"
            if preview
            else f"{broker} takes messages again"
        )


@config_app.command("get")
def config_get(
    broker: BrokerName,
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY]...", help="All, when none is named.", autocompletion=complete.settings),
    ] = None,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """What a broker runs with, and what of it may change while it runs.

    [bold]Examples[/bold]

        bolide broker config get broker-a
        bolide broker config get broker-a fileReservedTime deleteWhen
    """
    from bolide.admin.brokers import settings_of
    from bolide.broker.config import BrokerConfig

    told = ask(nameserver, lambda servers: settings_of(servers, broker))
    unknown = [key for key in keys or () if key not in told]
    if unknown:
        raise NothingFound(
            f"{broker} has no setting {', '.join(unknown)}{_meant(unknown[0], told)}; without a key all of them"
            " are shown"
        )
    chosen = {key: told[key] for key in keys or sorted(told)}
    if as_json:
        write_json(chosen)
        return
    live = {key for key, (_, setting) in BrokerConfig.settings().items() if setting.live}
    write_table(
        ("KEY", "VALUE", "WHILE IT RUNS"),
        [(key, value, "may change" if key in live else "-") for key, value in chosen.items()],
    )


@config_app.command("set")
def config_set(
    broker: BrokerName,
    settings: Annotated[
        list[str],
        typer.Argument(metavar="KEY=VALUE...", help="What to change.", autocompletion=complete.settings),
    ],
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Change settings of a broker that runs: all that are given, or none.

    A change lasts until the broker stops: write it into its file too.
    What deletes messages earlier or turns clients away is said and asked about; elsewhere it wants --yes.

    [bold]Examples[/bold]

        bolide broker config set broker-a autoCreateTopicEnable=false
        bolide broker config set broker-a fileReservedTime=48 --preview
    """
    from bolide.admin.brokers import change_settings, settings_of
    from bolide.admin.stakes import stakes_of

    given = parse_assignments(settings, "config set")
    before = ask(nameserver, lambda servers: settings_of(servers, broker))
    _check_change(broker, before, given)
    at_stake = stakes_of(before, given)
    for words in at_stake:
        say(words)
    if not preview:
        if at_stake:
            confirm(
                f"Change that on {broker}?",
                yes=yes,
                stakes="; ".join(at_stake),
                otherwise="nothing was changed",
            )
        ask(nameserver, lambda servers: change_settings(servers, broker, given))
    changes = {key: {"old": before.get(key), "new": value} for key, value in given.items()}
    if as_json:
        write_json({"broker": broker, "preview": preview, "settings": changes, "at_stake": at_stake})
        return
    write_table(
        ("KEY", "BEFORE", "AFTER"), [(key, one["old"] or "-", one["new"]) for key, one in changes.items()]
    )
    say("Nothing was changed" if preview else f"changed on {broker}, until it stops")


def _meant(key: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(key[:64], known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _check_change(broker: str, before: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Refuse here what the broker would refuse, so that a preview tells of it too.

    Of a broker that has other settings than ours, as the original's, only the names are known.
    """
    from bolide.broker.config import BrokerConfig
    from bolide.model.settings_table import FixedSetting

    own = BrokerConfig.settings()
    if not own.keys() <= before.keys():
        for key in given.keys() - before.keys():
            raise ConfigError(f"{broker} has no setting {key[:64]!r}{_meant(key, before)}")
        return
    now = BrokerConfig(**BrokerConfig.examine({key: before[key] for key in own}).values)
    try:
        now.changed(given)
    except FixedSetting as error:
        raise Refused(str(error)) from error


async def look(
    servers: "AdminConnection", *, cluster: str | None = None, broker: str | None = None
) -> "tuple[list[BrokerReport], int]":
    from bolide.admin.brokers import broker_reports

    return await broker_reports(servers, cluster=cluster, broker=broker), servers.clock.now_ms()


def write_reports(reports: "Sequence[BrokerReport]", now_ms: int) -> None:
    write_table(
        ("BROKER", "ID", "ADDRESS", "VERSION", "IN/s", "OUT/s", "DISK", "UP", "STATE"),
        [
            (
                report.name,
                report.broker_id,
                report.address,
                report.version,
                f"{report.rate('putTps'):.0f}",
                f"{report.rate('getTransferredTps'):.0f}",
                f"{report.rate('commitLogDiskRatio'):.0%}",
                format_span(report.up_ms(now_ms)),
                _state(report),
            )
            if report.silent is None
            else (report.name, report.broker_id, report.address, "?", *4 * "-", silence(report.silent))
            for report in reports
        ],
    )


def _state(report: "BrokerReport") -> str:
    if (report.figures or {}).get("putMessageRefusal"):
        return "takes no messages"
    return {True: "drained", False: "takes messages", None: "?"}[report.drained]


def silent_in(reports: "Sequence[BrokerReport]") -> dict[str, BolideError]:
    return {report.name: report.silent for report in reports if report.silent is not None}


def report_json(report: "BrokerReport", now_ms: int) -> dict[str, Any]:
    there = report.figures is not None
    return {
        "broker": report.name,
        "cluster": report.cluster,
        "id": report.broker_id,
        "address": report.address,
        "answers": there,
        "version": report.version if there else None,
        "in_per_s": report.rate("putTps"),
        "out_per_s": report.rate("getTransferredTps"),
        "disk_used": report.rate("commitLogDiskRatio"),
        "log_bytes": report.number("commitLogMaxOffset") - report.number("commitLogMinOffset"),
        "up_ms": report.up_ms(now_ms),
        "drained": report.drained,
        "reason": None if there else str(report.silent),
    }


def _write_words(report: "BrokerReport", now_ms: int) -> None:
    figures = report.figures or {}
    oldest_ms = report.number("earliestMessageTimeStamp")
    log_bytes = report.number("commitLogMaxOffset") - report.number("commitLogMinOffset")
    rows = {
        "broker": f"{report.name}, id {report.broker_id}, of the cluster {report.cluster}",
        "address": report.address,
        "version": report.version,
        "up": f"for {format_span(report.up_ms(now_ms))}, since {format_moment(report.number('bootTimestamp'))}",
        "takes": figures.get("putMessageRefusal")
        or ("no messages: it is drained (`bolide broker undrain`)" if report.drained else "messages"),
        "in": _rates(figures, "putTps"),
        "out": _rates(figures, "getTransferredTps"),
        "today": f"{report.number('msgPutTotalTodayNow') - report.number('msgPutTotalTodayMorning')} stored,"
        f" {report.number('msgGetTotalTodayNow') - report.number('msgGetTotalTodayMorning')} handed out",
        "log": format_bytes(log_bytes)
        + (f", the oldest message is {format_span(now_ms - oldest_ms)} old" if oldest_ms > 0 else ""),
        "disk": f"{report.rate('commitLogDiskRatio'):.1%} used",
        "not yet synced": figures.get("remainHowManyDataToFlush", "?"),
        "index behind": format_bytes(report.number("dispatchBehindBytes")),
        "clients": counted(report.number("connections"), "connection")
        + f", {counted(report.number('heldPulls'), 'pull')} waiting for messages",
    }
    if "connections" not in figures:  # the original does not tell
        del rows["clients"]
    width = max(map(len, rows))
    for name, value in rows.items():
        write_line(f"{name:<{width}}  {value}")


def _rates(figures: Any, key: str) -> str:
    spans = ("10 s", "1 min", "10 min")
    told = [
        f"{float(rate):.1f} ({span})" for rate, span in zip(figures.get(key, "").split(), spans, strict=False)
    ]
    return "messages per second: " + (", ".join(told) or "not told")
