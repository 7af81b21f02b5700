"""Reading queues by offset."""

import asyncio
from datetime import UTC, datetime

import pytest

from bolide.aio import Message, MessageQueue, Producer, PullConsumer, PullStatus
from bolide.client import checks
from bolide.model.errors import ClientNotRunning, InvalidRequest, RouteNotFound
from bolide.record.decode import decode_messages
from tests.unit.client.scripted import cluster, wait_for

QUEUE = MessageQueue("orders", "broker-0", 0)


def test_a_pull_returns_messages_and_where_to_go_on() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            for number in range(5):
                c.brokers[0].store("orders", 0, b"%d" % number)
            async with PullConsumer(c.nameserver.address) as consumer:
                assert await consumer.queues("orders") == [QUEUE]
                result = await consumer.pull(QUEUE, 1, 3)
                assert [message.body for message in result.messages] == [b"1", b"2", b"3"]
                assert (result.status, result.next_offset) == (PullStatus.FOUND, 4)
                assert (result.min_offset, result.max_offset) == (0, 5)
                assert (await consumer.pull(QUEUE, 5)).status is PullStatus.NO_NEW_MESSAGE
                beyond = await consumer.pull(QUEUE, 50)
                assert (beyond.status, beyond.next_offset) == (PullStatus.OFFSET_ILLEGAL, 5)
                assert c.brokers[0].members == []  # it takes no queues from the group

    asyncio.run(scenario())


def test_a_block_is_the_records_as_they_are_stored() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address) as producer:
                await producer.send(Message("orders", b"z" * 5000))
            async with PullConsumer(c.nameserver.address) as consumer:
                block = await consumer.pull_block(QUEUE, 0, max_bytes=1 << 20)
                assert block.data == c.brokers[0].queues["orders", 0][0]
                assert decode_messages(block.data, "b")[0].body == b"z" * 5000
                assert (await consumer.pull_block(QUEUE, 1)).data == b""

    asyncio.run(scenario())


def test_a_pull_that_may_wait_is_answered_by_the_next_message() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with PullConsumer(c.nameserver.address) as consumer:
                pull = asyncio.ensure_future(consumer.pull(QUEUE, 0, wait_ms=20_000))
                await wait_for(lambda: 11 in c.brokers[0].seen, "the broker holds it")
                assert not pull.done()
                c.brokers[0].store("orders", 0, b"x")
                assert [message.body for message in (await pull).messages] == [b"x"]

    asyncio.run(scenario())


def test_messages_of_other_tags_are_left_out_and_the_status_says_so() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            c.brokers[0].store("orders", 0, b"x", b"TAGS\x01BB\x02")
            async with PullConsumer(c.nameserver.address) as consumer:
                result = await consumer.pull(QUEUE, 0, tags="Aa")
                assert (result.status, result.messages) == (PullStatus.NO_MATCHED_MESSAGE, [])
                assert result.next_offset == 1
                assert (await consumer.pull(QUEUE, 0, tags="BB || C")).status is PullStatus.FOUND

    asyncio.run(scenario())


def test_a_groups_offset_is_none_until_it_is_committed() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with PullConsumer(c.nameserver.address, group="audit") as consumer:
                assert await consumer.committed_offset(QUEUE) is None
                await consumer.commit(QUEUE, 7)
                assert await consumer.committed_offset(QUEUE) == 7
                assert c.brokers[0].offsets == {("audit", "orders", 0): 7}

    asyncio.run(scenario())


def test_a_topic_that_nobody_has_is_an_error_with_advice() -> None:
    async def scenario() -> None:
        async with cluster() as c, PullConsumer(c.nameserver.address) as consumer:
            with pytest.raises(RouteNotFound, match="bolide topic create nowhere"):
                await consumer.queues("nowhere")
            c.create("orders", 1)
            with pytest.raises(RouteNotFound, match="broker-9"):
                await consumer.max_offset(MessageQueue("orders", "broker-9", 0))

    asyncio.run(scenario())


def test_a_moment_is_milliseconds_or_a_datetime() -> None:
    assert checks.moment_ms("moment", 1234) == 1234
    assert checks.moment_ms("moment", datetime(2026, 1, 1, tzinfo=UTC)) == 1_767_225_600_000


# ---- as a member of a group --------------------------------------------------------------------------------------


def test_a_pull_consumer_that_subscribes_has_a_share_of_the_queues_and_is_told_when_it_changes() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 4)
            (broker,) = c.brokers
            broker.store("orders", 3, b"x")
            news: list[tuple[str, int, list[int]]] = []

            async def changed(topic: str, queues: list[MessageQueue], ours: list[MessageQueue]) -> None:
                news.append((topic, len(queues), [queue.queue_id for queue in ours]))

            one = PullConsumer(c.nameserver.address, group="g", on_queues_changed=changed)
            await one.subscribe("orders")
            async with one, PullConsumer(c.nameserver.address, group="g") as two:
                assert len(await one.queues_in_balance("orders")) == 4
                await two.subscribe("orders")
                broker.notify_members("g")
                await wait_for(lambda: len(news) == 2, "news of the second member")
                shares = [await consumer.queues_in_balance("orders") for consumer in (one, two)]
                assert news == [
                    ("orders", 4, [0, 1, 2, 3]),
                    ("orders", 4, [queue.queue_id for queue in shares[0]]),
                ]
                assert sorted(shares[0] + shares[1]) == await one.queues("orders")
                assert [len(share) for share in shares] == [2, 2]
                result = await one.pull(MessageQueue("orders", "broker-0", 3), 0)  # any queue, as ever
                assert [message.body for message in result.messages] == [b"x"]
                await two.unsubscribe("orders")
                assert two._member.held == {}
            beat = broker.heartbeats[0]["consumerDataSet"][0]  # type: ignore[index]
            assert (beat["groupName"], beat["consumeType"]) == ("g", "CONSUME_ACTIVELY")
            assert (broker.members, broker.offsets) == ([], {})  # offsets are the caller's

    asyncio.run(scenario())


def test_a_share_of_a_topic_that_was_not_subscribed_to_is_an_error() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 4)
            async with PullConsumer(c.nameserver.address, group="g") as consumer:
                with pytest.raises(InvalidRequest, match=r"call subscribe\('orders'\) first"):
                    await consumer.queues_in_balance("orders")

    asyncio.run(scenario())


def test_a_close_on_another_event_loop_is_refused_and_the_consumer_keeps_its_share() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 4)
            one = PullConsumer(c.nameserver.address, group="g")
            await one.subscribe("orders")
            async with one, PullConsumer(c.nameserver.address, group="g") as two:
                with pytest.raises(ClientNotRunning, match="another event loop"):
                    await asyncio.get_running_loop().run_in_executor(None, asyncio.run, one.close())
                assert len(await one.queues_in_balance("orders")) == 4
                await two.subscribe("orders")
                c.brokers[0].notify_members("g")
                await wait_for(lambda: len(one._member.held) == 2, "the share of one of two members")

    asyncio.run(scenario())
