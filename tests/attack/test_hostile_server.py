"""Servers that lie to Python clients: each way in which one could make a client spin, grow or stop.

The lies go over real sockets; what they cost is counted in bytes kept, requests made and pauses taken, not in time.
"""

import asyncio
import logging
import struct
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from bolide.aio import (
    BolideError,
    MalformedRecord,
    Message,
    MessageQueue,
    Producer,
    ProtocolError,
    PullConsumer,
    PushConsumer,
    RemoteError,
    StoredMessage,
)
from bolide.client import reader, rounds
from bolide.model import limits
from bolide.net import link as link_module
from tests.attack import hostile
from tests.attack.hostile import HostileServer, Request, hostile_server, record
from tests.unit.client.scripted import wait_for

QUEUE = MessageQueue("T", "b", 0)
MIB = 1024 * 1024


class Seen:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.messages: list[StoredMessage] = []

    async def __call__(self, messages: list[StoredMessage]) -> None:
        self.messages += messages

    @property
    def offsets(self) -> list[int]:
        return [message.queue_offset for message in self.messages]


def against(scenario: Callable[[HostileServer], Awaitable[None]], **options: object) -> None:
    async def run() -> None:
        async with hostile_server(**options) as server:
            await scenario(server)

    asyncio.run(run())


async def consumer_of(
    server: HostileServer, listener: Callable[..., object], **options: object
) -> PushConsumer:
    consumer = PushConsumer(server.address, group="g", listener=listener, start_from="first", **options)  # type: ignore[arg-type]
    await consumer.subscribe("T")
    return consumer


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """The pauses of readers by their length; they are taken, but are short."""
    taken: Counter[int] = Counter()
    honest = rounds.wait_at_most

    async def wait_at_most(event: asyncio.Event, timeout_ms: int | None) -> bool:
        assert timeout_ms is not None
        taken[timeout_ms] += 1
        return await honest(event, min(timeout_ms, 2))

    monkeypatch.setattr(reader, "wait_at_most", wait_at_most)
    return taken


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


def test_a_storm_of_notices_shares_the_queues_out_a_few_times() -> None:
    async def scenario(server: HostileServer) -> None:
        async with await consumer_of(server, Seen()):
            notice = hostile.request(hostile.MEMBERS_CHANGED, {"consumerGroup": "g"}, flag=hostile.ONE_WAY)
            before = server.seen[hostile.MEMBERS]
            writer = server.writers[-1]
            writer.write(notice * 5000 + hostile.request(307, opaque=77))
            await wait_for(
                lambda: server.seen[-3], "all notices are read when the request behind them is answered"
            )
            assert server.seen[hostile.MEMBERS] - before <= 100  # five times a second, for two topics

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
        bomb = record(packed, 0, sys_flag=1) + record(b"next", 1)
        server.on[hostile.PULL] = lambda asked: asked.pulled(hostile.FOUND, 2, bomb)
        async with PullConsumer(server.address) as consumer:
            first, second = (await consumer.pull(QUEUE, 0)).messages
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
            (link,) = consumer._instance._greeted.values()
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
            (link,) = producer._instance._greeted.values()
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
                assert set(producer._instance._caller._links) == {server.address}
                await producer.send(Message("T", b"x"))

    against(scenario)


# ---- what would stop ---------------------------------------------------------------------------------------------


def test_what_cannot_be_read_is_passed_over_and_the_messages_around_it_are_not(
    pauses: Counter[int], caplog: pytest.LogCaptureFixture
) -> None:
    """Goal: one broken record costs one message.  Method: it is whole for nobody, also when it is asked for alone."""

    async def scenario(server: HostileServer) -> None:
        stored = [record(b"%d" % offset, offset) for offset in range(10)]
        stored[4] = stored[4][:50]

        def pull(asked: Request) -> bytes | None:
            first, count = int(asked.fields["queueOffset"]), int(asked.fields["maxMsgNums"])
            if asked.fields["topic"] != "T" or first >= 10:
                return hostile.HOLD
            end = min(10, first + count)
            return asked.pulled(hostile.FOUND, end, b"".join(stored[first:end]))

        server.on[hostile.PULL] = pull
        seen = Seen()
        async with await consumer_of(server, seen) as consumer:
            await wait_for(lambda: len(seen.messages) == 9, "all but one")
            assert consumer.skipped == 1
        assert seen.offsets == [0, 1, 2, 3, 5, 6, 7, 8, 9]
        alone = [asked for asked in server.requests if asked.code == 11 and asked.fields["maxMsgNums"] == "1"]
        assert len(alone) == reader.ALONE_TRIES

    against(scenario)
    assert "cannot be read and is skipped" in caplog.text


