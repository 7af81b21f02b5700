"""One test's view of a server and a witness: topics and groups of its own, clients that end with the test."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

from tests.peers.clients import Consumer, Production, Received, received
from tests.peers.server import CLUSTER
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness

_numbers = itertools.count(1)


class Stage:
    """Makes clients inside a witness and remembers them, so that a failing test leaves nothing running."""

    def __init__(self, witness: Witness, nameserver: str, admin_nameserver: str = "") -> None:
        self.witness = witness
        self.nameserver = nameserver
        self.admin_nameserver = admin_nameserver or nameserver
        self._consumers: list[Consumer] = []
        self._productions: list[Production] = []

    def close(self) -> None:
        for production in self._productions:
            if not production.answer.done():
                self.witness.ask("stop", name=production.name)
                production.answer.exception(PATIENCE_SECONDS)
        for consumer in self._consumers:
            consumer.stop()  # stopping twice is fine

    def name(self, what: str) -> str:
        """A name that nothing else in this run has."""
        return f"{what}-{self.witness.version.replace('.', '')}-{next(_numbers)}"

    def topic(self, queues: int = 4, **options: str) -> str:
        """A new topic on every broker of the cluster, visible to clients."""
        topic = self.name("topic")
        self.update_topic(topic, read=queues, write=queues, **options)
        return topic

    def update_topic(self, topic: str, read: int, write: int, **options: str) -> None:
        """Set a topic's queue numbers on the whole cluster and wait until the name server tells them."""
        extra = "".join(f" -{key} {value}" for key, value in options.items())
        self.admin(f"updateTopic -c {CLUSTER} -t {topic} -r {read} -w {write}{extra}")
        wait_until(
            lambda: self.route_numbers(topic) == {(read, write)},
            PATIENCE_SECONDS,
            lambda: f"the route of {topic} shows {self.route_numbers(topic)}, not {(read, write)}",
        )

    def route_numbers(self, topic: str) -> set[tuple[int, int]]:
        """The different (read, write) queue numbers that the name server tells for a topic."""
        route = self.admin(f"topicRoute -t {topic}")
        reads = re.findall(r'"readQueueNums":\s*(\d+)', route)
        writes = re.findall(r'"writeQueueNums":\s*(\d+)', route)
        return {(int(read), int(write)) for read, write in zip(reads, writes, strict=True)}

    def admin(self, line: str) -> str:
        """What an mqadmin command printed."""
        answer = self.witness.ask("admin", line=f"{line} -n {self.admin_nameserver}")
        output: str = answer["output"] + answer["errors"]
        return output

    def produce(self, topic: str, count: int | None = None, **options: object) -> Production:
        """Start sending; `finish()` waits for the end, `stop()` ends a production without a count."""
        name = self.name("producer")
        if count is not None:
            options["count"] = count
        answer = self.witness.begin(
            "produce", name=name, topic=topic, **{"nameserver": self.nameserver, **options}
        )
        production = Production(self.witness, name, answer)
        self._productions.append(production)
        return production

    def consume(self, topics: str | Sequence[str], group: str, **options: object) -> Consumer:
        """Start a push consumer."""
        name = self.name("consumer")
        listed = [topics] if isinstance(topics, str) else topics
        consumer = Consumer(self.witness, name)
        self.witness.ask(
            "consume",
            name=name,
            topics=listed,
            group=group,
            **{"nameserver": self.nameserver, "persist": 500, **options},
        )
        self._consumers.append(consumer)
        return consumer

    def read(
        self, verb: str, topic: str, group: str, **options: object
    ) -> tuple[list[Received], dict[str, Any]]:
        """Run `pull` or `litepull` to its end: the messages it saw, and its answer."""
        name = self.name(verb)
        answer = self.witness.ask(
            verb, name=name, topic=topic, group=group, nameserver=self.nameserver, **options
        )
        return received(self.witness, name), answer

    def offsets(self, topic: str, group: str = "offset-readers") -> list[dict[str, Any]]:
        """Per queue: min, max, committed, earliest, origin. Joins the group for a moment: use no live one."""
        answer = self.witness.ask("offsets", topic=topic, group=group, nameserver=self.nameserver)
        rows: list[dict[str, Any]] = answer["queues"]
        return rows
