"""How a command asks: a cluster, with one connection for one question, and the person who typed it."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from bolide.cli.access import access
from bolide.cli.outcome import ExitCode
from bolide.cli.output import can_be_steered, say
from bolide.model.errors import BolideError, CallTimeout, ConfigError, ConnectionLost, NoBroker, RouteNotFound

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection

WATCH_S = 2.0
CLEAR = "\x1b[H\x1b[J"

T = TypeVar("T")


def ask(nameserver: str, work: "Callable[[AdminConnection], Coroutine[Any, Any, T]]") -> T:
    """Run an operation of `bolide.admin` to its end."""
    from bolide.admin.connection import AdminConnection

    async def run() -> T:
        async with AdminConnection(nameserver, **access()) as servers:
            return await work(servers)

    return asyncio.run(run())


async def watching(look: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Look again and again, on a terminal always at the same place.  A server that goes away is waited for; one that
    was never there may be the wrong address."""
    from bolide.net.ticks import pause

    was_there = False
    while True:
        if can_be_steered(sys.stdout):
            print(CLEAR, end="")
        try:
            await look()
            was_there = True
        except (ConnectionLost, CallTimeout, NoBroker) as error:
            if not was_there:
                raise
            say(f"{error}; looking again")
        sys.stdout.flush()
        await pause(WATCH_S)


async def did_you_mean(nameserver: str, topic: str, error: BolideError) -> BolideError:
    """A client's error; one about a missing topic names the topic of a close name instead, where there is one."""
    from bolide.admin.connection import AdminConnection
    from bolide.admin.topics import did_you_mean as meant

    if not isinstance(error, RouteNotFound):
        return error
    async with AdminConnection(nameserver, **access()) as servers:
        return await meant(servers, topic, error)


def confirm(question: str, *, yes: bool, stakes: str, otherwise: str) -> None:
    """Go on only when the person says so; where nobody can be asked, `--yes` must have said it."""
    if yes:
        return
    check_can_ask(stakes)
    if not typer.confirm(question, err=True):
        say(otherwise)
        raise typer.Exit(ExitCode.FAILED)


def check_can_ask(stakes: str) -> None:
    """`ConfigError` where nobody is there who could say yes."""
    if not sys.stdin.isatty():
        raise ConfigError(f"{stakes}: say --yes when nobody is there to be asked")
