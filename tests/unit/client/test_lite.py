"""Polling: what is given out, what is stored, and when."""

import asyncio
from collections import Counter

import pytest

from bolide.aio import ClientNotRunning, ConnectionLost, StoredMessage
from bolide.model.limits import POLL_PULLS_AHEAD_MAX
from bolide.wire.codes import RequestCode
from bolide.wire.headers.pull import PullFlag
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

# ---- polls -------------------------------------------------------------------------------------------------------


def test_polls_give_every_message_of_every_queue_in_its_order_and_wait_for_the_next() -> None:
    """CO-13."""

    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 100)
        async with member(c) as consumer:
            assert consumer.queues == QUEUES
            messages = await polled(consumer, 100)
            assert bodies(messages) == list(range(100))
            for queue in QUEUES:
                own = [m.queue_offset for m in messages if m.queue_id == queue.queue_id]
                assert own == list(range(25))
            assert await consumer.poll(timeout_ms=0) == []
            assert await consumer.poll(timeout_ms=20) == []
            waiting = asyncio.ensure_future(consumer.poll())
            await wait_for(lambda: broker.seen.count(RequestCode.PULL_MESSAGE) >= 8, "held pulls")
            broker.store("orders", 2, b"100")
            assert [message.body for message in await waiting] == [b"100"]
        beat = broker.heartbeats[-1]["consumerDataSet"][0]  # type: ignore[index]
        assert (beat["consumeType"], beat["messageModel"]) == ("CONSUME_ACTIVELY", "CLUSTERING")
        assert broker.members == []

    on_cluster(scenario)


def test_a_poll_gives_no_more_than_it_is_asked_for_and_takes_turns_between_queues() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 100)
        async with member(c) as consumer:
            await wait_for(lambda: len(broker.pulls) == 8, "all are fetched, and wait for more")
            messages: list[StoredMessage] = []
            first_of: list[int] = []
            while len(messages) < 100:
                some = await consumer.poll(messages_max=7)
                assert 0 < len(some) <= 7
                first_of.append(some[0].queue_id)
                messages += some
            assert bodies(messages) == list(range(100))
            assert set(first_of[:8]) == {0, 1, 2, 3}

    on_cluster(scenario)


def test_from_a_broker_that_gives_little_at_a_time_several_pulls_are_under_way() -> None:
    """Goal: a round trip is not paid for every 32 messages.  Method: the second queue's answers wait."""

    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        broker.pull_messages_max = 32
        fill(broker, 2_000, queues=1)
        async with member(c) as consumer:
            assert bodies(await polled(consumer, 2_000)) == list(range(2_000))
            broker.deaf_for = {0}
            await consumer.seek(QUEUES[0], 0)
            broker.pulls.clear()
            broker.deaf_for = set()
            await consumer.poll()
            broker.deaf_for = {0}
            await wait_for(lambda: len(broker.pulls) > POLL_PULLS_AHEAD_MAX, "pulls ahead")
            broker.deaf_for = set()
            await polled(consumer, 2_000 - 32)
        assert {pull.bulk for pull in broker.pulls} == {True}

    on_cluster(scenario)


def test_a_broker_that_is_away_is_asked_again_and_nothing_is_lost() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 40)
        async with member(c) as consumer:
            await polled(consumer, 40)
            port = int(broker.address.rpartition(":")[2])
            await broker.stop()
            assert await consumer.poll(timeout_ms=100) == []
            await broker.start(port)
            fill(broker, 40, first=40)
            assert bodies(await polled(consumer, 40)) == list(range(40, 80))

    on_cluster(scenario)


def test_messages_of_other_tags_are_left_out_and_the_offset_passes_them() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        for number in range(40):
            tag = b"Aa" if number % 8 == 0 else b"BB"  # the same hash
            broker.store("orders", 0, b"%d" % number, b"TAGS\x01" + tag + b"\x02")
        consumer = consumer_of(c)
        await consumer.subscribe("orders", tags="Aa")
        async with consumer:
            assert bodies(await polled(consumer, 5)) == [0, 8, 16, 24, 32]
        assert offsets(broker)[0] == 40

    on_cluster(scenario)


# ---- at least once -----------------------------------------------------------------------------------------------


def test_what_a_poll_gave_out_is_stored_when_the_next_poll_has_begun() -> None:
    """CO-13: what is in the application's hands comes again after a crash."""

    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 10, queues=1)
        async with member(c, commit_interval_ms=100) as consumer:
            assert len(await polled(consumer, 4, messages_max=4)) == 4
            await wait_for(lambda: offsets(broker)[0] == 0, "the place at the start is stored")
            assert len(await consumer.poll(messages_max=3)) == 3
            await wait_for(lambda: offsets(broker)[0] == 4, "four are done")
        assert offsets(broker)[0] == 7  # `async with` was left in order

    on_cluster(scenario)


def test_pulls_carry_no_offset_because_a_newer_one_may_overtake_them() -> None:
    """The original serves pulls and offsets in different threads."""

    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 10, queues=1)
        async with member(c) as consumer:
            await polled(consumer, 10)
            assert await consumer.poll(timeout_ms=0) == []
            fill(broker, 1, queues=1)
            assert len(await polled(consumer, 1)) == 1
            await wait_for(lambda: broker.pulls[-1].queue_offset == 11, "the pull at the end")
        assert not any(pull.sys_flag & PullFlag.COMMIT_OFFSET for pull in broker.pulls)

    on_cluster(scenario)


