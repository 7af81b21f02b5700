"""`bolide message consume`, `resend` and `replay`: messages that are delivered once more."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bolide.cli import complete
from bolide.cli.ask import ask, confirm
from bolide.cli.finding import message_of
from bolide.cli.messages_out import beginning
from bolide.cli.options import DEFAULT_NAMESERVER, AsJson, MessageId, Nameserver, Preview, TopicOfId, Yes
from bolide.cli.outcome import ExitCode, Partly, explain
from bolide.cli.output import counted, say, write_json, write_table
from bolide.cli.progress import status_line
from bolide.cli.since import format_moment, parse_since
from bolide.model.errors import BolideError, ConfigError, NothingFound
from bolide.model.message import Property

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection
    from bolide.admin.replay import Span
    from bolide.record.stored import StoredMessage
    from bolide.wire.bodies.running import DirectResult

LETTERS_SHOWN = 20


def consume(
    message_id: MessageId,
    group: Annotated[
        str,
        typer.Option(
            "--group", metavar="GROUP", help="Whose member gets it.", autocompletion=complete.groups
        ),
    ],
    member: Annotated[
        str | None,
        typer.Option(
            "--member", metavar="CLIENT", help="Its client id.", show_default="any that is connected"
        ),
    ] = None,
    topic: TopicOfId = None,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Give a message to a member of a group now, and tell how its listener ends.

    The group's offsets stay as they are. Java consumers answer; others may not know the question.

    [bold]Examples[/bold]

        bolide message consume 7F00000100002A9F0000000000000162 --group readers
    """

    async def work(servers: "AdminConnection") -> "tuple[str, DirectResult]":
        from bolide.admin.track import consume_directly

        return await consume_directly(servers, await message_of(servers, message_id, topic), group, member)

    who, result = ask(nameserver, work)
    if as_json:
        write_json(
            {"member": who, "verdict": result.verdict, "remark": result.remark, "took_ms": result.took_ms}
        )
    else:
        why = f": {result.remark}" if result.remark and not result.is_success else ""
        say(f"{who} ended with {result.verdict} after {result.took_ms} ms{why}")
    if not result.is_success:
        raise typer.Exit(ExitCode.FAILED)


