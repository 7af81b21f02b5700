"""Servers that lie to Python clients, to make them spin or grow.

The lies go over real sockets; what they cost is counted in bytes kept, requests made and pauses taken, not in time.
"""

import asyncio
import logging
import zlib
from collections import Counter

import pytest

from bolide.aio import Message, Producer, PullConsumer, StoredMessage
from bolide.client import push, reader, rounds
from bolide.model import limits
from bolide.net import link as link_module
from tests.attack import hostile
from tests.attack.hostile import HostileServer, Request, hostile_server, record
from tests.attack.victims import MIB, QUEUE, Seen, against, consumer_of
from tests.unit.client.scripted import wait_for

# ---- what would spin ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [hostile.FOUND, hostile.NO_NEW_MESSAGE, hostile.RETRY_AT_ONCE])
@pytest.mark.parametrize("step", [0, -1])
def test_answers_that_bring_nothing_are_followed_by_ever_longer_pauses(
    code: int, step: int, pauses: Counter[int]
) -> None:
    async def scenario(server: HostileServer) -> None:
        server.on[hostile.QUERY_OFFSET] = lambda asked: asked.answer(fields={"offset": 1000})
        server.on[hostile.PULL] = lambda asked: asked.pulled(code, int(asked.fields["queueOffset"]) + step)
        async with await consumer_of(server, Seen()):
            await wait_for(lambda: server.seen[hostile.PULL] >= 20, "twenty pulls")
            assert pauses.total() >= server.seen[hostile.PULL] - 2  # of two queues: the retry topic's is one
            assert pauses[reader.ERROR_PAUSE_MS] >= 4
        assert all(int(asked.fields["queueOffset"]) == 1000 for asked in server.requests if asked.code == 11)

    against(scenario)


def test_an_offset_that_is_corrected_for_ever_is_no_busy_loop_and_fills_no_log(
    pauses: Counter[int], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: HostileServer) -> None:
        places = iter(range(10**6, 0, -1))
        server.on[hostile.PULL] = lambda asked: asked.pulled(hostile.OFFSET_MOVED, next(places))
        async with await consumer_of(server, Seen()):
            await wait_for(lambda: server.seen[hostile.PULL] >= 30, "thirty pulls")
            assert pauses.total() >= server.seen[hostile.PULL] - 2

    with caplog.at_level(logging.INFO):
        against(scenario)
    assert sum("outside the queue" in said.getMessage() for said in caplog.records) <= 2


def test_refusals_with_ever_new_reasons_fill_no_log(
    pauses: Counter[int], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: HostileServer) -> None:
        reasons = iter(range(10**6))
        server.on[hostile.PULL] = lambda asked: asked.answer(215, remark=f"reason {next(reasons)}")
        async with await consumer_of(server, Seen()):
            await wait_for(lambda: server.seen[hostile.PULL] >= 30, "thirty pulls")
            assert pauses.total() >= server.seen[hostile.PULL] - 2

    against(scenario)
    assert sum("reason" in said.getMessage() for said in caplog.records) <= 4


def test_however_many_notices_come_there_is_a_pause_between_two_rounds_of_sharing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gaps: list[float] = []

    async def pause(seconds: float) -> None:
        gaps.append(seconds)

    monkeypatch.setattr(rounds, "pause", pause)

    async def scenario(server: HostileServer) -> None:
        honest = server.on[hostile.MEMBERS]
        notice = hostile.request(hostile.MEMBERS_CHANGED, {"consumerGroup": "g"}, flag=hostile.ONE_WAY)
        server.on[hostile.MEMBERS] = lambda asked: (honest(asked) or b"") + notice * 100
        async with await consumer_of(server, Seen()):
            await wait_for(lambda: server.seen[hostile.MEMBERS] >= 40, "twenty rounds, for two topics each")
            taken = [gap for gap in gaps if gap == push.REBALANCE_GAP_MS / 1000]
            assert len(taken) >= server.seen[hostile.MEMBERS] // 2 - 2

    against(scenario)


# ---- what would grow ---------------------------------------------------------------------------------------------


def bombs(count: int) -> bytes:
    """Records of a few kilobytes that unpack to four megabytes each."""
    packed = zlib.compress(bytes(4 * MIB), 9)
    return b"".join(record(packed, offset, sys_flag=1) for offset in range(count))


def test_a_megabyte_that_unpacks_to_a_gigabyte_comes_in_pulls_of_sixteen_megabytes() -> None:
    async def scenario(server: HostileServer) -> None:
        everything = bombs(250)
        assert len(everything) < 1.1 * MIB
        server.on[hostile.PULL] = lambda asked: asked.pulled(hostile.FOUND, 250, everything)
        async with PullConsumer(server.address) as consumer:
            result = await consumer.pull(QUEUE, 0)
            assert sum(len(message.body) for message in result.messages) <= limits.PULL_COST_BYTES_MAX
            assert result.next_offset == len(result.messages) == 3

    against(scenario)