def test_a_record_that_was_damaged_on_its_way_is_asked_for_again_and_not_lost(pauses: Counter[int]) -> None:
    async def scenario(server: HostileServer) -> None:
        tries = iter([b"rubbish", b"more rubbish"])

        def pull(asked: Request) -> bytes | None:
            if asked.fields["topic"] != "T" or asked.fields["queueOffset"] != "0":
                return hostile.HOLD
            return asked.pulled(hostile.FOUND, 1, next(tries, record(b"sound", 0)))

        server.on[hostile.PULL] = pull
        seen = Seen()
        async with await consumer_of(server, seen) as consumer:
            await wait_for(lambda: seen.messages, "it comes in the end")
            assert (seen.messages[0].body, consumer.skipped) == (b"sound", 0)

    against(scenario)


@pytest.mark.parametrize("offsets", [[5], [-1], [3, 2], [2**63 - 1], [-(2**63)]])
def test_messages_of_other_places_than_were_asked_for_are_not_believed(offsets: list[int]) -> None:
    async def scenario(server: HostileServer) -> None:
        answer = b"".join(record(b"x", offset) for offset in offsets)
        server.on[hostile.PULL] = lambda asked: asked.pulled(hostile.FOUND, 5, answer)
        async with PullConsumer(server.address) as consumer:
            with pytest.raises(MalformedRecord, match="which is not from"):
                await consumer.pull(QUEUE, 0)

    against(scenario)


@pytest.mark.parametrize("offset", [-1, -(2**63)])
def test_negative_offsets_are_not_believed(offset: int) -> None:
    async def scenario(server: HostileServer) -> None:
        for code in (hostile.MAX_OFFSET, hostile.MIN_OFFSET):
            server.on[code] = lambda asked: asked.answer(fields={"offset": offset})
        server.on[hostile.PULL] = lambda asked: asked.pulled(hostile.OFFSET_MOVED, offset)
        async with PullConsumer(server.address) as consumer:
            for asking in (consumer.max_offset, consumer.min_offset):
                with pytest.raises(ProtocolError, match=str(offset)):
                    await asking(QUEUE)
            with pytest.raises(ProtocolError, match=str(offset)):
                await consumer.pull(QUEUE, 0)

    against(scenario)


def test_a_pull_that_does_not_go_on_is_an_error_and_no_loop_of_the_caller() -> None:
    async def scenario(server: HostileServer) -> None:
        server.on[hostile.PULL] = lambda asked: asked.pulled(hostile.FOUND, 3)
        async with PullConsumer(server.address) as consumer:
            with pytest.raises(ProtocolError, match="goes on at 3 after a pull at 3"):
                await consumer.pull(QUEUE, 3)

    against(scenario)


def test_a_broker_that_never_answers_keeps_nobody_from_the_queues_of_another() -> None:
    async def scenario(server: HostileServer) -> None:
        async with hostile_server(queues=8) as silent:
            silent.on[hostile.QUERY_OFFSET] = lambda asked: hostile.HOLD
            silent.members = server.members
            brokers = {"a": silent.address, "b": server.address}
            server.on[hostile.ROUTE] = lambda asked: asked.answer(body=hostile.route(brokers, 8))
            consumer = await consumer_of(server, Seen(), close_timeout_ms=0)
            starting = asyncio.ensure_future(consumer.start())
            await wait_for(
                lambda: len([one for one in consumer.queues if one.broker_name == "b"]) == 16,
                "all queues of the one that answers, of the topic and of the retry topic",
            )
            assert silent.seen[hostile.QUERY_OFFSET] <= 1 + 8
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)

    against(scenario)


