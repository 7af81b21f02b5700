"""`bolide tail TOPIC`: messages to stdout, as a format string or JSON says."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from bolide.cli import complete
from bolide.cli.ask import did_you_mean
from bolide.cli.options import DEFAULT_NAMESERVER, AsJsonLines, Nameserver
from bolide.cli.output import reader_gone, say
from bolide.model.errors import RouteNotFound
from bolide.model.names import TOOLS_GROUP

if TYPE_CHECKING:
    from bolide.aio import StoredMessage
    from bolide.model.topic import Subscription

DEFAULT_FORMAT = r"%v\n"
DEFAULT_LAST = 10


Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="What to read.", autocompletion=complete.topics)]
Format = Annotated[
    str, typer.Option("--format", "-f", metavar="FORMAT", help="How to write a message, see above.")
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="WHEN",
        help="From then on: 10m, 2h30m, yesterday, 10:30, an ISO time, milliseconds as %S has them, beginning, end.",
        show_default="the last 10 messages",
    ),
]
Last = Annotated[
    int, typer.Option("--last", min=0, metavar="N", help="Without --since: begin N messages before the end.")
]
Tags = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="Only this tag; may be given often.")
]
Keys = Annotated[
    list[str] | None, typer.Option("--key", "-k", metavar="KEY", help="Only this key; may be given often.")
]
Count = Annotated[int | None, typer.Option("--count", min=1, metavar="N", help="Stop after N messages.")]
Follow = Annotated[
    bool, typer.Option("--follow/--no-follow", help="Wait for new messages, or stop at the present end.")
]


def tail(
    topic: Topic,
    format_: Format = DEFAULT_FORMAT,
    as_json: AsJsonLines = False,
    since: Since = None,
    last: Last = DEFAULT_LAST,
    tags: Tags = None,
    keys: Keys = None,
    count: Count = None,
    follow: Follow = True,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    r"""Show a topic's messages: the last ones, then new ones as they come.

    Reads without a group of its own: no consumer notices, and none is made.
    --last counts before --tag and --key choose, --count after.

    [bold]Formats[/bold]: text with these marks, and \n \t \\ as usual

        %t topic     %b broker        %q queue      %o offset     %i message id
        %k keys      %T tag           %v body       %l its length %p properties
        %s stored    %S the same, ms  %B sent, ms   %h sent from  %r retries
        %v{hex} %v{base64} %p{NAME} one property, %% itself

    A body that does not unpack is marked in place of its bytes; %v{hex} has these.

    [bold]Examples[/bold]

        bolide tail orders
        bolide tail orders -f '%t %q %o %k %T %v\n' --since 10m
        bolide tail orders --json --since beginning --no-follow | jq .body
        bolide tail orders --tag paid --key 42 --count 1
    """
    from bolide.cli.layout import compile_format, json_line
    from bolide.cli.since import parse_since
    from bolide.client.checks import subscription
    from bolide.net.clock import SystemClock

    write = json_line if as_json else compile_format(format_)
    plan = _Plan(
        topic=topic,
        since_ms=parse_since(since, SystemClock().now_ms()) if since is not None else None,
        last=last if since is None else None,
        tags=subscription(topic, " || ".join(tags) if tags else "*"),
        keys=frozenset(keys or ()),
        count=count,
        follow=follow,
    )
    if sys.stdout.isatty():
        write = _tamed(write)
    try:
        asyncio.run(_tail_or_say_why_not(nameserver, plan, write))
    except BrokenPipeError:
        reader_gone()


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to read; `last` wins over `since_ms` when it is set."""

    topic: str
    since_ms: int | None
    last: int | None
    tags: "Subscription"
    keys: frozenset[str]
    count: int | None
    follow: bool

    def wants(self, message: "StoredMessage") -> bool:
        if self.tags.tags and message.tags not in self.tags.tags:
            return False
        return not self.keys or not self.keys.isdisjoint(message.keys)


async def _tail_or_say_why_not(
    nameserver: str, plan: _Plan, write: "Callable[[StoredMessage], bytes]"
) -> None:
    try:
        await _tail(nameserver, plan, write)
    except RouteNotFound as error:
        raise await did_you_mean(nameserver, plan.topic, error) from error


async def _tail(nameserver: str, plan: _Plan, write: "Callable[[StoredMessage], bytes]") -> None:
    from bolide.aio import PullConsumer
    from bolide.cli.follow import arriving, last_stored, spans_of_last, spans_since, stored

    printer = _Printer(plan, write)
    tags = plan.tags.expression
    async with PullConsumer(nameserver, group=TOOLS_GROUP) as consumer:
        if plan.last is not None:
            spans = await spans_of_last(consumer, plan.topic, plan.last)
            wanted = filter(plan.wants, await last_stored(consumer, spans, plan.last))
            for message in deque(wanted, maxlen=plan.count):
                printer.print(message)
        else:
            spans = await spans_since(consumer, plan.topic, plan.since_ms)
            async for message in stored(consumer, spans, tags):
                if printer.print(message):
                    break
        printer.flush()
        if not plan.follow or printer.is_done:
            return
        async for message in arriving(consumer, plan.topic, spans, tags, _once_in_a_row()):
            if printer.print(message):
                break
            printer.flush()
        printer.flush()


class _Printer:
    """Writes what was asked for and counts it."""

    def __init__(self, plan: _Plan, write: "Callable[[StoredMessage], bytes]") -> None:
        self._wants = plan.wants
        self._left = plan.count
        self._write = write
        self._out = sys.stdout.buffer

    @property
    def is_done(self) -> bool:
        return self._left == 0

    def print(self, message: "StoredMessage") -> bool:
        """Write it if it is wanted; whether that was the last one."""
        if not self._wants(message):
            return False
        self._out.write(self._write(message))
        if self._left is not None:
            self._left -= 1
        return self.is_done

    def flush(self) -> None:
        self._out.flush()


def _tamed(write: "Callable[[StoredMessage], bytes]") -> "Callable[[StoredMessage], bytes]":
    from bolide.model.printable import printable_bytes

    return lambda message: printable_bytes(write(message))


def _once_in_a_row() -> Callable[[str], None]:
    """Says a trouble once, not for every queue and every try."""
    said: list[str] = []

    def on_trouble(text: str) -> None:
        if said[-1:] != [text]:
            said[:] = [text]
            say(f"{text}; trying again")

    return on_trouble
