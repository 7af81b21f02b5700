"""Two name servers that know nothing of each other: one may be down at any time and nobody notices."""

import json
import random
import string
from functools import partial
from pathlib import Path

import pytest

from bolide.model.config_json import topic_as_json, topic_bytes
from bolide.model.limits import TOPIC_TABLE_BYTES_MAX
from bolide.model.topic import TopicConfig
from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers import frames
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.clients import Consumer
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness, WitnessError

pytestmark = pytest.mark.needs("java", "mvn")


def test_one_name_server_is_enough_whichever_is_down(kind: ServerKind, witness: Witness, home: Path) -> None:
    """The first is down while everything starts, comes up, and then the second, used until now, is killed.

    The 5.5.0 client itself fails calls until it has found a name server that is up: a consumer may need a second
    start, a producer's sends may fail before its first acknowledged one. From then on nothing may fail.
    """
    first = NameServer(kind, home / "first")
    second = NameServer(kind, home / "second").start()
    broker = Broker(kind, home / "broker", "broker-a", [first, second]).start()
    stage = Stage(witness, f"{first.address};{second.address}", second.address)
    try:
        topic = stage.topic()
        consumer = _consume(stage, topic)
        production = stage.produce(topic, rate=100)
        production.wait_sent(100)

        first.start()
        wait_until(
            lambda: frames.knows_broker(first.address, "broker-a"),
            PATIENCE_SECONDS,
            "the broker registers with a name server that came up late",
        )
        second.kill()
        production.wait_sent(len(production.sent) + 300)
        sent = production.stop(first_contact_may_fail=True).bodies

        late = stage.produce(topic, 50, rate=10).finish(first_contact_may_fail=True).bodies
        newcomer = _consume(stage, topic)
        for reader in (consumer, newcomer):
            reader.wait_received(len(sent) + len(late))
            ledger.assert_each_once([*sent, *late], reader.bodies)
    finally:
        stage.close()
        for part in (broker, first, second):
            part.stop()


def _consume(stage: Stage, topic: str) -> Consumer:
    """A consumer that has found a name server which is up."""
    started: list[Consumer] = []

    def start() -> bool:
        try:
            started.append(stage.consume(topic, stage.name("group")))
        except WitnessError:
            return False
        return True

    # A start of a 5.5.0 consumer asks one name server, chosen by lot, and fails after 3 s if that one is down.
    wait_until(start, PATIENCE_SECONDS, "no consumer starts")
    return started[0]


def is_routed(connection: frames.Connection, topic: str) -> bool:
    return connection.ask(frames.GET_ROUTE, {"topic": topic}).code == frames.SUCCESS


@pytest.mark.parametrize("names", [Apache(), Bolide()], ids=lambda names: names.name)
def test_a_broker_whose_table_of_topics_is_full_is_known_with_all_of_them(
    names: ServerKind, home: Path
) -> None:
    """Written into its file before it starts: as many topics as it takes, with long names that do not compress."""
    chosen = random.Random(3)
    topics: list[TopicConfig] = []
    size = 0
    while True:
        name = "".join(chosen.choices(string.ascii_letters + string.digits, k=127))
        size += topic_bytes(TopicConfig(name, 16_384, 16_384))
        if size > TOPIC_TABLE_BYTES_MAX:
            break
        topics.append(TopicConfig(name, 16_384, 16_384))
    table = {"topicConfigTable": {topic.name: topic_as_json(topic) for topic in topics}}
    config = home / "broker" / "store" / "config"
    config.mkdir(parents=True)
    (config / "topics.json").write_text(json.dumps(table))

    server = NameServer(names, home / "names").start()
    broker = Broker(Bolide(), home / "broker", "broker-a", [server]).start()
    try:
        with frames.Connection(server.address) as connection:
            for topic in (topics[0], topics[-1]):
                wait_until(
                    partial(is_routed, connection, topic.name), PATIENCE_SECONDS, "a topic has no route"
                )
    finally:
        broker.stop()
        server.stop()
