"""`bolide cluster …`: which clusters there are, and how their brokers are."""

from typing import TYPE_CHECKING, Annotated

import typer

from bolide.cli import broker, cluster_copy, complete
from bolide.cli.ask import ask
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, Nameserver
from bolide.cli.output import counted, write_json, write_line, write_table
from bolide.cli.silent import end_for

if TYPE_CHECKING:
    from bolide.admin.brokers import BrokerReport
    from bolide.admin.connection import AdminConnection
    from bolide.admin.many import Silent

app = typer.Typer(
    help="See clusters, copy their topics, groups and offsets.", no_args_is_help=True, rich_markup_mode="rich"
)


@app.command("list")
def list_(as_json: AsJson = False, nameserver: Nameserver = DEFAULT_NAMESERVER) -> None:
    """Every cluster with its brokers."""
    from bolide.admin.cluster import brokers_there

    info = ask(nameserver, brokers_there)
    if as_json:
        write_json({name: sorted(info.clusters[name]) for name in sorted(info.clusters)})
        return
    write_table(
        ("CLUSTER", "BROKERS", "NAMES"),
        [(name, len(names), ", ".join(sorted(names))) for name, names in sorted(info.clusters.items())],
    )


@app.command()
def describe(
    cluster: Annotated[
        str | None,
        typer.Argument(
            metavar="[CLUSTER]", help="All, when none is named.", autocompletion=complete.clusters
        ),
    ] = None,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Topics, groups and brokers of a cluster, with what goes in and out.

    A broker that does not answer is named, with exit code 3 (1 when it refuses), and the others are shown.
    """
    silent: Silent = {}
    reports, now_ms, topics, groups = ask(nameserver, lambda servers: _look(servers, cluster, silent))
    if as_json:
        write_json(
            {
                "cluster": cluster,
                "topics": topics,
                "groups": groups,
                "brokers": [broker.report_json(report, now_ms) for report in reports],
            }
        )
    else:
        write_line(
            f"{cluster or 'all clusters'}: {counted(len(reports), 'broker')}, {counted(topics, 'topic')},"
            f" {counted(groups, 'group')}"
        )
        print()
        broker.write_reports(reports, now_ms)
    end_for({**broker.silent_in(reports), **silent})


app.command()(cluster_copy.export)
app.command("import")(cluster_copy.import_)


async def _look(
    servers: "AdminConnection", cluster: str | None, silent: "Silent"
) -> "tuple[list[BrokerReport], int, int, int]":
    from bolide.admin.brokers import topics_on
    from bolide.admin.groups import group_tables
    from bolide.model.names import is_system_group

    reports, now_ms = await broker.look(servers, cluster=cluster)
    names = {report.name for report in reports if report.figures is not None}
    topics = {topic for found in (await topics_on(servers, names, silent)).values() for topic in found}
    tables = await group_tables(servers, names, silent)
    groups = {group for found in tables.values() for group in found if not is_system_group(group)}
    return reports, now_ms, len(topics), len(groups)
