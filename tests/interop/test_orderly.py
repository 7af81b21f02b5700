"""Ordered consumption with the real orderly listener: one member and one call at a time for a queue, in its order.

The clients trust a lock for three seconds instead of thirty, and give a queue's thread to others after one second
instead of sixty, so that what they do then can be seen.
"""

from collections.abc import Iterator

import pytest

from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers import java
from tests.peers.clients import Consumer
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import PATIENCE_SECONDS, let_pass, wait_until
from tests.peers.witness import QUICK, Fields, Witness

pytestmark = pytest.mark.needs("java", "mvn")

FLAGS = {
    "rocketmq.client.rebalance.lockInterval": 500,
    "rocketmq.client.rebalance.lockMaxLiveTime": 3000,
    "rocketmq.client.unlockDelayTimeMills": 15_000,  # a queue given away with messages is free after that
    "rocketmq.client.maxTimeConsumeContinuously": 1000,
}


@pytest.fixture(scope="module", params=java.VERSIONS, ids=lambda version: f"client-{version}")
def witness(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Witness]:
    flags = (*QUICK, *(f"-D{name}={value}" for name, value in FLAGS.items()))
    witness = Witness(request.param, tmp_path_factory.mktemp("java"), flags)
    yield witness
    witness.stop()


class House:
    """A name server and a broker that can be stopped alone."""

    def __init__(self, nameserver: NameServer, broker: Broker) -> None:
        self.nameserver = nameserver
        self.broker = broker


