"""Work on many queues: the brokers side by side, each for its time."""

import asyncio

import pytest

from bolide.client import by_broker, shares
from bolide.client.by_broker import each_broker
from bolide.model.errors import CallTimeout
from tests.unit.client.consuming import Collector, consumer_of, on_cluster
from tests.unit.client.scripted import Cluster, wait_for

THINGS = ["a0", "b0", "a1", "b1", "a2"]


class Work:
    """Remembers what it was done on; brokers that do not answer are given."""

    def __init__(self, *silent: str) -> None:
        self.done: list[str] = []
        self._silent = silent

    async def __call__(self, thing: str) -> bool:
        if thing in self._silent:
            raise CallTimeout("no answer")
        self.done.append(thing)
        return thing != "b1"

    def goes_well(self, *things: str) -> bool:
        return asyncio.run(each_broker(things, lambda thing: thing[0], self))


def test_a_broker_that_does_not_answer_is_asked_no_more_and_keeps_nobody_from_the_others() -> None:
    work = Work("a1")
    assert not work.goes_well(*THINGS)
    assert work.done == ["a0", "b0", "b1"]


def test_whether_all_went_well_is_said() -> None:
    work = Work()
    assert not work.goes_well(*THINGS)
    assert sorted(work.done) == sorted(THINGS)
    assert work.goes_well("a0", "b0")


def test_a_broker_that_is_slow_has_its_time_and_the_rest_waits_for_the_next_round(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(by_broker, "ROUND_S", 0.0)
    work = Work()
    assert not work.goes_well("a0", "b0", "a1", "a2")
    assert sorted(work.done) == ["a0", "b0"]
    assert "a broker answers slowly: 2 queues are left for the next round" in caplog.text
    assert work.goes_well("a1")


def test_a_consumer_starts_with_what_a_slow_broker_gives_in_time_and_takes_the_rest_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(by_broker, "ROUND_S", 0.0)
    monkeypatch.setattr(shares, "UNSETTLED_PAUSE_MS", 1)

    async def scenario(c: Cluster) -> None:
        consumer = await consumer_of(c, Collector())
        async with consumer:
            assert len([queue for queue in consumer.queues if queue.topic == "orders"]) == 1
            await wait_for(lambda: len(consumer.queues) == 5, "all queues, and that of the retry topic")

    on_cluster(scenario)
