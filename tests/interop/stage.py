"""One test's view of a server and a witness: topics and groups of its own, clients that end with the test."""

import itertools
import re
from collections.abc import Sequence
from typing import Any

from tests.peers import frames
from tests.peers.clients import Consumer, Production, Received, Transactor, received
from tests.peers.server import CLUSTER, Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Conversation

TOO_BUSY = "RemotingTimeoutException"  # what mqadmin says when it has waited for some seconds in vain

_numbers = itertools.count(1)


class Stage:
    """Makes clients inside a witness and remembers them, so that a failing test leaves nothing running."""

    def __init__(self, witness: Conversation, nameserver: str, admin_nameserver: str = "") -> None:
        self.witness = witness
        self.nameserver = nameserver
        self.admin_nameserver = admin_nameserver or nameserver
        self._consumers: list[Consumer] = []
        self._productions: list[Production] = []
        self._transactors: list[Transactor] = []

    def close(self) -> None:
        for production in self._productions:
            if not production.answer.done():
                self.witness.ask("stop", name=production.name)
                production.answer.exception(PATIENCE_SECONDS)
        for transactor in self._transactors:
            transactor.answer.exception(PATIENCE_SECONDS)
            transactor.stop()
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
        self.set_topic(topic, read, write, **options)
        wait_until(
            lambda: self.route_numbers(topic) == {(read, write)},
            PATIENCE_SECONDS,
            lambda: f"the route of {topic} shows {self.route_numbers(topic)}, not {(read, write)}",
        )

    def set_topic(self, topic: str, read: int, write: int, **options: str) -> None:
        extra = "".join(f" -{key} {value}" for key, value in options.items())

        def taken() -> bool:
            said = self.admin(f"updateTopic -c {CLUSTER} -t {topic} -r {read} -w {write}{extra}")
            assert "success" in said or TOO_BUSY in said, said
            return TOO_BUSY not in said

        wait_until(taken, PATIENCE_SECONDS, f"{topic} cannot be made")

    def route_numbers(self, topic: str) -> set[tuple[int, int]]:
        """The different (read, write) queue numbers that the name server tells for a topic."""
        route = self.route(topic)
        reads = re.findall(r'"readQueueNums":\s*(\d+)', route)
        writes = re.findall(r'"writeQueueNums":\s*(\d+)', route)
        return {(int(read), int(write)) for read, write in zip(reads, writes, strict=True)}

    def route(self, topic: str) -> str:
        """What the name server tells of a topic."""
        return self.admin(f"topicRoute -t {topic}")

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
        production = Production(self.witness, name, topic, answer)
        self._productions.append(production)
        return production

    def transact(self, topic: str, group: str, count: int = 0, **options: object) -> Transactor:
        """Start a transactional producer; with no messages of its own it is only asked about those of others."""
        name = self.name("transactor")
        answer = self.witness.begin(
            "transact",
            name=name,
            topic=topic,
            group=group,
            count=count,
            **{"nameserver": self.nameserver, **options},
        )
        transactor = Transactor(self.witness, name, answer)
        self._transactors.append(transactor)
        return transactor

    def consume(self, topics: str | Sequence[str], group: str, **options: object) -> Consumer:
        """Start a push consumer."""
        name = self.name("consumer")
        listed = [topics] if isinstance(topics, str) else topics
        consumer = Consumer(self.witness, name)
        answer = self.witness.ask(
            "consume",
            name=name,
            topics=listed,
            group=group,
            **{"nameserver": self.nameserver, "persist": 500, **options},
        )
        consumer.client_id = answer.get("client", "")  # the Go client does not tell it
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

    def committed(self, topic: str, group: str) -> list[int]:
        """Per queue the offset that the broker keeps for a group that is not online."""
        return [row["committed"] for row in self.offsets(topic, group)]

    def offsets_of_group(self, topic: str, group: str) -> list[dict[str, int]]:
        """The same as an operator sees it, of a group that may be online: queue and committed."""
        rows = (line.split() for line in self.admin(f"consumerProgress -g {group}").splitlines())
        return [{"queue": int(row[2]), "committed": int(row[4])} for row in rows if row and row[0] == topic]


class BareStage(Stage):
    """A stage whose witness knows no `mqadmin`: topics are made and asked about with plain frames."""

    def __init__(self, witness: Conversation, server: Together) -> None:
        super().__init__(witness, server.nameserver)
        self.server = server

    def set_topic(self, topic: str, read: int, write: int, **options: str) -> None:
        assert not options
        frames.set_topic(self.server.broker, topic, read, write)

    def route(self, topic: str) -> str:
        with frames.Connection(self.nameserver) as connection:
            return connection.ask(frames.GET_ROUTE, {"topic": topic}).body.decode()

    def committed(self, topic: str, group: str, queues: int = 4) -> list[int]:
        """Per queue the offset that the broker keeps for a group; -1 where it keeps none."""
        return frames.committed(self.server.broker, topic, group, queues)
