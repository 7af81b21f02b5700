"""Many messages at once: batches that split themselves, and `send_many`."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

import bolide
from bolide.aio import (
    InvalidRequest,
    Message,
    MessageIllegal,
    PartlyStored,
    Producer,
    RemoteError,
    SendReceipt,
)
from bolide.model.limits import SEND_AHEAD_MAX
from bolide.record.codec import split_batch
from bolide.record.decode import decode_messages
from bolide.testing import EmbeddedServer
from bolide.wire.codes import ResponseCode
from tests.unit.client.scripted import Cluster, ScriptedBroker, cluster, wait_for

MIB = 1024 * 1024


def bodies_of(broker: ScriptedBroker) -> list[list[bytes]]:
    """What each request brought."""
    return [
        [item for _, item, _ in split_batch(body)] if header.batch else [body]
        for header, body in zip(broker.sends, broker.bodies, strict=True)
    ]


def test_a_batch_that_is_too_large_for_one_request_goes_as_several_behind_each_other() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            async with Producer(c.nameserver.address) as producer:
                bodies = [bytes([number]) * MIB for number in range(10)]
                receipts = await producer.send_batch([Message("orders", body) for body in bodies])
            (broker,) = c.brokers
            assert [len(part) for part in bodies_of(broker)] == [3, 3, 3, 1]
            assert [body for part in bodies_of(broker) for body in part] == bodies
            assert len({receipt.queue for receipt in receipts}) == 1
            assert [receipt.queue_offset for receipt in receipts] == list(range(10))
            assert len({receipt.message_id for receipt in receipts}) == 10

    asyncio.run(scenario())


def test_what_is_as_large_as_a_message_may_be_goes_alone_in_its_place() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address) as producer:
                batch = [Message("orders", body) for body in (b"a", bytes(4 * MIB), b"b")]
                receipts = await producer.send_batch(batch)
            assert [header.batch for header in c.brokers[0].sends] == [True, False, True]
            assert [receipt.queue_offset for receipt in receipts] == [0, 1, 2]

    asyncio.run(scenario())


def test_when_a_later_part_of_a_batch_fails_the_error_says_what_is_stored() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            broker = c.brokers[0]
            broker.answers = [ResponseCode.SUCCESS, ResponseCode.MESSAGE_ILLEGAL]
            async with Producer(c.nameserver.address) as producer:
                with pytest.raises(PartlyStored, match="3 of 7 messages are stored") as raised:
                    await producer.send_batch([Message("orders", bytes(MIB)) for _ in range(7)])
            receipts = raised.value.receipts
            assert [receipt is not None for receipt in receipts] == [True] * 3 + [False] * 4
            assert isinstance(raised.value.cause, RemoteError)
            assert len(broker.sends) == 2
            broker.answers = [ResponseCode.MESSAGE_ILLEGAL]
            async with Producer(c.nameserver.address) as producer:
                with pytest.raises(RemoteError):
                    await producer.send_batch([Message("orders", bytes(MIB)) for _ in range(7)])

    asyncio.run(scenario())


def test_many_messages_of_several_topics_give_their_receipts_in_order() -> None:
    async def scenario() -> None:
        async with cluster(2) as c:
            for topic in ("orders", "refunds"):
                c.create(topic, 2)
            messages = [
                Message(("orders", "refunds")[number % 2], b"%d" % number, keys=[str(number)])
                for number in range(5_000)
            ]
            async with Producer(c.nameserver.address) as producer:
                receipts = await producer.send_many(iter(messages))
            assert len(receipts) == 5_000
            stored = _stored(c)
            for message, receipt in zip(messages, receipts, strict=True):
                assert receipt.queue.topic == message.topic
                assert stored[receipt.message_id] == message.body
            sends = [header for broker in c.brokers for header in broker.sends]
            assert len(sends) < 20
            assert all(header.batch for header in sends)

    asyncio.run(scenario())


def test_messages_with_one_sharding_key_stay_in_their_order_among_many() -> None:
    async def scenario() -> None:
        async with cluster(2) as c:
            c.create("orders", 4)
            keys = [f"order-{number}" for number in range(20)]
            messages = [
                Message("orders", b"%06d" % number + bytes(500), sharding_key=keys[number % 20])
                for number in range(6_000)
            ]
            async with Producer(c.nameserver.address) as producer:
                receipts = await producer.send_many(messages)
            for at in range(20):
                own = receipts[at::20]
                assert len({receipt.queue for receipt in own}) == 1
                offsets = [receipt.queue_offset for receipt in own]
                assert offsets == sorted(offsets)

    asyncio.run(scenario())


def test_what_cannot_be_part_of_a_batch_goes_alone_among_many() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            messages = [
                Message("orders", b"first"),
                Message("orders", b"later", delay_level=3),
                Message("orders", b"a" * 10_000),
                Message("orders", b"last"),
            ]
            async with Producer(c.nameserver.address) as producer:
                receipts = await producer.send_many(messages)
            (broker,) = c.brokers
            alone = [header for header in broker.sends if not header.batch]
            assert sorted(header.sys_flag for header in alone) == [0, 0x301]
            assert len(broker.sends) == 4
            assert len({receipt.message_id for receipt in receipts}) == 4

    asyncio.run(scenario())


def test_after_a_failure_no_more_is_begun_and_the_error_says_what_is_stored() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            (broker,) = c.brokers
            broker.answers = [ResponseCode.SUCCESS, ResponseCode.MESSAGE_ILLEGAL]
            taken = 0

            def source() -> Iterator[Message]:
                nonlocal taken
                while True:
                    taken += 1
                    yield Message("orders", bytes(4_000))

            async with Producer(c.nameserver.address) as producer:
                with pytest.raises(PartlyStored) as raised:
                    await producer.send_many(source())
            assert len(broker.sends) <= 1 + SEND_AHEAD_MAX
            assert len(raised.value.receipts) == taken
            stored = [receipt for receipt in raised.value.receipts if receipt is not None]
            assert 0 < len(stored) < taken
            assert {one.message_id for one in stored} == set(_stored(c))

    asyncio.run(scenario())


def test_a_wrong_message_among_many_ends_them_and_alone_it_is_the_error() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address) as producer:
                with pytest.raises(MessageIllegal, match="no body"):
                    await producer.send_many([Message("orders", b"")])
                with pytest.raises(PartlyStored, match="no body") as raised:
                    await producer.send_many([Message("orders", bytes(300_000)), Message("orders", b"")])
                first, second = raised.value.receipts
                assert isinstance(first, SendReceipt)
                assert second is None
                with pytest.raises(MessageIllegal, match="messages is a list"):
                    await producer.send_many(Message("orders", b"x"))  # type: ignore[arg-type]
                with pytest.raises(InvalidRequest):
                    await producer.send_many([Message("or ders", b"x")])
                assert await producer.send_many([]) == []

    asyncio.run(scenario())


def test_many_messages_wait_for_a_broker_that_is_slow_instead_of_filling_the_memory() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 4)
            (broker,) = c.brokers
            broker.silent = True
            taken = 0

            def source() -> Iterator[Message]:
                nonlocal taken
                while True:
                    taken += 1
                    yield Message("orders", bytes(4_000))

            async with Producer(c.nameserver.address) as producer:
                sending = asyncio.create_task(producer.send_many(source(), timeout_ms=60_000))
                await wait_for(lambda: len(broker.sends) == SEND_AHEAD_MAX, "as many as may be under way")
                assert taken <= (SEND_AHEAD_MAX + 1) * 66  # of 4,000 bytes each in a batch of 256 KiB
                sending.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await sending
                broker.silent = False
                await producer.send(Message("orders", b"goes on"))

    asyncio.run(scenario())


def test_blocking_the_messages_are_made_in_the_thread_that_sends(
    bolide_module_server: EmbeddedServer,
) -> None:
    """Also with the help of the producer that sends them."""
    threads: set[str] = set()
    with bolide.Producer(bolide_module_server.nameserver) as producer:

        def source() -> Iterator[Message]:
            for number in range(3_000):
                threads.add(threading.current_thread().name)
                if number == 1_000:
                    producer.send(Message("many-blocking", b"in between"))
                yield Message("many-blocking", b"%d" % number)

        receipts = producer.send_many(source())
    assert threads == {threading.current_thread().name}
    places = {(receipt.queue, receipt.queue_offset) for receipt in receipts}
    assert len(places) == len(receipts) == 3_000


def _stored(c: Cluster) -> dict[str, bytes]:
    """By message id, what was sent and not refused."""
    found: dict[str, bytes] = {}
    for broker in c.brokers:
        for queue in broker.queues.values():
            for record in queue:
                (message,) = decode_messages(record, broker.name)
                found[message.message_id] = message.body
    return found
