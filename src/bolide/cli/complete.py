"""What a shell may complete: topics, groups, brokers and clusters, asked from the name server that the command line
names, as whom it says and with its TLS, and settings.

A completion says nothing and waits a second at most: without a server there is nothing to choose from.  A name that a
shell would not take as one word is not offered, since whoever runs a broker chooses names.
"""

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import typer

from bolide.cli.access import access, keep_of_line
from bolide.model.errors import BolideError

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection

TIMEOUT_S = 1.0


def topics(ctx: typer.Context, incomplete: str) -> list[str]:
    from bolide.admin.topics import list_topics

    return _asked(ctx, incomplete, list_topics)


def brokers(ctx: typer.Context, incomplete: str) -> list[str]:
    from bolide.admin.cluster import cluster_info

    async def names(servers: "AdminConnection") -> Iterable[str]:
        return (await cluster_info(servers)).brokers

    return _asked(ctx, incomplete, names)


def groups(ctx: typer.Context, incomplete: str) -> list[str]:
    from bolide.admin.groups import list_groups

    return _asked(ctx, incomplete, lambda servers: list_groups(servers, silent={}))


def clusters(ctx: typer.Context, incomplete: str) -> list[str]:
    from bolide.admin.cluster import cluster_info

    async def names(servers: "AdminConnection") -> Iterable[str]:
        return (await cluster_info(servers)).clusters

    return _asked(ctx, incomplete, names)


def settings(ctx: typer.Context, incomplete: str) -> list[str]:
    """Keys of the server that the command runs; what may stand behind one is said when it is wrong."""
    if ctx.info_name == "nameserver":
        from bolide.nameserver.config import NameServerConfig

        known = NameServerConfig().as_settings()
    else:
        from bolide.broker.config import BrokerConfig

        known = BrokerConfig().as_settings()
    return [f"{key}=" for key in sorted(known) if key.startswith(incomplete)]


def _asked(
    ctx: typer.Context, incomplete: str, find: "Callable[[AdminConnection], Awaitable[Iterable[str]]]"
) -> list[str]:
    from bolide.admin.connection import AdminConnection

    async def run() -> list[str]:
        nameserver = ctx.params.get("nameserver") or ""
        async with asyncio.timeout(TIMEOUT_S), AdminConnection(nameserver, **access()) as servers:
            return sorted(await find(servers))

    try:
        keep_of_line(ctx.find_root().params)
        names = asyncio.run(run())
    except (BolideError, OSError):  # a timeout is one of the latter
        return []
    return [name for name in names if name.startswith(incomplete) and shlex.quote(name) == name]
