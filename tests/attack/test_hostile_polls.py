"""Servers that lie to Python clients that poll: what cannot be read, what would spin, what would grow."""

import asyncio
import logging
from collections import Counter

import pytest

from bolide.aio import LitePullConsumer, StoredMessage
from bolide.client import reader
from bolide.machines import fetched
from bolide.model import limits
from tests.attack import hostile
from tests.attack.hostile import HostileServer, Request, record
from tests.attack.victims import MIB, against
from tests.unit.client.scripted import wait_for


async def consumer_of(server: HostileServer) -> LitePullConsumer:
    consumer = LitePullConsumer(server.address, group="g", start_from="first")
    await consumer.subscribe("T")
    return consumer


async def polled(consumer: LitePullConsumer, count: int) -> list[StoredMessage]:
    messages: list[StoredMessage] = []
    async with asyncio.timeout(10):
        while len(messages) < count:
            messages += await consumer.poll(timeout_ms=100)
    return messages


def test_what_cannot_be_read_is_passed_over_and_the_messages_around_it_are_not(
    pauses: Counter[int], caplog: pytest.LogCaptureFixture
) -> None:
    """Goal: one broken record costs one message.  Method: it is whole for nobody, also when it is asked for alone."""

    async def scenario(server: HostileServer) -> None:
        stored = [record(b"%d" % offset, offset) for offset in range(10)]
        stored[4] = stored[4][:50]

        def pull(asked: Request) -> bytes | None:
            first, count = int(asked.fields["queueOffset"]), int(asked.fields["maxMsgNums"])
            if first >= 10:
                return hostile.HOLD
            end = min(10, first + count)
            return asked.pulled(hostile.FOUND, end, b"".join(stored[first:end]))

        server.on[hostile.PULL] = pull
        async with await consumer_of(server) as consumer:
            messages = await polled(consumer, 9)
            assert consumer.skipped == 1
        assert [message.queue_offset for message in messages] == [0, 1, 2, 3, 5, 6, 7, 8, 9]
        alone = [asked for asked in server.requests if asked.code == 11 and asked.fields["maxMsgNums"] == "1"]
        assert len(alone) == fetched.ALONE_TRIES
        assert pauses[reader.ERROR_PAUSE_MS] >= fetched.ALONE_TRIES

    against(scenario)
    assert "cannot be read and is skipped" in caplog.text


@pytest.mark.parametrize("offsets", [[5], [3, 2], [2**63 - 1]])
def test_messages_of_other_places_than_were_asked_for_are_not_given_out(
    offsets: list[int], pauses: Counter[int]
) -> None:
    async def scenario(server: HostileServer) -> None:
        answer = b"".join(record(b"x", offset) for offset in offsets)
        server.on[hostile.PULL] = lambda asked: asked.pulled(hostile.FOUND, 5, answer)
        async with await consumer_of(server) as consumer:
            async with asyncio.timeout(10):
                while not consumer.skipped:
                    assert await consumer.poll(timeout_ms=10) == []

    against(scenario)


@pytest.mark.parametrize("code", [hostile.FOUND, hostile.NO_NEW_MESSAGE, hostile.RETRY_AT_ONCE])
@pytest.mark.parametrize("step", [0, -1])
def test_answers_that_bring_nothing_are_followed_by_ever_longer_pauses(
    code: int, step: int, pauses: Counter[int]
) -> None:
    async def scenario(server: HostileServer) -> None:
        server.on[hostile.QUERY_OFFSET] = lambda asked: asked.answer(fields={"offset": 1000})
        server.on[hostile.PULL] = lambda asked: asked.pulled(code, int(asked.fields["queueOffset"]) + step)
        async with await consumer_of(server):
            await wait_for(lambda: server.seen[hostile.PULL] >= 20, "twenty pulls")
            assert pauses.total() >= server.seen[hostile.PULL] - 1
            assert pauses[reader.ERROR_PAUSE_MS] >= 4
        assert all(int(asked.fields["queueOffset"]) == 1000 for asked in server.requests if asked.code == 11)

    against(scenario)


def test_an_offset_that_is_corrected_for_ever_is_no_busy_loop_and_fills_no_log(
    pauses: Counter[int], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: HostileServer) -> None:
        places = iter(range(10**6, 0, -1))
        server.on[hostile.PULL] = lambda asked: asked.pulled(hostile.OFFSET_MOVED, next(places))
        async with await consumer_of(server) as consumer, asyncio.timeout(10):
            while server.seen[hostile.PULL] < 30:
                assert await consumer.poll(timeout_ms=10) == []
            assert pauses.total() >= server.seen[hostile.PULL] - 1

    with caplog.at_level(logging.INFO):
        against(scenario)
    assert sum("outside the queue" in said.getMessage() for said in caplog.records) <= 1


def test_what_nobody_polls_is_a_bounded_number_of_bytes_whatever_many_queues_bring() -> None:
    async def scenario(server: HostileServer) -> None:
        body = bytes(2 * MIB)
        server.queues = 64

        def flood(asked: Request) -> bytes:
            offset = int(asked.fields["queueOffset"])
            return asked.pulled(hostile.FOUND, offset + 1, record(body, offset))

        server.on[hostile.PULL] = flood
        async with await consumer_of(server) as consumer:
            cache = consumer._cache
            await wait_for(lambda: cache.is_full, "it is full")
            before = server.seen[hostile.PULL]
            await consumer.subscribe("T")  # a round trip, with all pulls of before answered
            assert cache.size_bytes <= limits.POLL_CACHE_BYTES_MAX + 3 * MIB
            assert server.seen[hostile.PULL] - before <= 2 * server.queues

    against(scenario)


def test_messages_that_go_nowhere_are_an_error_with_a_pause(
    pauses: Counter[int], caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: HostileServer) -> None:
        def pull(asked: Request) -> bytes | None:
            offset = int(asked.fields["queueOffset"])
            return asked.pulled(hostile.FOUND, offset, record(b"x", offset))

        server.on[hostile.PULL] = pull
        async with await consumer_of(server) as consumer:
            await wait_for(lambda: server.seen[hostile.PULL] >= 20, "twenty pulls")
            assert pauses[reader.ERROR_PAUSE_MS] >= server.seen[hostile.PULL] - 1
            assert await consumer.poll(timeout_ms=0) == []

    against(scenario)
    assert "goes on at offset 0 after a pull at 0" in caplog.text
