"""Consumers join and leave while messages flow: queues move because the broker says so, and nothing is lost.

A Java client also looks at its group by itself from time to time; here it does so later than any deadline, so a change
that settles proves the broker's notice.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.clients import Consumer, wait_received
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import QUICK, Witness

pytestmark = pytest.mark.needs("java", "mvn")

QUEUES = 8
LOOKS_LATE = (*QUICK, f"-Drocketmq.client.rebalance.waitInterval={3_000 * PATIENCE_SECONDS}")


@pytest.fixture(scope="module", params=java.VERSIONS, ids=lambda version: f"client-{version}")
def witness(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Witness]:
    """Clients that wait for the broker's notice."""
    witness = Witness(request.param, tmp_path_factory.mktemp("java"), LOOKS_LATE)
    yield witness
    witness.stop()


def _wait_shares(topic: str, members: list[Consumer], shares: list[int]) -> None:
    """Until the members hold this many queues each, all of them different."""

    def settled() -> bool:
        held = [member.queues(topic) for member in members]
        return sorted(map(len, held)) == shares and len(set[object]().union(*held)) == QUEUES

    wait_until(
        settled, PATIENCE_SECONDS, lambda: f"shares {[len(m.queues(topic)) for m in members]}, not {shares}"
    )


def test_consumers_that_join_and_leave_share_the_queues_at_once_and_lose_nothing(stage: Stage) -> None:
    """CO-05: CM-03."""
    topic, group = stage.topic(QUEUES), stage.name("group")
    members = [stage.consume(topic, group)]
    _wait_shares(topic, members, [8])
    production = stage.produce(topic, rate=200)
    members.append(stage.consume(topic, group))
    _wait_shares(topic, members, [4, 4])
    members.append(stage.consume(topic, group))
    _wait_shares(topic, members, [2, 3, 3])
    members[0].stop()
    _wait_shares(topic, members[1:], [4, 4])
    members[1].stop()
    _wait_shares(topic, members[2:], [8])
    sent = production.stop().bodies
    wait_received(members, len(sent))
    ledger.assert_nothing_lost(sent, [body for member in members for body in member.bodies])


def test_the_queues_of_a_killed_consumer_go_to_the_others_at_once(
    stage: Stage, server: Together, tmp_path: Path
) -> None:
    """CO-06."""
    topic, group = stage.topic(QUEUES), stage.name("group")
    doomed_witness = Witness(stage.witness.version, tmp_path / "doomed", LOOKS_LATE)
    doomed = Stage(doomed_witness, server.nameserver).consume(topic, group)
    survivor = stage.consume(topic, group)
    _wait_shares(topic, [survivor, doomed], [4, 4])
    before = stage.produce(topic, 200).finish().bodies
    wait_received([survivor, doomed], len(before))
    doomed_witness.kill()
    _wait_shares(topic, [survivor], [8])
    after = stage.produce(topic, 200).finish().bodies
    wait_until(lambda: set(after) <= set(survivor.bodies), PATIENCE_SECONDS, "the survivor lacks messages")
    ledger.assert_nothing_lost([*before, *after], [*doomed.bodies, *survivor.bodies])