@pytest.fixture(scope="module")
def house(kind: ServerKind, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    home = tmp_path_factory.mktemp("orderly")
    nameserver = NameServer(kind, home / "nameserver").start()
    broker = Broker(kind, home / "broker", "broker-a", [nameserver]).start()
    yield House(nameserver, broker)
    broker.stop()
    nameserver.stop()


@pytest.fixture
def stage(witness: Witness, house: House) -> Iterator[Stage]:
    stage = Stage(witness, house.nameserver.address)
    yield stage
    stage.close()


def seen(consumer: Consumer) -> list[Fields]:
    return consumer.witness.events(consumer.name, "message")


def wait_seen(consumer: Consumer, count: int) -> list[Fields]:
    wait_until(
        lambda: len(seen(consumer)) >= count, PATIENCE_SECONDS, lambda: f"{len(seen(consumer))} of {count}"
    )
    return seen(consumer)


def orderly(stage: Stage, topic: str | list[str], group: str, **options: object) -> Consumer:
    return stage.consume(topic, group, listener="orderly", **options)


def committed(stage: Stage, topic: str, group: str) -> int:
    """What the group has committed in all queues of the topic; 0 while the broker knows nothing of it."""
    progress = stage.admin(f"consumerProgress -g {group}")
    rows = [line.split() for line in progress.splitlines() if line.startswith(topic)]
    return sum(int(row[4]) for row in rows)


def test_a_message_that_fails_comes_again_at_once_and_those_behind_it_wait(stage: Stage) -> None:
    """OR-05: without a limit it is tried until it succeeds."""
    topic = stage.topic(1)
    consumer = orderly(stage, topic, stage.name("group"), fails=20, failtag="bad", suspend=10)
    sent = stage.produce(topic, 5, tags=["good", "bad", "good", "good", "good"]).finish().bodies
    wait_seen(consumer, 25)
    assert [one["body"] for one in seen(consumer)] == [sent[0], *[sent[1]] * 21, *sent[2:]]
    assert [one["tries"] for one in seen(consumer)[1:22]] == list(range(21))


@pytest.mark.parametrize("how", ["later", "throw"])
def test_with_a_limit_a_message_becomes_a_dead_letter_and_the_queue_goes_on(stage: Stage, how: str) -> None:
    """OR-05: nothing and an exception count as suspending, too."""
    topic, group = stage.topic(1), stage.name("group")
    consumer = orderly(stage, topic, group, fails=99, failtag="bad", suspend=10, reconsume=2, how=how)
    sent = stage.produce(topic, 3, tags=["good", "bad", "good"]).finish().bodies
    wait_seen(consumer, 5)
    assert [one["body"] for one in seen(consumer)] == [sent[0], *[sent[1]] * 3, sent[2]]
    dead = f"%DLQ%{group}"
    wait_until(
        lambda: stage.route_numbers(dead) == {(1, 1)}, PATIENCE_SECONDS, "there are no dead letters yet"
    )
    finder = stage.consume(dead, stage.name("undertaker"))
    (letter,) = wait_seen(finder, 1)
    assert (letter["body"], letter["properties"]["RETRY_TOPIC"]) == (sent[1], topic)
    wait_until(lambda: committed(stage, topic, group) == 3, PATIENCE_SECONDS, "the offset did not pass it")


def test_with_manual_commit_success_keeps_commit_moves_and_rollback_repeats(stage: Stage) -> None:
    """OR-06."""
    topic, group = stage.topic(1), stage.name("group")
    first = orderly(stage, topic, group, manual=True, suspend=10, fails=1, failtag="bad")
    sent = stage.produce(topic, 4, tags=["good", "bad", "commit", "good"]).finish().bodies
    # The rollback takes what was kept before it back as well.
    wait_seen(first, 6)
    assert [one["body"] for one in seen(first)] == [sent[0], sent[1], sent[0], sent[1], sent[2], sent[3]]
    wait_until(lambda: committed(stage, topic, group) == 3, PATIENCE_SECONDS, "the commit was not stored")
    first.stop()
    second = orderly(stage, topic, group)
    assert [one["body"] for one in wait_seen(second, 1)] == sent[3:]


def test_a_queue_goes_to_another_member_when_the_listener_has_ended_and_not_before(stage: Stage) -> None:
    """OR-04, OR-08: the new owner goes on where the old one has committed."""
    topic, group = stage.topic(2), stage.name("group")
    first = orderly(stage, topic, group)
    first.wait_queues(topic, 2)
    held = stage.produce(topic, 2, mode="ordered", orders=2, tags=["hold"]).finish().sent
    wait_seen(first, 2)
    second = orderly(stage, topic, group)
    let_pass(3)  # both look at their queues every second
    assert not seen(second)
    assert not stage.witness.events(first.name, "ended")
    for member in (first, second):  # the message comes again to the other one, too
        stage.witness.ask("release", name=member.name)
    for member in (first, second):
        member.wait_queues(topic, 1)
    rest = stage.produce(topic, 20, mode="ordered", orders=2).finish().sent
    wait_until(
        lambda: len({one["body"] for one in seen(first) + seen(second)}) == 22,
        PATIENCE_SECONDS,
        lambda: f"missing messages: {first.received} and {second.received}",
    )
    assert seen(second)
    # A client commits nothing for a queue that it has to give away, so the message in its listener comes again.
    again = {one.body for one in held}
    arrived = [one["body"] for one in seen(first) + seen(second)]
    ledger.assert_nothing_lost([one.body for one in (*held, *rest)], arrived)
    ledger.assert_each_once([one.body for one in rest], [body for body in arrived if body not in again])
    ledger.assert_seen_in_send_order(first.received)
    ledger.assert_seen_in_send_order(second.received)


def test_queues_are_consumed_side_by_side_and_each_by_one_call_at_a_time(stage: Stage) -> None:
    """OR-03, OR-07: a queue that is full for long gives its thread to others after its slice."""
    topic, group = stage.topic(4), stage.name("group")
    held = stage.topic(1)
    stage.produce(held, 1, tags=["hold"]).finish()
    consumer = orderly(stage, [topic, held], group, threads=2)
    stage.produce(topic, 400, mode="ordered", orders=4).finish()
    wait_seen(consumer, 401)  # one of two threads hangs in its listener
    stage.witness.ask("release", name=consumer.name)
    ledger.assert_seen_in_send_order([one for one in consumer.received if one.topic == topic])


def test_a_member_that_cannot_renew_its_locks_stops_until_it_has_them_again(
    stage: Stage, house: House
) -> None:
    """OR-02: what it has pulled already is not consumed on a lock that nobody confirms."""
    topic, group = stage.topic(1), stage.name("group")
    consumer = orderly(stage, topic, group, fails=10_000, suspend=50)
    stage.produce(topic, 1).finish()
    wait_seen(consumer, 3)
    house.broker.stop()
    stopped = -1

    def stands_still() -> bool:
        nonlocal stopped
        before, stopped = stopped, len(seen(consumer))
        return before == stopped

    wait_until(stands_still, PATIENCE_SECONDS, "the listener is still called", poll_seconds=1.0)
    house.broker.start()
    wait_seen(consumer, stopped + 3)
