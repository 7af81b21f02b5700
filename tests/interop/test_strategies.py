"""Ways to share queues beside the original's own: the same shares from the same lists, and groups of both kinds."""

import base64
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from bolide import (
    ConfigStrategy,
    ConsistentHashStrategy,
    MachineRoomNearbyStrategy,
    MachineRoomStrategy,
    MessageQueue,
    PushConsumer,
)
from bolide.rules.allocate import Strategy, strategy
from tests.interop import ledger
from tests.interop.python_clients import Seen
from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.clients import Consumer, QueueKey
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

COUNT = 1_000
QUEUES = 16  # on each broker: so many that a ring of two members leaves nobody without
NEAR, FAR = "consumer@1", "far-1"
"""Brokers.  Java clients of these tests are called consumer-…, and so in the room of the first."""

ROOM = "consumer"

ROOMS = ("east", "west", "north", ROOM)
BROKERS = [f"{room}@{number}" for room in ROOMS for number in range(2)]
ODD_BROKERS = ["plain", "east@", "east@1@2", "east@1@@", "@east", "\U0001f600@1", "\uff5e@1"]
KINDS = ("averagely", "circle", "consistent_hash", "config", "machine_room", "machine_room_nearby")


def _room_of_broker(queue: MessageQueue) -> str:
    return re.split("[@-]", queue.broker_name)[0]


def _room_of_member(member: str) -> str:
    return member.partition("@")[2].partition("-")[0]


class Question(NamedTuple):
    """One member of one group, and how the original's strategy is made for it."""

    name: str
    told: list[str]
    ours: str | Strategy
    me: str
    members: list[str]
    queues: list[MessageQueue]


def _questions(seed: int, count: int) -> list[Question]:
    chance = random.Random(seed)
    return [_question(chance, KINDS[number % len(KINDS)]) for number in range(count)]


def _question(chance: random.Random, name: str) -> Question:
    """Java hashes what is not ASCII by the machine's own charset: such names are only sorted."""
    is_hashed = name in ("consistent_hash", "machine_room_nearby")
    queues = _some_queues(chance, BROKERS if is_hashed else [*BROKERS, *ODD_BROKERS])
    members = _some_members(
        chance, ["1", "7#3", "Z"] if is_hashed else ["1", "\uff5e", "\U0001f600", "Z", "_"]
    )
    told, ours = _made(chance, name, queues)
    return Question(name, told, ours, chance.choice(members), members, queues)


def _made(chance: random.Random, name: str, queues: list[MessageQueue]) -> tuple[list[str], str | Strategy]:
    """What the original's strategy is told, and ours."""
    match name:
        case "consistent_hash":
            nodes = chance.choice((1, 3, 10, 10, 10, 40))
            return ([], name) if nodes == 10 else ([str(nodes)], ConsistentHashStrategy(nodes))
        case "config":
            mine = chance.sample(queues, chance.randint(1, len(queues)))
            return [_text(queue) for queue in mine], ConfigStrategy(mine)
        case "machine_room":
            rooms = chance.sample(ROOMS, chance.randint(1, 3))
            return rooms, MachineRoomStrategy(rooms)
        case "machine_room_nearby":
            inner = chance.choice(("averagely", "circle", "consistent_hash"))
            return [inner], MachineRoomNearbyStrategy(_room_of_broker, _room_of_member, inner)
    return [], name


def _text(queue: MessageQueue) -> str:
    return f"{queue.topic}/{queue.broker_name}/{queue.queue_id}"


def _some_queues(chance: random.Random, brokers: list[str]) -> list[MessageQueue]:
    topic = chance.choice(("orders", "%RETRY%g", "a"))
    chosen = chance.sample(brokers, chance.randint(1, 5))
    queues = [MessageQueue(topic, name, number) for name in chosen for number in range(chance.randint(1, 12))]
    chance.shuffle(queues)
    return queues


def _some_members(chance: random.Random, endings: list[str]) -> list[str]:
    found = {
        f"10.0.{chance.randrange(3)}.{chance.randrange(256)}@{chance.choice(ROOMS)}-{chance.choice(endings)}"
        for _ in range(chance.randint(1, 24))
    }
    return chance.sample(sorted(found), len(found))


def test_a_member_gets_the_queues_that_the_original_would_give_it(witness: Witness, tmp_path: Path) -> None:
    """CO-03: a thousand groups, every strategy."""
    asked = _questions(20261, COUNT)
    theirs = _shares_of_the_original(witness, tmp_path / "questions", asked)
    for question, numbers in zip(asked, theirs, strict=True):
        expected = [question.queues[number] for number in numbers]
        assert list(strategy(question.ours)(question.queues, question.members, question.me)) == expected, (
            question
        )
    assert any(theirs)
    assert not all(theirs)


