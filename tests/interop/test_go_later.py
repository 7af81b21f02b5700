"""The Go client 2.1.2: what comes later. Retries, dead letters, delays and transactions."""

import pytest

from tests.interop import claims, ledger
from tests.interop.stage import BareStage
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("go")


def test_a_failed_message_comes_again_under_its_own_topic(go_later: BareStage) -> None:
    """RY-01, RY-02."""
    claims.a_failed_message_comes_again(go_later)


def test_a_message_that_always_fails_is_a_dead_letter(go_later: BareStage) -> None:
    """RY-03."""
    claims.a_message_that_always_fails_is_a_dead_letter(go_later)


def test_the_level_that_a_listener_asks_for_is_honoured(go_later: BareStage) -> None:
    """RY-02."""
    topic = go_later.topic()
    consumer = go_later.consume(topic, claims.known_group(go_later, topic), fails=1, level=7)
    go_later.produce(topic, 1).finish()
    assert [event["level"] for event in claims.wait_seen(go_later, consumer, 2)] == [0, 7]


def test_an_orderly_consumer_gives_a_message_up_to_the_dead_letters(go_later: BareStage) -> None:
    """OR-05: after its own limit; what comes behind it is consumed."""
    topic, group = go_later.topic(queues=1), go_later.name("group")
    (bad,) = go_later.produce(topic, 1).finish().bodies
    consumer = go_later.consume(topic, group, listener="orderly", fails=99, reconsume=1)
    graveyard = f"%DLQ%{group}"
    wait_until(lambda: go_later.route_numbers(graveyard), PATIENCE_SECONDS, f"there is no {graveyard}")
    undertaker = go_later.consume(graveyard, go_later.name("undertaker"))
    undertaker.wait_received(1)
    assert undertaker.bodies == [bad]
    assert set(consumer.bodies) == {bad}


def test_delayed_messages_come_once_to_their_queue_and_never_early(go_later: BareStage) -> None:
    """DE-01."""
    claims.delayed_messages_are_never_early(go_later)


def test_transactions_end_as_their_producer_says_at_once_or_when_it_is_asked(go_later: BareStage) -> None:
    """TX-01 to TX-03: committed messages come, rolled back ones do not, of unknown ones the producer is asked."""
    topic, asked_topic = go_later.topic(), go_later.topic()
    consumer = go_later.consume([topic, asked_topic], go_later.name("group"))
    ended = go_later.transact(
        topic, go_later.name("ended"), 6, ends=["commit", "rollback"], checks=["commit"]
    )
    asked = go_later.transact(
        asked_topic, go_later.name("asked"), 4, ends=["unknown"], checks=["commit", "rollback"]
    )
    wanted = [
        body
        for one in (ended.finish(), asked.finish())
        for body in one.bodies
        if ledger.number(body) % 2 == 0
    ]
    wait_until(
        lambda: {check.body for check in asked.checks} == set(asked.bodies),
        PATIENCE_SECONDS,
        lambda: f"asked only of {asked.checks}",
    )
    consumer.wait_received(len(wanted))
    ledger.assert_each_once(wanted, consumer.bodies)
    assert ended.checks == []
    assert {check.topic for check in asked.checks} == {asked_topic}
    assert all(check.at - check.born >= 1000 for check in asked.checks)
