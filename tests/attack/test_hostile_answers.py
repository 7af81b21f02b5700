"""Servers that lie to Python clients, to stop them or to be believed."""

import json
import logging
import struct
from collections import Counter
from functools import partial

import pytest

from bolide.aio import (
    BolideError,
    MalformedRecord,
    Message,
    Producer,
    ProtocolError,
    PullConsumer,
    RemoteError,
)
from bolide.client import queue_calls, reader
from bolide.model import limits
from tests.attack import hostile
from tests.attack.hostile import HostileServer, Request, hostile_server, record
from tests.attack.victims import MIB, QUEUE, Seen, against, consumer_of
from tests.unit.client.scripted import wait_for


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


def test_a_broker_that_never_answers_is_asked_once_and_keeps_nobody_from_the_queues_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queue_calls, "OFFSET_TIMEOUT_MS", 100)

    async def scenario(server: HostileServer) -> None:
        async with hostile_server(queues=8) as silent:
            silent.on[hostile.QUERY_OFFSET] = lambda asked: hostile.HOLD
            silent.members = server.members
            brokers = {"a": silent.address, "b": server.address}
            server.on[hostile.ROUTE] = lambda asked: asked.answer(body=hostile.route(brokers, 8))
            consumer = await consumer_of(server, Seen(), close_timeout_ms=0)
            await consumer.start()
            assert silent.seen[hostile.QUERY_OFFSET] == 2  # for the topic, and for the retry topic
            assert len([one for one in consumer.queues if one.broker_name == "b"]) == 16
            await consumer.close()

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
                body=json.dumps({"consumerIdList": [*map(str, range(500_000)), *server.members]}).encode()
            )
            notice = hostile.request(hostile.MEMBERS_CHANGED, {"consumerGroup": "g"}, flag=hostile.ONE_WAY)
            asked_before = server.seen[hostile.MEMBERS]
            for number in (1, 2):  # when they are asked for again, the first answers have been read
                server.writers[-1].write(notice)
                wanted = asked_before + 2 * number
                await wait_for(partial(_is_reached, server, wanted), "they are asked for")
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


@pytest.mark.parametrize("broker_id", [-(2**63), 1, 2**63 - 1])
def test_a_broker_sends_nobody_to_an_address_that_is_in_no_route(broker_id: int) -> None:
    async def scenario(server: HostileServer) -> None:
        def pull(asked: Request) -> bytes | None:
            offset = int(asked.fields["queueOffset"])
            if asked.fields["topic"] != "T" or offset == 5:
                return hostile.HOLD
            return asked.pulled(hostile.FOUND, offset + 1, record(b"x", offset), broker_id)

        server.on[hostile.PULL] = pull
        seen = Seen()
        async with await consumer_of(server, seen) as consumer:
            await wait_for(lambda: len(seen.messages) == 5, "all of them, from the one address there is")
            assert set(consumer._instance.hub._caller._links) == {server.address}

    against(scenario)


def _is_reached(server: HostileServer, count: int) -> bool:
    return server.seen[hostile.MEMBERS] >= count
