"""Connections come back by themselves: half-open ones, restarted servers, topics that have moved."""

import asyncio

import pytest

from bolide.aio import Message, Producer, PushConsumer, StoredMessage
from bolide.client import hub, routes
from bolide.model.errors import CallTimeout, ConnectionLost
from bolide.net import caller_link
from bolide.testing import AsyncEmbeddedServer
from bolide.wire.codes import ResponseCode
from tests.unit.client.scripted import cluster, wait_for

SILENT_MS = 150
TIMEOUT_MS = 1_000


@pytest.fixture(autouse=True)
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_link, "SILENT_MS", SILENT_MS)
    monkeypatch.setattr(routes, "FIRST_TIMEOUT_MS", TIMEOUT_MS)


def test_the_send_after_one_that_timed_out_on_a_dead_connection_goes_over_a_new_one() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address, timeout_ms=TIMEOUT_MS) as producer:
                await producer.send(Message("orders", b"before"))
                c.brokers[0].forget_connections()
                with pytest.raises(CallTimeout):
                    await producer.send(Message("orders", b"lost"))
                await producer.send(Message("orders", b"after"))
            assert c.brokers[0].bodies == [b"before", b"after"]

    asyncio.run(scenario())


def test_deadlines_too_short_to_judge_by_are_judged_together() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address, timeout_ms=SILENT_MS // 3) as producer:
                await producer.send(Message("orders", b"before"), timeout_ms=5_000)
                c.brokers[0].forget_connections()
                failures = 0
                while failures < 20:
                    try:
                        await producer.send(Message("orders", b"after"))
                        break
                    except CallTimeout:
                        failures += 1
            assert 2 <= failures <= 6
            assert c.brokers[0].bodies == [b"before", b"after"]

    asyncio.run(scenario())


def test_a_broker_that_is_slow_with_one_call_and_answers_others_keeps_its_connection() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            broker = c.brokers[0]
            async with Producer(c.nameserver.address, timeout_ms=TIMEOUT_MS) as producer:
                await producer.send(Message("orders", b"before"))
                (link,) = broker.links
                broker.silent = True
                swallowed = asyncio.ensure_future(producer.send(Message("orders", b"swallowed")))
                await wait_for(lambda: broker.bodies == [b"before", b"swallowed"], "the send is there")
                broker.silent = False
                await producer.send(Message("orders", b"answered"))
                with pytest.raises(CallTimeout):
                    await swallowed
                await producer.send(Message("orders", b"after"))
                assert broker.links == {link}

    asyncio.run(scenario())


def test_a_consumer_on_a_dead_connection_goes_on_as_soon_as_a_call_of_it_has_timed_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its pull is held for long and may be silent for as long; the next heartbeat may not."""
    monkeypatch.setattr(hub, "CALL_TIMEOUT_MS", TIMEOUT_MS)

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            got: list[bytes] = []

            async def listener(messages: list[StoredMessage]) -> None:
                got.extend(message.body for message in messages)

            consumer = PushConsumer(c.nameserver.address, group="g", listener=listener, start_from="first")
            await consumer.subscribe("orders")
            async with consumer:
                c.brokers[0].store("orders", 0, b"before")
                await wait_for(lambda: got == [b"before"], "the first message")
                c.brokers[0].forget_connections()
                await consumer._instance.beat_now()
                c.brokers[0].store("orders", 0, b"after")
                await wait_for(lambda: got == [b"before", b"after"], "the second message")

    asyncio.run(scenario())


def test_a_name_server_that_has_forgotten_us_is_asked_over_a_new_connection() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            c.create("more", 1)
            async with Producer(c.nameserver.address) as producer:
                await producer.send(Message("orders", b"x"))
                c.nameserver.forget_connections()
                await producer.send(Message("more", b"x"))

    asyncio.run(scenario())


def test_a_name_server_that_is_gone_stops_nobody_who_knows_the_routes_and_is_found_again() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            c.create("more", 1)
            port = int(c.nameserver.address.rpartition(":")[2])
            async with Producer(c.nameserver.address) as producer:
                await producer.send(Message("orders", b"x"))
                await c.nameserver.stop()
                await producer.send(Message("orders", b"x"))
                await c.nameserver.start(port)
                await producer.send(Message("more", b"x"))

    asyncio.run(scenario())


def test_a_topic_that_moves_to_another_broker_is_followed_within_one_send() -> None:
    async def scenario() -> None:
        async with cluster(brokers=2) as c:
            old, new = c.brokers
            c.nameserver.topics["orders"] = [(old, 1, 6)]
            async with Producer(c.nameserver.address) as producer:
                await producer.send(Message("orders", b"before"))
                c.nameserver.topics["orders"] = [(new, 1, 6)]
                old.answers = [ResponseCode.TOPIC_NOT_EXIST] * 2
                receipt = await producer.send(Message("orders", b"after"))
            assert receipt.queue.broker_name == new.name
            assert new.bodies == [b"after"]

    asyncio.run(scenario())


def test_a_send_to_the_only_broker_that_is_down_says_so_within_its_time() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address) as producer:
                await producer.send(Message("orders", b"before"))
                await c.brokers[0].stop()
                for timeout_ms in (200, 3_000):
                    with pytest.raises(ConnectionLost, match="broker-0 does not answer: cannot connect"):
                        await producer.send(Message("orders", b"x"), timeout_ms=timeout_ms)

    asyncio.run(scenario())


def test_a_broker_that_moves_to_another_address_is_followed_within_one_send() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            broker = c.brokers[0]
            async with Producer(c.nameserver.address) as producer:
                await producer.send(Message("orders", b"before"))
                await broker.stop()
                await broker.start()
                await producer.send(Message("orders", b"after"))
            assert broker.bodies == [b"before", b"after"]

    asyncio.run(scenario())


def test_a_restarted_server_is_greeted_again_and_nobody_notices() -> None:
    """A real server: the group is a member again, and what was sent before and after comes."""

    async def scenario() -> None:
        got: list[bytes] = []

        async def listener(messages: list[StoredMessage]) -> None:
            got.extend(message.body for message in messages)

        async with AsyncEmbeddedServer() as server:
            consumer = PushConsumer(server.nameserver, group="g", listener=listener, start_from="first")
            await consumer.subscribe("orders")
            async with Producer(server.nameserver, timeout_ms=20_000) as producer, consumer:
                await producer.send(Message("orders", b"before"))
                await wait_for(lambda: got == [b"before"], "the first message")
                await server.stop()
                await server.start()
                await producer.send(Message("orders", b"after"))
                await wait_for(lambda: got == [b"before", b"after"], "the second message")

    asyncio.run(scenario())