def resend(
    message_id: MessageId,
    topic: TopicOfId = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="TOPIC",
            help="Where it goes; a topic that is there.",
            show_default="its own topic",
            autocompletion=complete.topics,
        ),
    ] = None,
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Send a copy of a message: every group that reads the topic gets it, as a new message.

    [bold]Examples[/bold]

        bolide message resend 7F00000100002A9F0000000000000162 --preview
        bolide message resend 7F0000015FA1257ECA984ACE66A50001 --topic orders --to orders-test --yes
    """
    from bolide.admin.replay import copy_of, send_again

    async def look(servers: "AdminConnection") -> "StoredMessage":
        from bolide.admin.topics import topic_route

        found = await message_of(servers, message_id, topic)
        if to is not None:
            await topic_route(servers, to)  # a broker that makes topics on demand would make a misspelt one
        return found

    found = ask(nameserver, look)
    copy = copy_of(found, to or found.topic)
    if preview:
        if as_json:
            write_json(
                {"from": found.topic, "to": copy.topic, "bytes": len(copy.body), "id": None, "preview": True}
            )
        else:
            say(f"a copy of {len(copy.body)} bytes would go to {copy.topic}. Nothing was sent")
        return
    confirm(
        f"Send a copy of {len(copy.body)} bytes to {copy.topic}?",
        yes=yes,
        stakes=f"every group of {copy.topic} gets this message once more",
        otherwise="nothing was sent",
    )
    sent = ask(nameserver, lambda servers: send_again(servers, copy))
    if as_json:
        write_json(
            {"from": found.topic, "to": copy.topic, "bytes": len(copy.body), "id": sent, "preview": False}
        )
    else:
        say(f"sent to {copy.topic}, as {sent}")


def replay(
    group: Annotated[
        str,
        typer.Argument(
            metavar="GROUP", help="Whose dead letters; %DLQ%GROUP too.", autocompletion=complete.groups
        ),
    ],
    since: Annotated[
        str, typer.Option("--since", metavar="WHEN", help="Died then or later: 10m, yesterday, an ISO time.")
    ] = "beginning",
    until: Annotated[
        str, typer.Option("--until", metavar="WHEN", help="Died then or before, said in the same way.")
    ] = "end",
    key: Annotated[
        str | None, typer.Option("--key", "-k", metavar="KEY", help="Only those with this key.")
    ] = None,
    skip: Annotated[
        int, typer.Option("--skip", min=0, metavar="N", help="Not the first so many of them.")
    ] = 0,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="At most so many, the oldest.")
    ] = None,
    to_topic: Annotated[
        bool,
        typer.Option("--to-topic", help="To the topic they were of, and so to every group that reads it."),
    ] = False,
    rate: Annotated[
        int | None, typer.Option("--rate", min=1, metavar="N", help="At most so many per second.")
    ] = None,
    preview: Preview = False,
    yes: Yes = False,
    as_json: AsJson = False,
    nameserver: Nameserver = DEFAULT_NAMESERVER,
) -> None:
    """Deliver the dead letters of a group again: to this group alone, as messages of their old topic.

    Each gets all its attempts anew, and stays in %DLQ%GROUP too. What dies meanwhile is not replayed.
    The oldest come first. When it ends early, it says with which --since and --skip it goes on.

    [bold]Examples[/bold]

        bolide message replay readers --preview
        bolide message replay readers --since yesterday --rate 50 --yes
        bolide message replay readers --key 42 --to-topic
    """
    from bolide.admin.replay import group_of
    from bolide.net.clock import SystemClock

    now_ms = SystemClock().now_ms()
    since_ms, until_ms = parse_since(since, now_ms), parse_since(until, now_ms)
    if since_ms is None:
        raise ConfigError("--since end would find nothing: give a moment before now")
    plan = _Replay(nameserver, group_of(group), since_ms, until_ms, key, skip, limit, to_topic, rate)
    plan.look()
    if not plan.count:
        raise NothingFound(f"{plan.group} has no dead letters that are meant")
    if not preview:
        plan.run(yes=yes)
    if as_json:
        write_json(plan.as_json(preview=preview))
    elif preview:
        plan.show()
    else:
        say(f"{counted(plan.sent, 'dead letter')} sent to {plan.where}")


class _Replay:
    """Which dead letters go where, and how far that has come."""

    def __init__(
        self,
        nameserver: str,
        group: str,
        since_ms: int,
        until_ms: int | None,
        key: str | None,
        skip: int,
        limit: int | None,
        to_topic: bool,
        rate: int | None,
    ) -> None:
        self._nameserver = nameserver
        self.group = group
        self._since_ms, self._until_ms = since_ms, until_ms
        self._key, self._skip, self._limit = key, skip, limit
        self._to_topic, self._rate = to_topic, rate
        self._spans: list[Span] = []
        self._first: list[StoredMessage] = []
        self._topics: Counter[str] = Counter()
        self.sent = 0
        self._last: StoredMessage | None = None
        self._with_last = 0  # how many are done with, of those that died in the same millisecond

    @property
    def count(self) -> int:
        return self._topics.total()

    @property
    def where(self) -> str:
        return (
            "their topics, and so to every group there" if self._to_topic else f"the group {self.group} alone"
        )

    def look(self) -> None:
        ask(self._nameserver, self._look)

    def run(self, *, yes: bool) -> None:
        confirm(
            f"Send {counted(self.count, 'dead letter')} to {self.where}?",
            yes=yes,
            stakes=f"this delivers {counted(self.count, 'dead letter')} again",
            otherwise="nothing was sent",
        )
        try:
            ask(self._nameserver, self._send)
        except KeyboardInterrupt:
            say(f"interrupted: {self._standstill()}")
            raise
        except BolideError as error:
            raise Partly(f"{self._standstill()}. It ended early: {explain(error)}") from error

    def show(self) -> None:
        write_table(
            ("DIED", "QUEUE", "OFFSET", "WAS OF", "KEYS", "BODY"),
            [
                (
                    format_moment(letter.store_timestamp_ms),
                    letter.queue_id,
                    letter.queue_offset,
                    letter.properties.get(Property.RETRY_TOPIC, "-"),
                    " ".join(letter.keys) or "-",
                    beginning(letter.body),
                )
                for letter in self._first
            ],
        )
        if self.count > len(self._first):
            say(f"and {self.count - len(self._first)} more")
        say(f"{counted(self.count, 'dead letter')} would go to {self.where}. Nothing was sent")

    def as_json(self, *, preview: bool) -> dict[str, Any]:
        return {
            "group": self.group,
            "preview": preview,
            "letters": self.count,
            "topics": dict(self._topics),
            "sent": self.sent,
        }

    async def _look(self, servers: "AdminConnection") -> None:
        from bolide.admin.replay import dead_letters, letters_in

        to_skip = self._skip
        self._spans = await dead_letters(servers, self.group, self._since_ms, self._until_ms)
        async for letter in letters_in(servers, self._spans, self._key):
            if to_skip:
                to_skip -= 1
                self._pass(letter)
                continue
            if self.count == self._limit:
                break
            self._topics[letter.properties.get(Property.RETRY_TOPIC, "?")] += 1
            if len(self._first) < LETTERS_SHOWN:
                self._first.append(letter)

    def _pass(self, letter: "StoredMessage") -> None:
        is_same = self._last is not None and self._last.store_timestamp_ms == letter.store_timestamp_ms
        self._with_last = self._with_last + 1 if is_same else 1
        self._last = letter

    async def _send(self, servers: "AdminConnection") -> None:
        from bolide.admin.replay import replay as send_letters

        with status_line() as show:

            def on_sent(letter: "StoredMessage") -> None:
                self.sent += 1
                self._pass(letter)
                show(f"{self.sent} of {self.count} sent")

            await send_letters(
                servers,
                self._spans,
                self.group,
                key=self._key,
                skip=self._skip,
                count_max=self._limit,
                to_topic=self._to_topic,
                rate=self._rate,
                on_sent=on_sent,
            )

    def _standstill(self) -> str:
        if self._last is None or not self.sent:
            return "nothing was sent"
        moment = format_moment(self._last.store_timestamp_ms)
        left = "" if self._limit is None else f" --limit {self.count - self.sent}"
        return (
            f"{self.sent} of {self.count} were sent, the last one died at {moment};"
            f" the same with --since {moment} --skip {self._with_last}{left} goes on behind it"
        )
