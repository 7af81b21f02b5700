"""Real consumers that are moved while they run (AD-03)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.stage import Stage
from tests.peers.clients import Consumer
from tests.peers.server import ServerKind, Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

COUNT = 8


@pytest.fixture(scope="module")
def telling(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    """A server that tells the members of a group to move, as 4.x does."""
    home: Path = tmp_path_factory.mktemp("telling")
    server = Together(kind, home, {"useServerSideResetOffset": "false"}).start()
    yield server
    server.stop()


def _consumed(stage: Stage) -> tuple[str, str, Consumer]:
    """A topic, and a group that has consumed it and stays online."""
    topic, group = stage.topic(queues=2), stage.name("group")
    stage.produce(topic, COUNT).finish()
    consumer = stage.consume(topic, group)
    consumer.wait_received(COUNT)
    wait_until(
        lambda: sum(row["committed"] for row in stage.offsets_of_group(topic, group)) == COUNT,
        PATIENCE_SECONDS,
        f"{group} has not committed",
    )
    return topic, group, consumer


def _wait_twice(consumer: Consumer) -> None:
    wait_until(lambda: len(consumer.bodies) >= 2 * COUNT, 2 * PATIENCE_SECONDS, "nothing comes a second time")
    assert len(set(consumer.bodies)) == COUNT


def test_an_online_group_gets_its_messages_again_after_a_reset(
    stage: Stage, witness: Witness, telling: Together
) -> None:
    """By the broker's word with the next pull (5.x), and by members that are told to (4.x); both wait side by side."""
    told = Stage(witness, telling.nameserver)
    try:
        moved = {one: _consumed(one) for one in (stage, told)}
        for one, (topic, group, _) in moved.items():
            assert "broker-a" in one.admin(f"resetOffsetByTime -g {group} -t {topic} -s 0")
        for _, _, consumer in moved.values():
            _wait_twice(consumer)
    finally:
        told.close()


def test_a_group_that_is_not_there_begins_at_its_new_offset(stage: Stage) -> None:
    topic, group, consumer = _consumed(stage)
    consumer.stop()
    stage.admin(f"skipAccumulatedMessage -g {group} -t {topic}")
    stage.produce(topic, 2, prefix="new").finish()
    printed = stage.admin(f"resetOffsetByTime -g {group} -t {topic} -s now")
    assert "broker-a" in printed
    late = stage.produce(topic, 2, prefix="late").finish()
    again = stage.consume(topic, group)
    again.wait_received(2)
    assert sorted(again.bodies) == sorted(late.bodies)
