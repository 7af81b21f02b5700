"""Handles on the clients inside a witness: what each one sent, received and holds, in typed form."""

import itertools
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

from tests.peers.waiting import PATIENCE_SECONDS, Overdue, wait_until
from tests.peers.witness import Conversation, Fields


class QueueKey(NamedTuple):
    """One queue of one topic on one broker."""

    topic: str
    broker: str
    queue: int


class Sent(NamedTuple):
    """One acknowledged message."""

    body: str
    status: str
    broker: str
    queue: int
    offset: int


class Received(NamedTuple):
    """One message as its consumer saw it."""

    topic: str
    broker: str
    queue: int
    offset: int
    body: str
    size: int
    intact: bool
    tags: str | None
    keys: str | None

    @property
    def key(self) -> QueueKey:
        return QueueKey(self.topic, self.broker, self.queue)


def received(witness: Conversation, name: str) -> list[Received]:
    """All messages that the consumer of this name reported, in the order in which it saw them."""
    fields = Received._fields
    return [Received(*(event[f] for f in fields)) for event in witness.events(name, "message")]


@dataclass
class Production:
    """One `produce` command, finished or still running."""

    witness: Conversation
    name: str
    topic: str
    answer: "Future[Fields]"

    @property
    def sent(self) -> list[Sent]:
        fields = Sent._fields
        return [Sent(*(e[f] for f in fields)) for e in self.witness.events(self.name, "sent")]

    @property
    def errors(self) -> list[str]:
        return [event["error"] for event in self.witness.events(self.name, "failed")]

    @property
    def bodies(self) -> list[str]:
        return [sent.body for sent in self.sent]

    @property
    def errors_after_first_contact(self) -> list[str]:
        """Failed sends since the first acknowledged one."""
        events = self.witness.events(self.name, "sent", "failed")
        late = itertools.dropwhile(lambda event: event["event"] == "failed", events)
        return [event["error"] for event in late if event["event"] == "failed"]

    def finish(self, *, first_contact_may_fail: bool = False) -> "Production":
        """Wait until everything was sent; a failed send is an assertion error."""
        self.answer.result(PATIENCE_SECONDS)
        errors = self.errors_after_first_contact if first_contact_may_fail else self.errors
        assert not errors, f"{len(errors)} sends failed, first: {errors[0]}"
        assert self.answer.result()["sent"] > 0
        return self

    def stop(self, *, first_contact_may_fail: bool = False) -> "Production":
        self.witness.ask("stop", name=self.name)
        return self.finish(first_contact_may_fail=first_contact_may_fail)

    def wait_sent(self, count: int, seconds: float = PATIENCE_SECONDS) -> None:
        def enough() -> bool:
            return len(self.witness.events(self.name, "sent")) >= count

        if not self.witness.wait_events(self.name, enough, seconds):
            raise Overdue(f"{self.name} sent {len(self.sent)} of {count} in {seconds:g} s")


@dataclass
class Consumer:
    """One push consumer, running until it is stopped."""

    witness: Conversation
    name: str
    client_id: str = ""
    """Known when it runs."""

    @property
    def received(self) -> list[Received]:
        return received(self.witness, self.name)

    @property
    def bodies(self) -> list[str]:
        return [message.body for message in self.received]

    def queues(self, topic: str) -> set[QueueKey]:
        """The queues of a topic that it holds right now."""
        answer = self.witness.ask("assignment", name=self.name)
        keys = (queue.rsplit("/", 2) for queue in answer["queues"])
        return {QueueKey(t, broker, int(queue)) for t, broker, queue in keys if t == topic}

    def wait_queues(self, topic: str, count: int, seconds: float = PATIENCE_SECONDS) -> None:
        wait_until(
            lambda: len(self.queues(topic)) == count,
            seconds,
            lambda: f"{self.name} holds {len(self.queues(topic))} queues, not {count}",
        )

    def wait_received(self, count: int, seconds: float = PATIENCE_SECONDS) -> None:
        """Until it has seen this many messages, duplicates counted."""
        wait_received([self], count, seconds)

    def stop(self) -> None:
        self.witness.ask("stop", name=self.name)


class Check(NamedTuple):
    """A producer was asked how a transaction has ended."""

    body: str
    topic: str
    queue: int
    offset: int
    times: str | None
    at: int
    born: int


@dataclass
class Transactor:
    """A transactional producer, in its group until it is stopped."""

    witness: Conversation
    name: str
    answer: "Future[Fields]"

    @property
    def sent(self) -> list[Sent]:
        fields = Sent._fields
        return [Sent(*(e[f] for f in fields)) for e in self.witness.events(self.name, "sent")]

    @property
    def bodies(self) -> list[str]:
        return [sent.body for sent in self.sent]

    @property
    def checks(self) -> list[Check]:
        """What it was asked so far."""
        fields = Check._fields
        return [Check(*(e[f] for f in fields)) for e in self.witness.events(self.name, "checked")]

    def finish(self) -> "Transactor":
        """Wait until everything was sent."""
        self.answer.result(PATIENCE_SECONDS)
        return self

    def stop(self) -> None:
        self.witness.ask("stop", name=self.name)


def wait_received(consumers: Sequence[Consumer], count: int, seconds: float = PATIENCE_SECONDS) -> None:
    """Until the consumers together have seen this many different bodies."""

    def seen() -> int:
        return len({body for consumer in consumers for body in consumer.bodies})

    wait_until(lambda: seen() >= count, seconds, lambda: f"{seen()} of {count} messages arrived")
