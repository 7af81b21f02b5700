"""Where a group without an offset begins, on brokers that answer as Apache's do: of a queue without messages they know
no offset, and of one that still has its first message it is 0."""

import pytest

from bolide.wire.codes import RequestCode
from tests.unit.client import polling
from tests.unit.client.consuming import Collector, consumer_of, on_cluster
from tests.unit.client.scripted import Cluster, ScriptedBroker, wait_for

KINDS = ["push", "orderly", "lite"]


def apache(c: Cluster) -> ScriptedBroker:
    (broker,) = c.brokers
    broker.gives_young_queues_whole = True
    return broker


async def first_of_a_new_group(c: Cluster, kind: str) -> bytes:
    """What a consumer of each kind that was told "last" gets first; the last of the queue is sent when it has begun."""
    (broker,) = c.brokers
    if kind == "lite":
        async with polling.member(c, start_from="last") as consumer:
            await wait_for(lambda: RequestCode.PULL_MESSAGE in broker.seen, "it has begun")
            broker.store("orders", 0, b"later")
            return (await polling.polled(consumer, 1))[0].body
    collector = Collector()
    async with await consumer_of(c, collector, start_from="last", orderly=kind == "orderly"):
        await wait_for(lambda: RequestCode.PULL_MESSAGE in broker.seen, "it has begun")
        broker.store("orders", 0, b"later")
        await wait_for(lambda: collector.bodies, "a message")
    return collector.bodies[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_group_misses_no_message_that_comes_between_its_questions_of_a_queue_without_any(
    kind: str,
) -> None:
    async def scenario(c: Cluster) -> None:
        broker = apache(c)

        def a_first_message(topic: str, queue_id: int) -> None:
            if (topic, queue_id) == ("orders", 0) and not broker.queues[topic, queue_id]:
                broker.store(topic, queue_id, b"first")

        broker.before_ends = a_first_message
        assert await first_of_a_new_group(c, kind) == b"first"

    on_cluster(scenario)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_group_begins_at_the_end_of_a_queue_that_has_lost_its_first_messages(kind: str) -> None:
    """At the end of when it asked for it."""

    async def scenario(c: Cluster) -> None:
        broker = apache(c)
        for number in range(5):
            broker.store("orders", 0, b"%d" % number)
        broker.first["orders", 0] = 2
        assert await first_of_a_new_group(c, kind) == b"later"

    on_cluster(scenario)


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_group_goes_on_where_another_member_was_between_its_questions(kind: str) -> None:
    async def scenario(c: Cluster) -> None:
        broker = apache(c)
        for number in range(5):
            broker.store("orders", 0, b"%d" % number)
        broker.first["orders", 0] = 2

        def another_commits(topic: str, queue_id: int) -> None:
            broker.offsets["g", topic, 0] = 3

        broker.before_ends = another_commits
        assert await first_of_a_new_group(c, kind) == b"3"

    on_cluster(scenario)
