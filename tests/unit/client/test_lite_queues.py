"""Which queues a polling consumer has, and where in them it goes on."""

import asyncio
import logging

import pytest

from bolide.aio import MessageQueue, NotOurQueue, StoredMessage, SubscriptionConflict
from bolide.client import lite
from tests.unit.client.polling import (
    QUEUES,
    bodies,
    consumer_of,
    fill,
    member,
    offsets,
    on_cluster,
    polled,
)
from tests.unit.client.scripted import Cluster, wait_for

# ---- queues ------------------------------------------------------------------------------------------------------


def test_two_members_share_the_queues_and_one_takes_over_when_the_other_leaves() -> None:
    """CO-13: CO-05."""

    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        news: list[tuple[str, int, int]] = []

        def changed(topic: str, queues: list[MessageQueue], ours: list[MessageQueue]) -> None:
            news.append((topic, len(queues), len(ours)))

        fill(broker, 80)
        seen: list[StoredMessage] = []
        async with member(c, on_queues_changed=changed) as one:
            seen += await one.poll(messages_max=10)
            async with member(c) as two:
                broker.notify_members("g")
                await wait_for(lambda: [len(m.queues) for m in (one, two)] == [2, 2], "two queues each")
                await wait_for(lambda: news == [("orders", 4, 4), ("orders", 4, 2)], "news of it")
                left = {queue.queue_id for queue in one.queues}
                some = await polled(one, 1)
                assert {message.queue_id for message in some} <= left  # nothing of queues that have gone
                seen += some
                seen += await polled(two, 40)
            broker.notify_members("g")
            await wait_for(lambda: len(one.queues) == 4, "all four again")
            fill(broker, 40, first=80)
            async with asyncio.timeout(10):
                while len({message.body for message in seen}) < 120:
                    seen += await one.poll()
        assert set(bodies(seen)) == set(range(120))
        assert offsets(broker) == [30] * 4

    on_cluster(scenario)


def test_of_a_queue_that_has_gone_an_iteration_gives_nothing_more() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 40)
        consumer = consumer_of(c)
        await consumer.assign(QUEUES[:2])
        async with consumer:
            await wait_for(lambda: len(broker.pulls) >= 4, "both queues are fetched")
            seen = [await anext(consumer)]
            await consumer.assign([QUEUES[1]])
            seen += [await anext(consumer) for _ in range(10)]
        assert {message.queue_id for message in seen[1:]} == {1}
        assert [message.queue_offset for message in seen if message.queue_id == 1] == list(range(10))

    on_cluster(scenario)


def test_assigned_queues_are_read_by_nobody_s_member_and_may_be_changed() -> None:
    """CO-13."""

    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 40)
        consumer = consumer_of(c)
        await consumer.assign([QUEUES[1], QUEUES[2]])
        async with consumer:
            messages = await polled(consumer, 20)
            assert {message.queue_id for message in messages} == {1, 2}
            assert broker.members == []
            assert await consumer.poll(timeout_ms=0) == []
            await consumer.assign([QUEUES[3]])
            assert consumer.queues == [QUEUES[3]]
            assert offsets(broker) == [None, 10, 10, None]
            assert bodies(await polled(consumer, 10)) == list(range(3, 40, 4))
            await consumer.assign([])
            assert consumer.queues == []

    on_cluster(scenario)


def test_subscribe_and_assign_exclude_each_other() -> None:
    """CO-13."""

    async def scenario(c: Cluster) -> None:
        consumer = consumer_of(c)
        await consumer.subscribe("orders")
        with pytest.raises(SubscriptionConflict, match="use another consumer for assign"):
            await consumer.assign(QUEUES)
        async with consumer:
            await consumer.unsubscribe("orders")
            assert consumer.queues == []
            with pytest.raises(SubscriptionConflict):
                await consumer.assign(QUEUES)
        other = consumer_of(c)
        await other.assign(QUEUES)
        for wrong in (other.subscribe("orders"), other.unsubscribe("orders")):
            with pytest.raises(SubscriptionConflict, match="use another consumer for subscribe"):
                await wrong

    on_cluster(scenario)


def test_a_topic_may_be_subscribed_to_and_left_while_the_consumer_runs() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        c.create("bills", 2)
        broker.store("bills", 1, b"7")
        async with member(c) as consumer:
            await consumer.subscribe("bills")
            assert len(consumer.queues) == 6
            assert bodies(await polled(consumer, 1)) == [7]
            await consumer.unsubscribe("bills")
            assert consumer.queues == QUEUES
            assert broker.offsets["g", "bills", 1] == 0
            topics = broker.heartbeats[-1]["consumerDataSet"][0]["subscriptionDataSet"]  # type: ignore[index]
            assert [one["topic"] for one in topics] == ["orders"]

    on_cluster(scenario)


