"""Servers whose answers to pulls contradict themselves: none of it becomes an offset of the group."""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from bolide.aio import LitePullConsumer, ProtocolError, PullConsumer, PullStatus
from bolide.client import reader
from bolide.compat.rocketmq.consumers import PullConsumer as CompatPullConsumer
from bolide.compat.rocketmq.exceptions import PullConsumerFetchMessageFailed
from tests.attack import hostile
from tests.attack.hostile import HostileServer, Request, record
from tests.attack.victims import QUEUE, Seen, against, consumer_of
from tests.unit.client.scripted import wait_for


def answer(asked: Request, code: int, next_offset: int, max_offset: int, body: bytes = b"") -> bytes:
    fields = {"nextBeginOffset": next_offset, "minOffset": 0, "maxOffset": max_offset}
    return asked.answer(code, {**fields, "suggestWhichBrokerId": 0}, body)


CONTRADICTIONS: dict[str, Callable[[Request], bytes]] = {
    "far behind its own end": partial(
        answer, code=hostile.FOUND, next_offset=2**62, max_offset=5, body=record(b"x", 0)
    ),
    "found, and nothing there": partial(answer, code=hostile.FOUND, next_offset=1000, max_offset=10**6),
    "found, and goes nowhere": partial(
        answer, code=hostile.FOUND, next_offset=0, max_offset=5, body=record(b"x", 0)
    ),
}


@pytest.mark.parametrize("contradiction", CONTRADICTIONS)
@pytest.mark.parametrize("polls", [False, True])
def test_an_answer_that_contradicts_itself_is_an_error_and_moves_nobody(
    contradiction: str, polls: bool, pauses: Counter[int]
) -> None:
    async def scenario(server: HostileServer) -> None:
        commits: list[int] = []

        def commit(asked: Request) -> bytes:
            commits.append(int(asked.fields["commitOffset"]))
            return asked.answer()

        server.on[hostile.UPDATE_OFFSET] = commit
        server.on[hostile.PULL] = CONTRADICTIONS[contradiction]
        seen = Seen()
        if polls:
            polling = LitePullConsumer(server.address, group="g", start_from="first")
            await polling.subscribe("T")
            async with polling:
                await wait_for(lambda: server.seen[hostile.PULL] >= 6, "some pulls")
                assert await polling.poll(timeout_ms=0) == []
        else:
            async with await consumer_of(server, seen):
                await wait_for(lambda: server.seen[hostile.PULL] >= 6, "some pulls")
        assert seen.messages == []
        assert {one for one in commits if one > 0} == set()
        assert pauses[reader.ERROR_PAUSE_MS] > 0
        pulls = [asked.fields for asked in server.requests if asked.code == hostile.PULL]
        assert {(one["queueOffset"], one["commitOffset"]) for one in pulls} == {("0", "0")}

    against(scenario)


@pytest.mark.parametrize("contradiction", CONTRADICTIONS)
def test_who_pulls_himself_gets_it_as_an_error(contradiction: str) -> None:
    async def scenario(server: HostileServer) -> None:
        server.on[hostile.PULL] = CONTRADICTIONS[contradiction]
        async with PullConsumer(server.address, group="g") as consumer:
            with pytest.raises(ProtocolError, match="the broker"):
                await consumer.pull(QUEUE, 0)

    against(scenario)


def test_messages_that_are_newer_than_the_end_that_is_told_are_no_contradiction() -> None:
    async def scenario(server: HostileServer) -> None:
        body = record(b"x", 0) + record(b"y", 1)
        server.on[hostile.PULL] = lambda asked: answer(asked, hostile.FOUND, 2, 1, body)
        async with PullConsumer(server.address, group="g") as consumer:
            result = await consumer.pull(QUEUE, 0)
        assert (len(result.messages), result.next_offset) == (2, 2)

    against(scenario)


@pytest.mark.parametrize("code", [hostile.NO_NEW_MESSAGE, hostile.RETRY_AT_ONCE, hostile.OFFSET_MOVED])
def test_where_nothing_is_found_the_end_of_the_queue_is_the_end(code: int) -> None:
    """A queue that has lost a file sends its readers to the next one, which may not be there yet."""

    async def scenario(server: HostileServer) -> None:
        server.on[hostile.PULL] = lambda asked: answer(asked, code, 300_000, 7)
        async with PullConsumer(server.address, group="g") as consumer:
            result = await consumer.pull(QUEUE, 3)
        assert result.status is not PullStatus.FOUND
        assert result.next_offset == 7

    against(scenario)


@pytest.mark.parametrize("code", [hostile.RETRY_AT_ONCE, hostile.OFFSET_MOVED])
def test_a_reader_of_whole_topics_that_is_sent_nowhere_ends_with_an_error(code: int) -> None:
    def read(address: str) -> None:
        consumer = CompatPullConsumer("g")
        consumer.set_name_server_address(address)
        consumer.start()
        try:
            list(consumer.pull("T"))
        finally:
            consumer.shutdown()

    async def scenario(server: HostileServer) -> None:
        server.on[hostile.PULL] = lambda asked: asked.pulled(code, int(asked.fields["queueOffset"]))
        reading = asyncio.get_running_loop().run_in_executor(None, read, server.address)
        with pytest.raises(PullConsumerFetchMessageFailed, match="goes on at 0 after a pull at 0"):
            await reading

    against(scenario)
