"""Messages that a real consumer fails to consume: retried, given up, found among the dead letters.

All scenes of a client version run side by side, because what they do most is wait.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.interop.stage import Stage
from tests.peers.bolide import Bolide
from tests.peers.clients import Consumer, Production
from tests.peers.server import ServerKind, Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Fields, Witness

pytestmark = pytest.mark.needs("java", "mvn")

LEVELS = " ".join(["1s"] * 18)


@dataclass
class Scene:
    """One topic, one group, one consumer; the messages were sent."""

    stage: Stage
    topic: str
    group: str
    consumer: Consumer
    sent: list[str]

    @property
    def seen(self) -> list[Fields]:
        return self.stage.witness.events(self.consumer.name, "message")

    def wait_seen(self, count: int) -> list[Fields]:
        wait_until(lambda: len(self.seen) >= count, PATIENCE_SECONDS, lambda: f"seen {self.seen} of {count}")
        return self.seen

    def dead(self) -> list[Fields]:
        """The dead letters of the group, as an ordinary consumer of their topic sees them."""
        topic = f"%DLQ%{self.group}"
        wait_until(
            lambda: self.stage.route_numbers(topic) == {(1, 1)},
            PATIENCE_SECONDS,
            f"{topic} is not known yet",
        )
        finder = self.stage.consume(topic, self.stage.name("undertaker"))
        wait_until(lambda: finder.received, PATIENCE_SECONDS, f"no dead letter in {topic}")
        return self.stage.witness.events(finder.name, "message")


SCENES: dict[str, dict[str, Any]] = {
    "later": {"fails": 1},
    "null": {"fails": 1, "how": "null"},
    "throw": {"fails": 1, "how": "throw"},
    "always": {"fails": 99},
    "twice": {"fails": 99, "reconsume": 2},
    "level": {"fails": 1, "level": 7},
    "never": {"fails": 99, "level": -1},
    "lost": {"fails": 2, "lost": True},
    "one bad": {"fails": 99, "failtag": "bad"},
    "broadcast": {"fails": 1, "model": "broadcasting"},
    "slow": {},
    "gone": {"fails": 1},
}
TAGS = {"one bad": ["bad", *["good"] * 19], "slow": ["hold"], "gone": ["hold"]}


class Scenes:
    """By name, each begun before any of them is looked at.  The first message makes its topic."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        sending = {}
        for name in SCENES:
            tags = TAGS.get(name, ["plain"])
            sending[name] = stage.produce(stage.name("topic"), len(tags), tags=tags)
        self.of = {name: self._begin(sending[name].finish(), options) for name, options in SCENES.items()}

    def _begin(self, production: Production, options: dict[str, Any]) -> Scene:
        topic, group = production.topic, self.stage.name("group")
        consumer = self.stage.consume(topic, group, **options)
        return Scene(self.stage, topic, group, consumer, production.bodies)


