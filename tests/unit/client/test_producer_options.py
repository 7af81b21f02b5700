"""What a producer can be told: which brokers to avoid, and how to compress."""

import asyncio
from collections.abc import Callable

import pytest

from bolide.aio import Message, NotWritable, Producer, PullConsumer
from bolide.model.message import SysFlag
from bolide.net.clock import SystemClock
from bolide.net.link import Link
from bolide.net.registry import Handler
from bolide.net.surroundings import Surroundings
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from tests.unit.client.scripted import Cluster, cluster


class AdvancedClock(SystemClock):
    """The real one, and what a test adds."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self.ahead_ms


def delay_sends(c: Cluster, clock: AdvancedClock, broker: int, took_ms: int) -> None:
    """Let a broker take so long for each message, on that clock."""
    slow = c.brokers[broker]
    handle: Callable[[Link, Command], Command | None] = slow._send

    def slowly(link: Link, request: Command) -> Command | None:
        clock.ahead_ms += took_ms
        return handle(link, request)

    handlers: dict[RequestCode, Handler] = {**slow.handlers(), RequestCode.SEND_MESSAGE_V2: slowly}
    slow.handlers = lambda: handlers  # type: ignore[method-assign]


@pytest.mark.parametrize("avoids", [True, False])
def test_a_slow_broker_gets_no_messages_for_two_seconds_if_that_is_wanted(avoids: bool) -> None:
    """PR-02: enabled, a broker that answered in 600 ms is avoided; disabled, it is not."""

    async def scenario() -> None:
        clock, made = AdvancedClock(), Cluster(2)
        made.create("orders", 2)
        delay_sends(made, clock, 0, 600)
        for node in (made.nameserver, *made.brokers):
            await node.start()
        surroundings = Surroundings(clock=clock)
        async with Producer(
            made.nameserver.address, avoid_slow_brokers=avoids, timeout_ms=60_000, surroundings=surroundings
        ) as producer:

            async def names(count: int) -> list[str]:
                return [
                    (await producer.send(Message("orders", b"x"))).queue.broker_name for _ in range(count)
                ]

            assert "broker-0" in await names(4)
            assert ("broker-0" in await names(12)) is not avoids
            clock.ahead_ms += 2_000
            assert "broker-0" in await names(4)
        for node in (made.nameserver, *made.brokers):
            await node.stop()

    asyncio.run(scenario())


def test_a_broker_that_refuses_or_is_gone_is_avoided_and_when_all_are_who_answers_comes_first() -> None:
    async def scenario() -> None:
        async with cluster(3) as c:
            c.create("orders", 1)
            c.brokers[0].answers = [ResponseCode.SYSTEM_BUSY] * 9
            await c.brokers[1].stop()
            async with Producer(c.nameserver.address, avoid_slow_brokers=True, retries=5) as producer:
                names = {(await producer.send(Message("orders", b"x"))).queue.broker_name for _ in range(12)}
                assert names == {"broker-2"}
                assert len(c.brokers[0].sends) <= 1
                await c.brokers[2].stop()
                c.brokers[0].answers = []
                assert (await producer.send(Message("orders", b"x"))).queue.broker_name == "broker-0"

    asyncio.run(scenario())


def test_only_masters_are_sent_to_and_greeted() -> None:
    """PR-06: a broker without a master gets nothing, and nobody asks its replica."""

    async def scenario() -> None:
        async with cluster(4) as c:
            first, second, replica, orphan = c.brokers
            first.ids = {"0": first, "1": replica}
            second.ids = {"1": orphan}
            c.nameserver.topics["orders"] = [(first, 2, 6), (second, 2, 6)]
            c.nameserver.topics["lost"] = [(second, 2, 6)]
            async with Producer(c.nameserver.address) as producer:
                names = {(await producer.send(Message("orders", b"x"))).queue.broker_name for _ in range(8)}
                assert names == {first.name}
                with pytest.raises(NotWritable):
                    await producer.send(Message("lost", b"x"))
                await producer._instance.beat_now()
            assert replica.seen == orphan.seen == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("zlib", SysFlag.COMPRESSION_ZLIB),
        ("lz4", SysFlag.COMPRESSION_LZ4),
        ("zstd", SysFlag.COMPRESSION_ZSTD),
    ],
)
def test_bodies_are_compressed_as_they_are_to_be_and_read_back_whole(name: str, kind: SysFlag) -> None:
    """PR-04."""

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address, compression=name) as producer:
                for size in (4095, 4096, 200_000):
                    await producer.send(Message("orders", b"a" * size))
            flags = [header.sys_flag for header in c.brokers[0].sends]
            assert flags == [0, SysFlag.COMPRESSED | kind, SysFlag.COMPRESSED | kind]
            assert all(len(body) < 4096 for body in c.brokers[0].bodies[1:])
            async with PullConsumer(c.nameserver.address) as reader:
                (queue,) = await reader.queues("orders")
                found = (await reader.pull(queue, 0)).messages
            assert [message.body for message in found] == [b"a" * size for size in (4095, 4096, 200_000)]

    asyncio.run(scenario())
