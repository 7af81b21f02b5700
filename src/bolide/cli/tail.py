"""`bolide tail TOPIC`: messages to stdout, as a format string or JSON says."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bolide.cli import tail_options as options
from bolide.cli.access import access
from bolide.cli.ask import did_you_mean
from bolide.cli.options import DEFAULT_NAMESERVER, AsJsonLines, Nameserver
from bolide.cli.output import reader_gone, say, takes_color
from bolide.model.errors import ConfigError, RouteNotFound
from bolide.model.names import TOOLS_GROUP

if TYPE_CHECKING:
    from bolide.aio import StoredMessage
    from bolide.cli.grep import Grep
    from bolide.model.topic import Subscription

DEFAULT_FORMAT = r"%v\n"
DEFAULT_LAST = 10


def tail(
    topic: options.Topic,
    format_: options.Format = DEFAULT_FORMAT,
    as_json: AsJsonLines = False,
    since: options.Since = None,
    until: options.Until = None,
    last: options.Last = DEFAULT_LAST,
    tags: options.Tags = None,
    sql: options.Sql = None,
    keys: options.Keys = None,
    grep: options.GrepPattern = None,
    count: options.Count = None,
    follow: options.Follow = True,
    group: options.Group = None,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    r"""Show a topic's messages: the last ones, then new ones as they come.

    Reads without a group of its own: no consumer notices, and none is made.
    --last counts before --tag, --sql, --key and --grep choose, --count after.

    [bold]Formats[/bold]: text with these marks, and \n \t \\ as usual

        %t topic     %b broker        %q queue      %o offset     %i message id
        %k keys      %T tag           %v body       %l its length %p properties
        %s stored    %S the same, ms  %B sent, ms   %h sent from  %r retries
        %v{hex} %v{base64} %p{NAME} one property, %% itself

    or with these names, and a line feed by itself

        {topic} {broker} {queue} {offset} {id} {offset_id} {keys} {tags} {body} {size}
        {store_time} {store_ms} {born_time} {born_ms} {born_host} {retries} {sharding_key}
        {properties} {properties.NAME} {body:hex} {body:base64} {queue:>3} and {{ itself

    A body that does not unpack is marked in place of its bytes; %v{hex} has these.

    [bold]Examples[/bold]

        bolide tail orders
        bolide tail orders -f '{store_time} {tags} {keys} {body}' --since 10m
        bolide tail orders --json --since beginning --no-follow | jq .body
        bolide tail orders --since yesterday --until today --grep 'timeout|refused'
        bolide tail orders --tag paid --key 42 --count 1
        bolide tail orders --group billing --count 100 --since beginning
    """
    from bolide.client.checks import subscription

    wanted = subscription(topic, " || ".join(tags) if tags else "*", sql)
    pattern = _grep(grep)
    write = _writer(format_, as_json, pattern)
    since_ms, until_ms = _moments(since, until, group)
    plan = _Plan(
        topic=topic,
        since_ms=since_ms,
        until_ms=until_ms,
        last=last if since is None else None,
        choice=wanted,
        keys=frozenset(keys or ()),
        grep=pattern,
        count=count,
        follow=follow and until is None,
        group=group,
    )
    try:
        asyncio.run(_tail_or_say_why_not(nameserver, plan, write))
    except BrokenPipeError:
        reader_gone()


def _moments(since: str | None, until: str | None, group: str | None) -> tuple[int | None, int | None]:
    from bolide.cli.since import format_moment, parse_since
    from bolide.net.clock import SystemClock

    now_ms = SystemClock().now_ms()
    since_ms = parse_since(since, now_ms) if since is not None else None
    if until is None:
        return since_ms, None
    if group is not None:
        raise ConfigError("--until is for reading without a group: a group goes on from its offsets")
    until_ms = parse_since(until, now_ms)
    if until_ms is not None and until_ms > now_ms:
        raise ConfigError(f"--until {until[:64]!r} is still to come ({format_moment(until_ms)})")
    return since_ms, until_ms


def _grep(pattern: str | None) -> "Grep | None":
    from bolide.cli.grep import Grep

    return Grep(pattern) if pattern is not None else None


def _writer(format_: str, as_json: bool, grep: "Grep | None") -> "Callable[[StoredMessage], bytes]":
    """How a message is written: for a terminal tamed, and with what was searched for in colour."""
    from bolide.cli.layout import compile_format, json_line, shown_body
    from bolide.cli.template import compile_template, is_template
    from bolide.model.printable import printable_bytes

    write: Callable[[StoredMessage], bytes] = json_line
    if as_json:
        grep = None
    else:
        grep = grep if takes_color(sys.stdout) else None
        body = shown_body if grep is None else grep.marked_body
        write = compile_template(format_, body) if is_template(format_) else compile_format(format_, body)
    if not sys.stdout.isatty():
        return write
    if grep is None:
        return lambda message: printable_bytes(write(message))
    return lambda message: grep.coloured(printable_bytes(write(message)))


@dataclass(frozen=True, slots=True)
class _Plan:
    """What to read; `last` wins over `since_ms` when it is set."""

    topic: str
    since_ms: int | None
    until_ms: int | None
    last: int | None
    choice: "Subscription"
    keys: frozenset[str]
    grep: "Grep | None"
    count: int | None
    follow: bool
    group: str | None

    def wants(self, message: "StoredMessage") -> bool:
        if self.choice.tags and message.tags not in self.choice.tags:
            return False
        if self.keys and self.keys.isdisjoint(message.keys):
            return False
        return self.grep is None or self.grep.wants(message)


async def _tail_or_say_why_not(
    nameserver: str, plan: _Plan, write: "Callable[[StoredMessage], bytes]"
) -> None:
    printer = _Printer(plan, write)
    try:
        if plan.group is None:
            await _tail(nameserver, plan, printer)
        else:
            await _consume(nameserver, plan, plan.group, printer)
    except RouteNotFound as error:
        raise await did_you_mean(nameserver, plan.topic, error) from error


async def _consume(nameserver: str, plan: _Plan, group: str, printer: "_Printer") -> None:
    from bolide.cli.follow import choice_of
    from bolide.cli.tail_group import read_as_member

    starts: dict[int | None, str] = {0: "first", None: "last"}
    await read_as_member(
        nameserver,
        group,
        plan.topic,
        choice_of(plan.choice),
        start_from=starts.get(plan.since_ms, plan.since_ms or 0),
        follow=plan.follow,
        count=plan.count,
        take=printer.print,
        flush=printer.flush,
    )


async def _tail(nameserver: str, plan: _Plan, printer: "_Printer") -> None:
    from bolide.aio import PullConsumer
    from bolide.cli.follow import arriving, choice_of, last_stored, spans_of_last, spans_since, stored

    choice = choice_of(plan.choice)
    async with PullConsumer(nameserver, group=TOOLS_GROUP, **access()) as consumer:
        if plan.last is not None:
            spans = await spans_of_last(consumer, plan.topic, plan.last, plan.until_ms)
            wanted = filter(plan.wants, await last_stored(consumer, spans, plan.last, choice))
            for message in deque(wanted, maxlen=plan.count):
                printer.print(message)
        else:
            spans = await spans_since(consumer, plan.topic, plan.since_ms, plan.until_ms)
            async for message in stored(consumer, spans, choice):
                printer.print(message)
                if printer.is_done():
                    break
        printer.flush()
        if not plan.follow or printer.is_done():
            return
        async for message in arriving(consumer, plan.topic, spans, choice, _once_in_a_row()):
            printer.print(message)
            if printer.is_done():
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

    def is_done(self) -> bool:
        return self._left == 0

    def print(self, message: "StoredMessage") -> bool:
        """Write it if it is wanted; whether it was."""
        if not self._wants(message):
            return False
        self._out.write(self._write(message))
        if self._left is not None:
            self._left -= 1
        return True

    def flush(self) -> None:
        self._out.flush()


def _once_in_a_row() -> Callable[[str], None]:
    """Says a trouble once, not for every queue and every try."""
    said: list[str] = []

    def on_trouble(text: str) -> None:
        if said[-1:] != [text]:
            said[:] = [text]
            say(f"{text}; trying again")

    return on_trouble
