"""Bodies that do not unpack, where they are to be skipped: every kind of consumer does the same."""

from collections.abc import Awaitable, Callable

import pytest

from bolide.aio import Hooks, PullConsumer, PushConsumer, StoredMessage
from bolide.model.message import SysFlag
from tests.unit.client.polling import QUEUES, consumer_of, on_cluster, polled
from tests.unit.client.scripted import Cluster, wait_for

Got = tuple[list[StoredMessage], int]


async def pushed(c: Cluster, hooks: list[Hooks]) -> Got:
    got: list[StoredMessage] = []
    consumer = PushConsumer(
        c.nameserver.address,
        group="g",
        listener=got.extend,
        start_from="first",
        bad_bodies="skip",
        hooks=hooks,
    )
    await consumer.subscribe("orders", tags="paid")
    async with consumer:
        await wait_for(lambda: len(got) == 2, "the sound ones")
    return got, consumer.skipped


async def given_out(c: Cluster, hooks: list[Hooks]) -> Got:
    async with consumer_of(c, bad_bodies="skip", hooks=hooks) as consumer:
        await consumer.assign(QUEUES[:1], tags="paid")
        return await polled(consumer, 2), consumer.skipped


async def pulled(c: Cluster, hooks: list[Hooks]) -> Got:
    async with PullConsumer(c.nameserver.address, bad_bodies="skip", hooks=hooks) as consumer:
        return (await consumer.pull(QUEUES[0], 0, tags="paid")).messages, consumer.skipped


@pytest.mark.parametrize("consumed", [pushed, given_out, pulled])
def test_they_are_counted_and_said_and_no_filter_sees_them(
    consumed: Callable[[Cluster, list[Hooks]], Awaitable[Got]], caplog: pytest.LogCaptureFixture
) -> None:
    paid, seen, packed = b"TAGS\x01paid\x02", list[bytes](), SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZLIB

    def keep(message: StoredMessage) -> bool:
        seen.append(message.body)
        return True

    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        broker.store("orders", 0, b"sound", paid)
        broker.store("orders", 0, b"no zlib", paid, sys_flag=packed)
        broker.store("orders", 0, b"no zlib, and of no interest", sys_flag=packed)
        broker.store("orders", 0, b"last", paid)
        messages, skipped = await consumed(c, [Hooks(keep_message=keep)])
        assert [message.body for message in messages] == [b"sound", b"last"]
        assert skipped == 1

    on_cluster(scenario)
    assert seen == [b"sound", b"last"]
    assert "orders@broker-0:0: skipped the message at offset 1, and others perhaps" in caplog.text
