"""How a command asks: a cluster, with one connection for one question, and the person who typed it."""

import asyncio
import difflib
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from bolide.cli.outcome import ExitCode
from bolide.cli.output import say
from bolide.model.errors import BolideError, ConfigError, RouteNotFound
from bolide.model.printable import printable

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection

T = TypeVar("T")

CLOSE = 0.8
"""How alike two names are when one may be the other, misspelled."""


def ask(nameserver: str, work: "Callable[[AdminConnection], Coroutine[Any, Any, T]]") -> T:
    """Run an operation of `bolide.admin` to its end."""
    from bolide.admin.connection import AdminConnection

    async def run() -> T:
        async with AdminConnection(nameserver) as servers:
            return await work(servers)

    return asyncio.run(run())


async def did_you_mean(nameserver: str, topic: str, error: BolideError) -> BolideError:
    """The error about a topic that is missing; where there is one of a close name, it names that instead."""
    from bolide.admin.connection import AdminConnection
    from bolide.admin.topics import list_topics

    try:
        async with AdminConnection(nameserver) as servers:
            topics = await list_topics(servers)
    except BolideError:
        return error  # the first answer is the better one
    near = difflib.get_close_matches(topic, topics, n=1, cutoff=CLOSE)
    if topic in topics or not near:
        return error
    return RouteNotFound(f"no broker has the topic {topic!r}: did you mean {printable(near[0])}?")


def confirm(question: str, *, yes: bool, stakes: str, otherwise: str) -> None:
    """Go on only when the person says so; where nobody can be asked, `--yes` must have said it."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise ConfigError(f"{stakes}: say --yes when nobody is there to be asked")
    if not typer.confirm(question, err=True):
        say(otherwise)
        raise typer.Exit(ExitCode.FAILED)