def test_a_listener_that_fails_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(c: Cluster) -> None:
        async def changed(*_: object) -> None:
            raise RuntimeError("not interested")

        async with member(c, on_queues_changed=changed) as consumer:
            await wait_for(lambda: "on_queues_changed failed for orders" in caplog.text, "the log")
            assert len(consumer.queues) == 4

    on_cluster(scenario)


# ---- places ------------------------------------------------------------------------------------------------------


def test_a_seek_goes_to_an_offset_to_the_first_and_to_the_last_and_the_offset_follows() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 40, queues=1)
        async with member(c) as consumer:
            await polled(consumer, 40)
            await consumer.seek(QUEUES[0], 35)
            assert bodies(await polled(consumer, 5)) == list(range(35, 40))
            await consumer.seek(QUEUES[0], "first")
            assert bodies(await consumer.poll(messages_max=3)) == [0, 1, 2]
            await consumer.commit()
            assert offsets(broker)[0] == 3
            await consumer.seek(QUEUES[0], "last")
            assert await consumer.poll(timeout_ms=20) == []
            broker.store("orders", 0, b"40")
            assert bodies(await polled(consumer, 1)) == [40]
        assert offsets(broker)[0] == 41

    on_cluster(scenario)


def test_the_answer_to_a_pull_that_a_seek_has_overtaken_is_dropped() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 40, queues=1)
        broker.deaf_for = {0}
        async with member(c) as consumer:
            await wait_for(lambda: any(pull.queue_id == 0 for pull in broker.pulls), "a pull")
            await consumer.seek(QUEUES[0], 30)
            broker.deaf_for = set()
            assert bodies(await polled(consumer, 10)) == list(range(30, 40))

    on_cluster(scenario)


def test_an_iteration_goes_on_where_a_seek_says() -> None:
    async def scenario(c: Cluster) -> None:
        fill(c.brokers[0], 40, queues=1)
        async with member(c) as consumer:
            assert (await anext(consumer)).queue_offset == 0
            await consumer.seek(QUEUES[0], 30)
            assert (await anext(consumer)).queue_offset == 30

    on_cluster(scenario)


def test_paused_queues_give_nothing_until_they_are_resumed_and_others_go_on() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 40)
        async with member(c) as consumer:
            await consumer.pause(QUEUES[:3])
            assert {message.queue_id for message in await polled(consumer, 10)} == {3}
            assert await consumer.poll(timeout_ms=20) == []
            await consumer.resume(QUEUES[:3])
            assert bodies(await polled(consumer, 30)) == [n for n in range(40) if n % 4 != 3]
            await consumer.seek(QUEUES[0], 0)
            assert (await anext(consumer)).queue_offset == 0
            await consumer.pause([QUEUES[0]])
            broker.store("orders", 1, b"40")
            assert int((await anext(consumer)).body) == 40
            await consumer.resume([QUEUES[0]])
            assert [(await anext(consumer)).queue_offset for _ in range(3)] == [1, 2, 3]

    on_cluster(scenario)


def test_what_was_fetched_of_paused_queues_makes_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lite, "POLL_CACHE_BYTES_MAX", 10_000)

    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        for number in range(20):
            broker.store("orders", 0, b"%d" % number + bytes(1_000))
        async with member(c) as consumer:
            await wait_for(lambda: consumer._cache.is_full, "a full cache")
            await consumer.pause([QUEUES[0]])
            broker.store("orders", 1, b"now")
            assert [message.body for message in await polled(consumer, 1)] == [b"now"]
            await consumer.resume([QUEUES[0]])
            messages = await polled(consumer, 20)
            assert [message.queue_offset for message in messages] == list(range(20))

    on_cluster(scenario)


def test_a_queue_of_another_member_cannot_be_moved_or_paused() -> None:
    async def scenario(c: Cluster) -> None:
        other = MessageQueue("orders", "broker-0", 9)
        async with member(c) as consumer:
            for wrong in (consumer.seek(other, 0), consumer.pause([other]), consumer.resume([other])):
                with pytest.raises(NotOurQueue, match="orders@broker-0:9 is none of this consumer's queues"):
                    await wrong

    on_cluster(scenario)


def test_a_consumer_without_queues_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(c: Cluster) -> None:
        async with consumer_of(c) as consumer:
            assert await consumer.poll(timeout_ms=0) == []

    with caplog.at_level(logging.WARNING):
        on_cluster(scenario)
    assert "call subscribe(topic) or assign(queues)" in caplog.text


def test_nothing_is_left_running_after_the_end() -> None:
    async def scenario(c: Cluster) -> None:
        fill(c.brokers[0], 40)
        before = asyncio.all_tasks()
        async with member(c, on_queues_changed=lambda *_: None) as consumer:
            await consumer.poll()
        await wait_for(lambda: not c.brokers[0].links, "the broker sees the end")
        assert {task for task in asyncio.all_tasks() - before if "Dispatcher" not in repr(task)} == set()

    on_cluster(scenario)
