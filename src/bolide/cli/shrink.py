"""Changing a topic, and what it takes when queues go: the words about it, the question, the wait, the way on."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bolide.cli.ask import ask, confirm
from bolide.cli.outcome import Partly, Refused, explain
from bolide.cli.output import counted, say
from bolide.cli.progress import status_line
from bolide.model.errors import BolideError, RemoteError

if TYPE_CHECKING:
    from bolide.admin.connection import AdminConnection
    from bolide.admin.shrink import Going, Rest
    from bolide.admin.topics import TopicChange, TopicDescription
    from bolide.model.topic import TopicConfig

NAMED_MAX = 3
"""So many groups are named while we wait for them."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What must be before read queues go; `yes`: the person has agreed already."""

    yes: bool
    for_groups: bool
    quiet_ms: int


def change_topic(
    nameserver: str, topic: str, change: "TopicChange", broker: str | None, wait: Wait, *, preview: bool
) -> "dict[str, TopicConfig]":
    """At once, or in steps where read queues go; returns the settings by broker.  A preview only says what would be."""
    from bolide.admin.shrink import queues_that_go
    from bolide.admin.topics import describe_topic, update_topic

    found = ask(nameserver, lambda servers: describe_topic(servers, topic, broker=broker))
    planned = change.planned(found.configs)
    going = queues_that_go(found.configs, planned)
    if not going and preview:
        return _previewed(found, planned)
    if not going:
        return ask(nameserver, lambda servers: update_topic(servers, topic, change, broker=broker))
    shrinking = _Shrinking(nameserver, found, change, broker, going, wait)
    shrinking.explain()
    return _previewed(found, planned) if preview else shrinking.run()


def _previewed(found: "TopicDescription", planned: "dict[str, TopicConfig]") -> "dict[str, TopicConfig]":
    for name, after in planned.items():
        pairs = zip(_words(found.configs[name]), _words(after), strict=True)
        changes = [f"{what} {old} -> {new}" for (what, old), (_, new) in pairs if old != new]
        say(f"{found.name} on {name}: {', '.join(changes) or 'as it is'}")
    say("Nothing was changed")
    return planned


def perm_text(config: "TopicConfig") -> str:
    return ("r" if config.readable else "") + ("w" if config.writable else "") or "none"


def _words(config: "TopicConfig") -> Iterator[tuple[str, object]]:
    yield "read queues", config.read_queues
    yield "write queues", config.write_queues
    yield "perm", perm_text(config)
    yield "order", config.order


class _Shrinking:
    """One change that takes read queues away."""

    def __init__(
        self,
        nameserver: str,
        found: "TopicDescription",
        change: "TopicChange",
        broker: str | None,
        going: "Going",
        wait: Wait,
    ) -> None:
        self._nameserver = nameserver
        self._found = found
        self._change = change
        self._broker = broker
        self._going = going
        self._wait = wait
        self._changed: list[str] = []
        self._unsure = ""
        """The broker that is being told of fewer write queues and has not answered."""

    def explain(self) -> None:
        """Say what will happen; refuse what would never come to an end."""
        from bolide.admin.shrink import look

        rest = ask(self._nameserver, lambda servers: look(servers, self._found, self._going))
        messages = counted(rest.messages, "message")
        if rest.messages and not rest.behind and self._wait.for_groups:
            raise Refused(
                f"{self._found.name} would give up {self._queues} with {messages} inside, which nobody could read"
                " afterwards, and there is no group to wait for: let one consume them first, or say --force"
            )
        say(
            f"{self._found.name} gives up {self._queues}, with {messages} inside. What is left there can be read by"
        )
        say("nobody afterwards, by no consumer and no Spark job. So:")
        say("  1. they are write queues no more; producers notice within half a minute")
        if self._wait.for_groups:
            say("  2. every group gets the time to consume what is inside")
            for part in _late(rest):
                say(f"     {part}")
            if rest.absent:
                say("     Who has no member may never be done: start one, or say --force to go on without it")
        else:
            say("  2. nobody waits for groups (--force): what one has not consumed by then, it does not get")
        say("  3. they are read queues no more")

    def run(self) -> "dict[str, TopicConfig]":
        confirm(
            "Go on? Ctrl-C between the steps loses nothing.",
            yes=self._wait.yes,
            stakes="this takes read queues away",
            otherwise="nothing was changed",
        )
        try:
            return ask(self._nameserver, self._steps)
        except KeyboardInterrupt:
            say(f"interrupted: {self._standstill()}")
            raise
        except BolideError as error:
            raise Partly(f"{self._standstill()}. It ended early: {explain(error)}") from error

    async def _steps(self, servers: "AdminConnection") -> "dict[str, TopicConfig]":
        from bolide.admin.shrink import until_consumed
        from bolide.admin.topics import TopicChange, update_topic

        topic = self._found.name
        if self._change.write_queues is not None:
            write = TopicChange(write_queues=self._change.write_queues)
            for name in self._going:
                await self._take_write_queues(servers, write, name)
        with status_line() as show:
            await until_consumed(
                servers,
                self._found,
                self._going,
                quiet_ms=self._wait.quiet_ms,
                wait_for_groups=self._wait.for_groups,
                on_look=lambda rest, left_ms: show(self._status(rest, left_ms)),
            )
        return await update_topic(servers, topic, self._change, broker=self._broker)

    async def _take_write_queues(self, servers: "AdminConnection", write: "TopicChange", broker: str) -> None:
        from bolide.admin.topics import update_topic

        self._unsure = broker
        try:
            await update_topic(servers, self._found.name, write, broker=broker)
        except RemoteError:
            self._unsure = ""  # it has said no
            raise
        self._unsure = ""
        self._changed.append(broker)

    def _status(self, rest: "Rest", left_ms: int) -> str:
        parts = _late(rest) if self._wait.for_groups else []
        if left_ms:
            parts.append(f"producers have {-(-left_ms // 1000)} s more to notice")
        return f"{self._queues}: {', '.join(parts) or 'nothing to wait for any more'}"

    def _standstill(self) -> str:
        """How the topic is left, and both ways from there."""
        topic = shlex.quote(self._found.name)
        if self._unsure:
            return (
                f"{self._unsure} has not answered, and may or may not have taken write queues from {topic};"
                f" nothing is lost, and `bolide topic describe {topic}` tells"
            )
        if not self._changed:
            return f"{topic} is as it was"
        where = "" if len(self._changed) == len(self._going) else f" on {', '.join(self._changed)}"
        before = max(config.write_queues for config in self._found.configs.values())
        return (
            f"{topic} has {self._change.write_queues} write queues now{where} and all its read queues,"
            f" so nothing is lost. The same command goes on from here, with --force without waiting for groups;"
            f" `bolide topic update {topic} --write-queues {before}` goes back"
        )

    @property
    def _queues(self) -> str:
        """Those that go, on all brokers together."""
        first = min(queues.start for queues in self._going.values())
        last = max(queues.stop for queues in self._going.values()) - 1
        return f"queue {first}" if first == last else f"queues {first} to {last}"


def _late(rest: "Rest") -> list[str]:
    """Who is waited for, and who of them may never come."""
    late = sorted((group, left) for group, left in rest.behind.items() if left)
    parts = [
        f"{group!r} has {left} left" + (" and no member connected" if group in rest.absent else "")
        for group, left in late[:NAMED_MAX]
    ]
    return parts + ([f"{len(late) - NAMED_MAX} more groups have some"] if len(late) > NAMED_MAX else [])