def test_one_body_unpacks_to_no_more_than_its_limit_and_stays_packed_beyond() -> None:
    async def scenario(server: HostileServer) -> None:
        packed = zlib.compress(bytes(limits.BODY_UNPACKED_BYTES_MAX + 1), 9)
        bomb, behind = record(packed, 0, sys_flag=1), record(b"next", 1)

        def pull(asked: Request) -> bytes:
            data = bomb + behind if asked.fields["queueOffset"] == "0" else behind
            return asked.pulled(hostile.FOUND, 2, data)

        server.on[hostile.PULL] = pull
        async with PullConsumer(server.address) as consumer:
            begun = await consumer.pull(QUEUE, 0)  # ends where the bomb has cost as much as a pull may
            rest = await consumer.pull(QUEUE, begun.next_offset)
        first, second = begun.messages + rest.messages
        assert (first.body, second.body) == (packed, b"next")
        assert "more than" in str(first.body_error)

    against(scenario)


def test_a_push_consumer_holds_a_bounded_number_of_bytes_whatever_many_queues_bring() -> None:
    async def scenario(server: HostileServer) -> None:
        body = bytes(4 * MIB)
        server.queues = 64

        def flood(asked: Request) -> bytes:
            offset = int(asked.fields["queueOffset"])
            return asked.pulled(hostile.FOUND, offset + 1, record(body, offset))

        server.on[hostile.PULL] = flood
        forever = asyncio.Event()

        async def stuck(messages: list[StoredMessage]) -> None:
            await forever.wait()

        consumer = await consumer_of(server, stuck, close_timeout_ms=0)
        async with consumer:
            cache = consumer._assignment._cache
            await wait_for(lambda: cache.is_full, "it is full")
            before = server.seen[hostile.PULL]
            await consumer.subscribe("T")  # a round trip, with all pulls of before answered
            assert cache.size_bytes <= limits.CONSUMER_CACHE_BYTES_MAX + 5 * MIB
            assert server.seen[hostile.PULL] - before <= 2 * server.queues

    against(scenario)


def test_requests_whose_answers_nobody_reads_are_not_answered_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_module, "WRITE_BUFFER_BYTES_MAX", 256 * 1024)

    async def scenario(server: HostileServer) -> None:
        async with await consumer_of(server, Seen()) as consumer:
            (link,) = consumer._instance.hub._greeted.values()
            server.reads.clear()
            writer = server.writers[-1]
            for _ in range(200):
                writer.write(hostile.request(307) * 1000)
                await writer.drain()
            await wait_for(lambda: link.is_behind, "it notices that nobody reads")
            assert link._transport is not None
            assert link._transport.get_write_buffer_size() < 512 * 1024
            server.reads.set()

    against(scenario)


@pytest.mark.parametrize("code", [39, 40, 220, 221, 307, 309, 326, 351, 32767])
def test_requests_of_a_broker_are_answered_or_ignored_and_consuming_goes_on(code: int) -> None:
    async def scenario(server: HostileServer) -> None:
        seen = Seen()
        async with await consumer_of(server, seen):
            odd = {"consumerGroup": "g", "topic": "T", "timestamp": "-9223372036854775808", "isForce": "true"}
            for flag in (0, hostile.ONE_WAY):
                server.writers[-1].write(
                    hostile.request(code, odd, flag=flag) + hostile.request(code, flag=flag)
                )
            server.on[hostile.PULL] = lambda asked: (
                asked.pulled(hostile.FOUND, 1, record(b"x", 0))
                if asked.fields["queueOffset"] == "0"
                else None
            )
            server.queues = 2
            server.writers[-1].write(
                hostile.request(hostile.MEMBERS_CHANGED, {"consumerGroup": "g"}, flag=hostile.ONE_WAY)
            )
            await wait_for(lambda: server.seen[hostile.MEMBERS] > 2, "it goes on")

    against(scenario)


def test_answers_that_nobody_waits_for_are_dropped() -> None:
    async def scenario(server: HostileServer) -> None:
        def twice_and_more(asked: Request) -> bytes:
            once = asked.answer(fields={"msgId": "x", "queueId": 0, "queueOffset": 7})
            strangers = b"".join(
                hostile.response(opaque, body=bytes(1000)) for opaque in range(10**6, 10**6 + 1000)
            )
            return strangers + once * 3 + hostile.response(-1)

        server.on[hostile.SEND] = twice_and_more
        async with Producer(server.address) as producer:
            for _ in range(3):
                assert (await producer.send(Message("T", b"x"))).queue_offset == 7
            (link,) = producer._instance.hub._greeted.values()
            assert len(link._peer._pending) == 0

    against(scenario)


def test_a_connection_to_a_broker_that_is_in_no_route_any_more_is_closed() -> None:
    async def scenario(server: HostileServer) -> None:
        async with hostile_server() as second:
            server.on[hostile.SEND] = second.on[hostile.SEND] = lambda asked: asked.answer(
                fields={"msgId": "x", "queueId": 0, "queueOffset": 7}
            )
            brokers = {"b": second.address}
            server.on[hostile.ROUTE] = lambda asked: asked.answer(body=hostile.route(brokers))
            async with Producer(server.address) as producer:
                await producer.send(Message("T", b"x"))
                brokers["b"] = server.address
                producer._instance.refresh_routes_soon()
                await wait_for(lambda: all(one.is_closing() for one in second.writers), "the old one is left")
                assert set(producer._instance.hub._caller._links) == {server.address}
                await producer.send(Message("T", b"x"))

    against(scenario)
