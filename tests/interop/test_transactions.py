"""Transactional messages of real Java producers: ended by them, asked for when they are not, given up at last.

All of it happens side by side on a broker with short times; the tests look at what came of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.interop.stage import Stage
from tests.peers.clients import Consumer, Transactor
from tests.peers.server import ServerKind, Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness, WitnessError

pytestmark = pytest.mark.needs("java", "mvn")

TIMEOUT_MS = 1_500
CHECKS_MAX = 3
IMMUNITY_S = 4
GIVEN_UP_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
SETTINGS = {
    "transactionTimeOut": str(TIMEOUT_MS),
    "transactionCheckInterval": "1000",
    "transactionCheckMax": str(CHECKS_MAX),
    "transactionOpBatchInterval": "100",  # the original would ask for what has ended, but is not noted yet
}


@pytest.fixture(scope="module")
def broker(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    server = Together(kind, tmp_path_factory.mktemp("transactions"), SETTINGS).start()
    yield server
    server.stop()


@dataclass
class Play:
    """What the clients did; each transactor has a topic of its own, all of which the consumer reads."""

    stage: Stage
    consumer: Consumer
    ended: Transactor
    asked: Transactor
    unknown: Transactor
    dead: Transactor
    heir: Transactor
    slow: Transactor
    patient: Transactor

    def seen(self, of: Transactor) -> list[str]:
        """What the consumer got of it so far."""
        return [body for body in self.consumer.bodies if body.startswith(of.name)]

    def given_up(self, of: Transactor) -> list[str]:
        try:
            messages, _ = self.stage.read("pull", GIVEN_UP_TOPIC, self.stage.name("readers"))
        except WitnessError:  # the first that is given up makes the topic
            return []
        return [message.body for message in messages if message.body.startswith(of.name)]


@pytest.fixture(scope="module")
def play(witness: Witness, broker: Together) -> Iterator[Play]:
    stage = Stage(witness, broker.nameserver)
    topics = [stage.topic(queues=2) for _ in range(6)]
    consumer = stage.consume(topics, stage.name("readers"))

    def transact(topic: str, group: str, count: int, **options: object) -> Transactor:
        return stage.transact(topic, group, count, **options)

    family = stage.name("family")
    played = Play(
        stage,
        consumer,
        ended=transact(topics[0], stage.name("ended"), 6, ends=["commit", "rollback"], checks=["commit"]),
        asked=transact(
            topics[1], stage.name("asked"), 4, ends=["unknown"], checks=["commit", "rollback"], size=5_000
        ),
        unknown=transact(topics[2], stage.name("unknown"), 2, ends=["unknown"], checks=["unknown"]),
        dead=transact(topics[3], family, 2, ends=["unknown"], checks=["commit"]),
        heir=transact(topics[3], family, 0, checks=["commit"]),
        slow=transact(
            topics[4], stage.name("slow"), 1, ends=["commit"], checks=["unknown"], pause=2 * TIMEOUT_MS
        ),
        patient=transact(
            topics[5], stage.name("patient"), 1, ends=["unknown"], checks=["commit"], immunity=IMMUNITY_S
        ),
    )
    played.dead.finish().stop()
    yield played
    stage.close()


def test_what_is_committed_is_seen_once_and_what_is_rolled_back_never(play: Play) -> None:
    """TX-01: before the end of its transaction nobody sees a message."""
    bodies = play.ended.finish().bodies
    assert len(bodies) == 6
    wait_until(lambda: len(play.seen(play.ended)) >= 3, PATIENCE_SECONDS, "committed messages are missing")
    wait_until(lambda: len(play.unknown.checks) >= 2 * CHECKS_MAX, PATIENCE_SECONDS, "nobody is asked")
    assert sorted(play.seen(play.ended)) == bodies[::2]
    assert play.ended.checks == []


def test_a_producer_that_does_not_know_is_asked_and_its_answer_counts(play: Play) -> None:
    """TX-02: not before it had its time; it sees the message in its own topic."""
    bodies = play.asked.finish().bodies
    wait_until(lambda: len(play.seen(play.asked)) >= 2, PATIENCE_SECONDS, "committed messages are missing")
    wait_until(lambda: len(play.asked.checks) >= 4, PATIENCE_SECONDS, "not all are asked for")
    wait_until(lambda: len(play.unknown.checks) >= 2 * CHECKS_MAX, PATIENCE_SECONDS, "nobody is asked")
    assert sorted(play.seen(play.asked)) == bodies[::2]
    assert sorted(check.body for check in play.asked.checks) == bodies
    queues = {sent.body: sent.queue for sent in play.asked.sent}
    for check in play.asked.checks:
        assert check.at - check.born >= TIMEOUT_MS
        assert (check.times, check.queue) == ("1", queues[check.body])


def test_what_nobody_ends_is_asked_for_so_often_and_given_up(play: Play) -> None:
    """TX-03"""
    bodies = play.unknown.finish().bodies
    wait_until(lambda: len(play.unknown.checks) >= 2 * CHECKS_MAX, PATIENCE_SECONDS, "nobody is asked")
    wait_until(
        lambda: sorted(play.given_up(play.unknown)) == bodies, PATIENCE_SECONDS, "they are not given up"
    )
    assert sorted((check.body, check.times) for check in play.unknown.checks) == [
        (body, str(times)) for body in bodies for times in range(1, CHECKS_MAX + 1)
    ]
    assert play.seen(play.unknown) == []


def test_another_member_of_the_group_answers_for_one_that_is_gone(play: Play) -> None:
    """TX-04"""
    bodies = play.dead.bodies
    wait_until(lambda: len(play.seen(play.dead)) >= 2, PATIENCE_SECONDS, "nobody has answered")
    assert sorted(play.seen(play.dead)) == bodies
    assert {check.body for check in play.heir.checks} == set(bodies)


def test_a_producer_that_was_asked_while_it_was_at_work_still_ends_its_transaction(play: Play) -> None:
    play.slow.finish()
    wait_until(lambda: play.seen(play.slow), PATIENCE_SECONDS, "the message is missing")
    assert play.slow.checks
    assert play.seen(play.slow) == play.slow.bodies


def test_a_message_that_asks_for_more_time_has_it(play: Play) -> None:
    play.patient.finish()
    wait_until(lambda: play.seen(play.patient), PATIENCE_SECONDS, "the message is missing")
    assert play.seen(play.patient) == play.patient.bodies
    assert all(check.at - check.born >= 1_000 * IMMUNITY_S for check in play.patient.checks)
