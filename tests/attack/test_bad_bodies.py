"""Bodies that are marked as packed and do not unpack: brokers store them as they come, and no consumer stops there."""

import asyncio
import itertools
import zlib

import pytest

import bolide
import bolide.aio
from bolide.model import limits
from tests.peers import frames
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

BAD = {
    "zlib": (0x1, b"not zlib at all"),
    "cut-zlib": (0x301, zlib.compress(b"something to say" * 100)[:-5]),
    "lz4": (0x101, b"not lz4 at all"),
    "zstd": (0x201, b"not zstd at all"),
    "unknown": (0x501, b"packed in no known way"),
    "bomb": (0x301, zlib.compress(bytes(limits.BODY_UNPACKED_BYTES_MAX + 1), 9)),
}

_numbers = itertools.count()


@pytest.fixture(params=BAD)
def topic(request: pytest.FixtureRequest, server: Together) -> str:
    """One queue with a good message, a bad one and a good one."""
    sys_flag, bad = BAD[request.param]
    name = f"bad-{request.param}-{next(_numbers)}"
    with frames.Connection(server.broker) as broker:
        for flag, body in ((0, b"before"), (sys_flag, bad), (0, b"behind")):
            fields = frames.send_fields(name, 0, 1) | {"f": str(flag)}
            assert broker.ask(frames.SEND_MESSAGE_V2, fields, body).code == frames.SUCCESS
    return name


def _check(messages: list[bolide.StoredMessage], topic: str) -> None:
    _, bad = BAD[topic.rpartition("-")[0].removeprefix("bad-")]
    assert [message.body for message in messages] == [b"before", bad, b"behind"]
    assert [message.body_error is None for message in messages] == [True, False, True]


def test_a_push_consumer_hands_out_a_bad_body_as_such_and_goes_on(server: Together, topic: str) -> None:
    got: list[bolide.StoredMessage] = []
    consumer = bolide.PushConsumer(server.nameserver, group=topic, listener=got.extend, start_from="first")
    consumer.subscribe(topic)
    with consumer:
        wait_until(lambda: len(got) == 3, PATIENCE_SECONDS, lambda: f"only {got}")
    _check(got, topic)
    with bolide.PullConsumer(server.nameserver, group=topic) as reader:
        (queue,) = reader.queues(topic)
        assert reader.committed_offset(queue) == 3


def test_a_push_consumer_skips_bad_bodies_when_it_is_told_so_and_counts_them(
    server: Together, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    got: list[bolide.StoredMessage] = []
    consumer = bolide.PushConsumer(
        server.nameserver, group=topic, listener=got.extend, start_from="first", bad_bodies="skip"
    )
    consumer.subscribe(topic)
    with consumer:
        wait_until(lambda: len(got) == 2, PATIENCE_SECONDS, lambda: f"only {got}")
        assert consumer.skipped == 1
    assert [message.body for message in got] == [b"before", b"behind"]
    assert "skipped the message at offset 1" in caplog.text


def _pulled(reader: bolide.PullConsumer, queue: bolide.MessageQueue) -> list[bolide.StoredMessage]:
    """All three.  A body that costs much ends a pull, and the next one brings the rest."""
    got: list[bolide.StoredMessage] = []
    offset = 0
    while offset < 3:
        result = reader.pull(queue, offset)
        got += result.messages
        assert result.next_offset > offset
        offset = result.next_offset
    return got


def test_a_pull_hands_out_a_bad_body_as_such(server: Together, topic: str) -> None:
    with bolide.PullConsumer(server.nameserver) as reader:
        (queue,) = reader.queues(topic)
        _check(_pulled(reader, queue), topic)
    with bolide.PullConsumer(server.nameserver, bad_bodies="skip") as reader:
        assert [message.body for message in _pulled(reader, queue)] == [b"before", b"behind"]
        assert reader.skipped == 1


def test_both_kinds_of_consumers_do_the_same_on_asyncio(server: Together, topic: str) -> None:
    async def scenario() -> None:
        async with bolide.aio.PullConsumer(server.nameserver) as reader:
            (queue,) = await reader.queues(topic)
            first = await reader.pull(queue, 0)
            rest = [] if first.next_offset == 3 else (await reader.pull(queue, first.next_offset)).messages
            _check(first.messages + rest, topic)
        got: list[bolide.StoredMessage] = []
        everything = asyncio.Event()

        async def handle(messages: list[bolide.StoredMessage]) -> None:
            got.extend(messages)
            if len(got) == 3:
                everything.set()

        consumer = bolide.aio.PushConsumer(
            server.nameserver, group=topic, listener=handle, start_from="first"
        )
        await consumer.subscribe(topic)
        async with consumer, asyncio.timeout(PATIENCE_SECONDS):
            await everything.wait()
        _check(got, topic)

    asyncio.run(scenario())