def test_a_broker_whose_receipts_make_no_sense_is_left_for_another() -> None:
    async def scenario(server: HostileServer) -> None:
        async with hostile_server() as honest:
            server.on[hostile.SEND] = lambda asked: asked.answer(
                fields={"msgId": "x" * 1000, "queueOffset": "many"}
            )
            honest.on[hostile.SEND] = lambda asked: asked.answer(
                fields={"msgId": "x", "queueId": 0, "queueOffset": 7}
            )
            brokers = {"a": server.address, "b": honest.address}
            server.on[hostile.ROUTE] = lambda asked: asked.answer(body=hostile.route(brokers))
            async with Producer(server.address) as producer:
                for _ in range(4):
                    assert (await producer.send(Message("T", b"x"))).queue.broker_name == "b"

    against(scenario)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[" * 100_000,
        hostile.route({f"b{number}": "127.0.0.1:1" for number in range(2000)}),
        hostile.route({"b": "127.0.0.1:1"}, 2**40),
        hostile.route({"b": "127.0.0.1:1", "c": "127.0.0.1:1"}, 40_000),
        hostile.route({}, odd={"orderTopicConf": "x" * 5 * MIB}),
        hostile.route({"b": "no address"}),
        hostile.route({"b": "127.0.0.1:1"}).replace(b'"0"', b"9" * 5000),
    ],
    ids=["nothing", "deep", "brokers", "queues", "all-queues", "bytes", "address", "broker-id"],
)
def test_a_route_beyond_all_bounds_is_an_error(body: bytes) -> None:
    async def scenario(server: HostileServer) -> None:
        server.on[hostile.ROUTE] = lambda asked: asked.answer(body=body)
        async with Producer(server.address) as producer:
            with pytest.raises(BolideError) as raised:
                await producer.send(Message("T", b"x"))
            assert len(str(raised.value)) < 1000

    against(scenario)


def test_names_of_a_route_reach_the_log_escaped(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(server: HostileServer) -> None:
        brokers = {
            "b": server.address,
            "evil\n\x1b]0;title\x07": "127.0.0.1:1",
            "odd": "127.0.0.1:1\r\nadmin",
        }
        server.on[hostile.ROUTE] = lambda asked: asked.answer(body=hostile.route(brokers))
        async with await consumer_of(server, Seen()) as consumer:
            assert {queue.broker_name for queue in consumer.queues} == {"b"}

    with caplog.at_level(logging.DEBUG, "bolide"):
        against(scenario)
    assert "evil" in caplog.text
    assert all(said.getMessage().isprintable() for said in caplog.records if said.name.startswith("bolide"))


def test_the_reason_of_a_refusal_is_bounded_and_escaped() -> None:
    async def scenario(server: HostileServer) -> None:
        server.on[hostile.SEND] = lambda asked: asked.answer(13, remark="no\n\x1b[31m" + "x" * 30_000)
        async with Producer(server.address) as producer:
            with pytest.raises(RemoteError) as raised:
                await producer.send(Message("T", b"x"))
        assert str(raised.value).isprintable()
        assert len(str(raised.value)) < limits.REMARK_LENGTH_MAX + 100
        assert len(raised.value.remark) == limits.REMARK_LENGTH_MAX

    against(scenario)


def test_more_members_than_a_group_can_have_change_nothing() -> None:
    async def scenario(server: HostileServer) -> None:
        async with await consumer_of(server, Seen()) as consumer:
            before = consumer.queues
            honest = server.on[hostile.MEMBERS]
            server.on[hostile.MEMBERS] = lambda asked: asked.answer(
                body=b'{"consumerIdList":["' + b'","'.join([b"a"] * 500_000) + b'"]}'
            )
            asked_before = server.seen[hostile.MEMBERS]
            server.writers[-1].write(
                hostile.request(hostile.MEMBERS_CHANGED, {"consumerGroup": "g"}, flag=hostile.ONE_WAY)
            )
            await wait_for(lambda: server.seen[hostile.MEMBERS] >= asked_before + 2, "they were asked for")
            server.on[hostile.MEMBERS] = honest
            assert consumer.queues == before

    against(scenario)


def test_a_name_server_that_refuses_is_passed_over_for_one_that_answers() -> None:
    async def scenario(server: HostileServer) -> None:
        async with hostile_server() as refusing:
            refusing.on[hostile.ROUTE] = lambda asked: asked.answer(1, remark="not today")
            server.on[hostile.SEND] = lambda asked: asked.answer(
                fields={"msgId": "x", "queueId": 0, "queueOffset": 7}
            )
            for _ in range(4):  # whichever is asked first
                async with Producer(f"{refusing.address};{server.address}") as producer:
                    await producer.send(Message("T", b"x"))

    against(scenario)


def test_bytes_that_are_no_frame_end_the_connection_and_not_the_consumer(pauses: Counter[int]) -> None:
    async def scenario(server: HostileServer) -> None:
        rubbish = iter([b"\xff" * 100, struct.pack(">ii", 2**31 - 1, 7), struct.pack(">ii", 8, 2**24 - 1)])

        def pull(asked: Request) -> bytes | None:
            if asked.fields["topic"] != "T" or asked.fields["queueOffset"] != "0":
                return hostile.HOLD
            return next(rubbish, None) or asked.pulled(hostile.FOUND, 1, record(b"sound", 0))

        server.on[hostile.PULL] = pull
        seen = Seen()
        async with await consumer_of(server, seen):
            await wait_for(lambda: seen.messages, "a message in the end")

    against(scenario)