def _shares_of_the_original(witness: Witness, file: Path, asked: list[Question]) -> list[list[int]]:
    with file.open("wb") as lines:
        for question in asked:
            queues = [_text(queue) for queue in question.queues]
            words = [question.name, question.told, question.me, question.members, queues]
            texts = (word if isinstance(word, str) else "\n".join(word) for word in words)
            lines.write(b" ".join(base64.b64encode(text.encode()) for text in texts) + b"\n")
    shares: list[list[int]] = witness.ask("shares", file=file)["shares"]
    return shares


# ---- groups of both kinds ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nameserver(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two brokers in two rooms.  One is Apache's: ours cannot have a name with an @ in it."""
    home = tmp_path_factory.mktemp("rooms")
    names = NameServer(Bolide(), home / "names").start()
    kinds = {NEAR: Apache(java.LATEST), FAR: kind}
    brokers = [Broker(kinds[name], home / name, name, [names]).start() for name in kinds]
    yield names.address
    for broker in brokers:
        broker.kill()
    names.stop()


@pytest.fixture
def stage(witness: Witness, nameserver: str) -> Iterator[Stage]:
    stage = Stage(witness, nameserver)
    yield stage
    stage.close()


class Mixed(NamedTuple):
    """How both kinds of members are told the same strategy, and which brokers are read."""

    theirs: Callable[[str], dict[str, object]]
    ours: Callable[[str], str | Strategy]
    brokers: tuple[str, ...] = (NEAR, FAR)


def _named(name: str) -> Mixed:
    return Mixed(lambda _: {"strategy": name}, lambda _: name)


def _own_queues(topic: str) -> list[MessageQueue]:
    return [MessageQueue(topic, name, number) for name in (NEAR, FAR) for number in range(0, QUEUES, 2)]


def _rest(topic: str) -> list[str]:
    return [f"{topic}/{name}/{number}" for name in (NEAR, FAR) for number in range(1, QUEUES, 2)]


MIXED = {
    "averagely": _named("averagely"),
    "circle": _named("circle"),
    "consistent_hash": _named("consistent_hash"),
    "config": Mixed(
        lambda topic: {"strategy": "config", "told": _rest(topic)},
        lambda topic: ConfigStrategy(_own_queues(topic)),
    ),
    "machine_room": Mixed(
        lambda _: {"strategy": "machine_room", "told": [ROOM]},
        lambda _: MachineRoomStrategy([ROOM]),
        (NEAR,),
    ),
    "machine_room_nearby": Mixed(
        lambda _: {"strategy": "machine_room_nearby", "told": ["circle"]},
        lambda _: MachineRoomNearbyStrategy(_room_of_broker, _room_of_member, "circle"),
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_java_and_a_python_consumer_share_the_queues_without_gap_or_overlap(
    stage: Stage, name: str
) -> None:
    """CO-04: and every message of these queues reaches one of them."""
    mixed = MIXED[name]
    topic, group = stage.topic(QUEUES), stage.name("group")
    wanted = {QueueKey(topic, name, number) for name in mixed.brokers for number in range(QUEUES)}
    seen = Seen()
    python = PushConsumer(
        stage.nameserver, group=group, listener=seen, start_from="first", strategy=mixed.ours(topic)
    )
    python.subscribe(topic)
    with python:
        member = stage.consume(topic, group, **mixed.theirs(topic))
        _wait_shared(topic, member, python, wanted)
        sent = stage.produce(topic, 320).finish().sent
        bodies = [message.body for message in sent if message.broker in mixed.brokers]
        assert bodies

        def came() -> list[str]:
            return [*member.bodies, *(body.partition("|")[0] for body in seen.bodies)]

        wait_until(
            lambda: set(bodies) <= set(came()),
            PATIENCE_SECONDS,
            lambda: f"{len(set(came()))} of {len(bodies)} messages",
        )
        ledger.assert_nothing_lost(bodies, came())
        member.stop()


def _wait_shared(topic: str, member: Consumer, python: PushConsumer, wanted: set[QueueKey]) -> None:
    """Until both have a part of the queues, and together all of them once."""

    def held() -> tuple[set[QueueKey], set[QueueKey]]:
        own = {QueueKey(*queue) for queue in map(_parts, python.queues) if queue[0] == topic}
        return member.queues(topic), own

    def settled() -> bool:
        theirs, own = held()
        return bool(theirs and own) and not theirs & own and theirs | own == wanted

    wait_until(settled, PATIENCE_SECONDS, lambda: f"{held()} are not {wanted}")


def _parts(queue: MessageQueue) -> tuple[str, str, int]:
    return queue.topic, queue.broker_name, queue.queue_id