@pytest.mark.parametrize("later", ["commit", "close"])
def test_of_one_queue_one_offset_is_under_way_at_a_time(later: str) -> None:
    """CO-13: what `commit` or the end has stored is not undone by an older offset that was slow."""

    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 10, queues=1)
        assigned = consumer_of(c, commit_interval_ms=100)
        await assigned.assign(QUEUES[:1])
        async with assigned as consumer:
            await polled(consumer, 4, messages_max=4)
            await wait_for(lambda: offsets(broker)[0] == 0, "the place at the start is stored")
            broker.stores.shut()
            assert len(await consumer.poll()) == 6
            await wait_for(lambda: broker.stores.waiting == 1, "four are done, which is not answered yet")
            storing = asyncio.create_task(getattr(consumer, later)())
            for _ in range(10):  # whatever is sent in this time comes before the last answer
                await consumer.committed(QUEUES[0])
            assert broker.stores.waiting == 1
            broker.stores.open()
            await storing
            assert offsets(broker)[0] == (10 if later == "commit" else 4)

    on_cluster(scenario)


def test_an_error_that_leaves_the_consumer_and_a_bare_close_bring_the_last_messages_again() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 10, queues=1)

        async def work_that_fails() -> None:
            async with member(c) as consumer:
                await consumer.poll(messages_max=2)
                await consumer.poll(messages_max=2)
                raise RuntimeError("the work failed")

        with pytest.raises(RuntimeError):
            await work_that_fails()
        assert offsets(broker)[0] == 2
        consumer = consumer_of(c)
        await consumer.subscribe("orders")
        await consumer.start()
        assert bodies(await polled(consumer, 2, messages_max=2)) == [2, 3]
        await consumer.close()
        assert offsets(broker)[0] == 2
        async with member(c) as consumer:
            assert bodies(await polled(consumer, 8)) == list(range(2, 10))
            await consumer.commit()
            assert offsets(broker)[0] == 10

    on_cluster(scenario)


def test_without_auto_commit_offsets_are_stored_by_commit_alone() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 20)
        async with member(c, auto_commit=False) as consumer:
            await polled(consumer, 20)
            assert await consumer.poll(timeout_ms=10) == []
            assert await consumer.committed(QUEUES[0]) is None
        assert offsets(broker) == [None] * 4
        async with member(c, auto_commit=False) as consumer:
            assert bodies(await polled(consumer, 20)) == list(range(20))
            await consumer.commit()
            assert [await consumer.committed(queue) for queue in QUEUES] == [5] * 4
            fill(broker, 4)
            await polled(consumer, 4)
        assert offsets(broker) == [5] * 4

    on_cluster(scenario)


def test_a_commit_that_a_broker_does_not_take_is_an_error() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 20)
        consumer = consumer_of(c)
        await consumer.subscribe("orders")
        await consumer.start()
        await polled(consumer, 20)
        await broker.stop()
        with pytest.raises(ConnectionLost):
            await consumer.commit()
        await consumer.close()

    on_cluster(scenario)


def test_an_iteration_gives_message_by_message_and_only_those_behind_count_as_done() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 40, queues=2)
        seen: list[StoredMessage] = []

        async def work_that_fails() -> None:
            async with member(c) as consumer:
                async for message in consumer:
                    seen.append(message)
                    if len(seen) == 30:
                        raise RuntimeError("the work on this one failed")

        with pytest.raises(RuntimeError):
            await work_that_fails()
        done = Counter(message.queue_id for message in seen[:-1])
        assert offsets(broker)[:2] == [done[0], done[1]]
        async with member(c) as consumer:
            async for message in consumer:
                seen.append(message)
                if len(seen) == 41:
                    break
        assert bodies(seen) == sorted([*range(40), int(seen[29].body)])
        assert offsets(broker)[:2] == [20, 20]

    on_cluster(scenario)


def test_while_an_iteration_goes_on_offsets_follow_and_commit_includes_the_one_in_hand() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 40, queues=1)
        async with member(c, commit_interval_ms=100) as consumer:
            async for message in consumer:
                if message.queue_offset == 10:
                    await wait_for(lambda: offsets(broker)[0] == 10, "those behind are stored")
                    await consumer.commit()
                    assert offsets(broker)[0] == 11
                if message.queue_offset == 20:
                    assert bodies(await consumer.poll(messages_max=5)) == list(range(21, 26))
                if message.queue_offset == 30:
                    break
        assert offsets(broker)[0] == 31

    on_cluster(scenario)


def test_closing_ends_polls_and_iterations_that_wait() -> None:
    async def scenario(c: Cluster) -> None:
        consumer = consumer_of(c)
        await consumer.subscribe("orders")
        with pytest.raises(ClientNotRunning):
            await consumer.poll()
        await consumer.start()

        async def iterate() -> list[StoredMessage]:
            return [message async for message in consumer]

        poll = asyncio.ensure_future(consumer.poll(timeout_ms=60_000))
        iteration = asyncio.ensure_future(iterate())
        await asyncio.wait([poll], timeout=0.05)
        await consumer.close()
        assert (await poll, await iteration) == ([], [])
        assert [message async for message in consumer] == []
        with pytest.raises(ClientNotRunning, match="closed"):
            await consumer.poll()

    on_cluster(scenario)
