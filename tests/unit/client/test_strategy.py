"""How a consumer comes to its queues when it is told a strategy."""

import logging
from collections.abc import Sequence

import pytest

from bolide.aio import MessageQueue, PushConsumer
from tests.unit.client.consuming import Collector, consumer_of, on_cluster
from tests.unit.client.scripted import Cluster, wait_for


def held(consumer: PushConsumer) -> list[int]:
    return [queue.queue_id for queue in consumer.queues if queue.topic == "orders"]


def test_two_members_share_the_queues_by_the_strategy_of_both() -> None:
    """CO-03."""

    async def scenario(c: Cluster) -> None:
        async with (
            await consumer_of(c, Collector(), strategy="circle") as one,
            await consumer_of(c, Collector(), strategy="circle") as two,
        ):
            c.brokers[0].notify_members("g")
            await wait_for(lambda: sorted((held(one), held(two))) == [[0, 2], [1, 3]], "one by one")

    on_cluster(scenario)


def test_a_function_of_ones_own_chooses_the_queues_and_when_it_fails_they_stay_as_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wanted: list[object] = [1, 3]

    def mine(queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> list[MessageQueue]:
        return [queues[number] for number in wanted if queues[0].topic == "orders"]  # type: ignore[call-overload]

    async def scenario(c: Cluster) -> None:
        async with await consumer_of(c, Collector(), strategy=mine) as one:
            assert held(one) == [1, 3]
            wanted[:] = [0, 99]
            c.brokers[0].notify_members("g")
            await wait_for(lambda: "the strategy mine raised IndexError" in caplog.text, "a warning")
            assert held(one) == [1, 3]
            wanted[:] = [0]
            await wait_for(lambda: held(one) == [0], "the next answer")

    with caplog.at_level(logging.WARNING):
        on_cluster(scenario)
