"""Reading queues by offset."""

import asyncio
from datetime import UTC, datetime

import pytest

from bolide.aio import Message, MessageQueue, Producer, PullConsumer, PullStatus
from bolide.client import checks
from bolide.model.errors import RouteNotFound
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
