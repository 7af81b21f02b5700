"""The two pull consumers, and what brokers say about the offsets of a queue."""

import pytest

from bolide import Message, Producer
from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers.clients import received
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, let_pass, wait_until

pytestmark = pytest.mark.needs("java", "mvn")

COUNT = 300


def test_a_pull_consumer_reads_every_queue_to_its_end(stage: Stage) -> None:
    """CO-12."""
    topic = stage.topic()
    sent = stage.produce(topic, COUNT).finish().sent
    messages, answer = stage.read("pull", topic, stage.name("group"))
    ledger.assert_each_once((s.body for s in sent), (m.body for m in messages))
    ledger.assert_same_places(sent, messages)
    ledger.assert_seen_in_send_order(messages)
    for row in answer["queues"]:
        assert row["statuses"][-1] == "NO_NEW_MSG"
        assert row["next"] == sum(s.queue == row["queue"] for s in sent)


def test_a_pull_of_an_empty_queue_says_so(stage: Stage) -> None:
    messages, answer = stage.read("pull", stage.topic(queues=2), stage.name("group"))
    assert messages == []
    assert [row["statuses"] for row in answer["queues"]] == [["NO_NEW_MSG"]] * 2


def test_a_pull_with_a_tag_sees_only_that_tag_and_still_moves_on(stage: Stage) -> None:
    topic = stage.topic(queues=1)
    sent = stage.produce(topic, COUNT, tags=["red", "green"]).finish().bodies
    messages, answer = stage.read("pull", topic, stage.name("group"), tags="green")
    ledger.assert_each_once((b for b in sent if ledger.number(b) % 2), (m.body for m in messages))
    unmatched, _ = stage.read("pull", topic, stage.name("group"), tags="yellow")
    assert unmatched == []
    assert answer["queues"][0]["next"] == COUNT


def test_offsets_committed_by_a_pull_consumer_are_where_the_next_one_starts(stage: Stage) -> None:
    topic, group = stage.topic(), stage.name("group")
    stage.produce(topic, COUNT).finish()
    stage.read("pull", topic, group, commit=True)
    later = stage.produce(topic, 20).finish().bodies
    messages, _ = stage.read("pull", topic, group, resume=True)
    ledger.assert_each_once(later, (m.body for m in messages))


def test_a_blocking_pull_waits_at_the_broker_until_a_message_comes(stage: Stage) -> None:
    """CO-12: It reads queue after queue, so once the message of the first has come, it waits at the second; and the one
    request that waits there is the one that brings the message."""
    topic, name = stage.topic(queues=2), stage.name("pull")
    with Producer(stage.nameserver, group=stage.name("producer"), timeout_ms=PATIENCE_MS) as producer:
        first, second = sorted(producer.queues(topic))
        producer.send(Message(topic, b"first|"), queue=first)
        options = {
            "topic": topic,
            "group": stage.name("group"),
            "nameserver": stage.nameserver,
            "block": True,
        }
        answer = stage.witness.begin("pull", name=name, **options)
        wait_until(lambda: received(stage.witness, name), PATIENCE_SECONDS, "the first message does not come")
        let_pass(1)
        assert not answer.done()
        producer.send(Message(topic, b"second|"), queue=second)
    queues = answer.result(PATIENCE_SECONDS)["queues"]
    assert [message.body for message in received(stage.witness, name)] == ["first", "second"]
    assert [row["statuses"] for row in queues] == [["FOUND"], ["FOUND"]]


def test_a_lite_pull_consumer_shares_a_group_and_resumes_from_its_commit(stage: Stage) -> None:
    """CO-13."""
    topic, group = stage.topic(), stage.name("group")
    first = stage.produce(topic, COUNT).finish().bodies
    messages, _ = stage.read("litepull", topic, group, count=COUNT)
    ledger.assert_each_once(first, (m.body for m in messages))
    later = stage.produce(topic, 20).finish().bodies
    messages, _ = stage.read("litepull", topic, group, count=20)
    ledger.assert_each_once(later, (m.body for m in messages))


def test_a_lite_pull_consumer_with_assigned_queues_seeks_where_it_wants(stage: Stage) -> None:
    """CO-13: The client may read a queue twice when a seek overtakes its first pull, so twice is allowed here."""
    topic, skipped = stage.topic(), 10
    sent = stage.produce(topic, COUNT).finish().sent
    wanted = [s.body for s in sent if s.offset >= skipped]
    messages, _ = stage.read(
        "litepull", topic, stage.name("group"), assign=True, seek=skipped, count=len(wanted)
    )
    ledger.assert_nothing_lost(wanted, (m.body for m in messages))


def test_a_queue_tells_its_bounds_and_the_group_its_progress(stage: Stage) -> None:
    topic, group = stage.topic(), stage.name("group")
    sent = stage.produce(topic, COUNT).finish().sent
    for row in stage.offsets(topic, group):
        held = sum(s.queue == row["queue"] for s in sent)
        assert (row["min"], row["max"], row["origin"], row["committed"]) == (0, held, 0, 0)
        assert row["earliest"] > 0
    stage.read("pull", topic, group, commit=True)
    assert all(row["committed"] == row["max"] for row in stage.offsets(topic, group))