@pytest.fixture(scope="module")
def server(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    """A broker on which every retry comes after a second."""
    server = Together(kind, tmp_path_factory.mktemp("retry"), {"messageDelayLevel": LEVELS}).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def scenes(witness: Witness, server: Together) -> Iterator[Scenes]:
    stage = Stage(witness, server.nameserver)
    yield Scenes(stage)
    stage.close()


@pytest.mark.parametrize("how", ["later", "null", "throw"])
def test_a_message_that_fails_comes_again_under_its_own_topic(scenes: Scenes, how: str) -> None:
    """RY-01, RY-04: whether the listener says so, says nothing or throws."""
    scene = scenes.of[how]
    first, again = scene.wait_seen(2)
    assert (first["tries"], again["tries"]) == (0, 1)
    assert again["topic"] == first["topic"] == scene.topic
    assert (again["body"], again["keys"], again["tags"]) == (first["body"], first["keys"], first["tags"])
    properties = again["properties"]
    assert (properties["RETRY_TOPIC"], properties["REAL_TOPIC"]) == (scene.topic, f"%RETRY%{scene.group}")
    assert properties["DELAY"] == "3"
    assert again["id"] == properties["UNIQ_KEY"]
    assert len(properties["ORIGIN_MESSAGE_ID"]) == 32


def test_the_level_that_a_listener_asks_for_is_honoured(scenes: Scenes) -> None:
    """RY-02."""
    _, again = scenes.of["level"].wait_seen(2)
    assert again["properties"]["DELAY"] == "7"


def test_level_minus_one_is_a_dead_letter_at_once(scenes: Scenes) -> None:
    """RY-02."""
    scene = scenes.of["never"]
    assert [one["body"] for one in scene.dead()] == scene.sent
    assert len(scene.seen) == 1


def test_a_consumers_own_limit_ends_its_retries(scenes: Scenes) -> None:
    """RY-03."""
    scene = scenes.of["twice"]
    assert [one["body"] for one in scene.dead()] == scene.sent
    assert [one["tries"] for one in scene.seen] == [0, 1, 2]


def test_a_place_that_the_broker_does_not_find_makes_the_client_send_the_message_itself(
    scenes: Scenes,
) -> None:
    """RY-05: the first way back fails, the second one carries it."""
    scene = scenes.of["lost"]
    _, second, third = scene.wait_seen(3)
    assert [one["tries"] for one in (second, third)] == [1, 2]
    assert {one["topic"] for one in (second, third)} == {scene.topic}
    assert [one["properties"]["DELAY"] for one in (second, third)] == ["3", "4"]
    assert {one["properties"]["REAL_TOPIC"] for one in (second, third)} == {f"%RETRY%{scene.group}"}


def test_a_message_that_fails_does_not_hold_back_its_queue(scenes: Scenes) -> None:
    """RY-07."""
    scene = scenes.of["one bad"]
    scene.consumer.wait_received(len(scene.sent))

    def behind() -> int:
        progress = scene.stage.admin(f"consumerProgress -g {scene.group}")
        rows = [line.split() for line in progress.splitlines() if line.startswith(scene.topic)]
        return sum(int(row[3]) - int(row[4]) for row in rows) if rows else -1

    wait_until(lambda: behind() == 0, PATIENCE_SECONDS, lambda: f"{behind()} messages behind")


def test_in_broadcasting_what_fails_is_not_brought_again(scenes: Scenes) -> None:
    scenes.of["broadcast"].wait_seen(1)
    others = scenes.of["always"]
    others.wait_seen(min(17, len(others.seen) + 3))  # time enough for a retry
    assert [one["tries"] for one in scenes.of["broadcast"].seen] == [0]


def test_a_message_that_takes_too_long_is_sent_back_with_level_three(scenes: Scenes) -> None:
    """RY-06: the client does so every fifteen minutes; here it is told to do it now."""
    scene = scenes.of["slow"]
    scene.wait_seen(1)
    scenes.stage.witness.ask("expire", name=scene.consumer.name)
    _, again = scene.wait_seen(2)
    scenes.stage.witness.ask("release", name=scene.consumer.name)
    assert (again["tries"], again["properties"]["DELAY"]) == (1, "3")


def test_after_sixteen_retries_a_message_is_a_dead_letter_and_comes_no_more(
    scenes: Scenes, kind: ServerKind
) -> None:
    """RY-03: seventeen deliveries with the levels 3 to 18, then one dead letter, which tells of all of them."""
    scene = scenes.of["always"]
    (dead,) = scene.dead()
    assert [one["tries"] for one in scene.seen] == list(range(17))
    assert [one["properties"]["DELAY"] for one in scene.seen[1:]] == [str(level) for level in range(3, 19)]
    assert (dead["body"], dead["tries"]) == (scene.sent[0], 17)
    properties = dead["properties"]
    assert properties["RETRY_TOPIC"] == scene.topic
    assert properties["ORIGIN_MESSAGE_ID"] == scene.seen[1]["properties"]["ORIGIN_MESSAGE_ID"]
    if isinstance(kind, Bolide):
        entries = [entry.split() for entry in properties["BOLIDE_ATTEMPTS"].split("; ")]
        assert [level for _, _, level in entries] == [*map(str, range(3, 19)), "dead"]
        assert {host.partition(":")[0] for _, host, _ in entries} == {"127.0.0.1"}
        assert sorted(when for when, _, _ in entries) == [when for when, _, _ in entries]


def test_a_group_that_is_gone_makes_the_client_try_again_by_itself(scenes: Scenes, server: Together) -> None:
    """RY-05: neither way back is open, so the message comes again inside the client, after five seconds."""
    scene = scenes.of["gone"]
    scene.wait_seen(1)
    allow = f"updateBrokerConfig -b {server.broker} -k autoCreateSubscriptionGroup -v"
    scenes.stage.admin(f"{allow} false")
    try:
        scenes.stage.admin(f"deleteSubGroup -b {server.broker} -g {scene.group}")
        scenes.stage.witness.ask("release", name=scene.consumer.name)
        _, again = scene.wait_seen(2)
    finally:
        scenes.stage.admin(f"{allow} true")
    assert (again["tries"], "REAL_TOPIC" in again["properties"]) == (1, False)  # it was never stored again
