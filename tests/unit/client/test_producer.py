"""Sending: where to, what, and what happens when a broker does not want it."""

import asyncio
import random
import zlib
from collections import Counter
from random import Random

import pytest

from bolide.aio import Message, MessageQueue, Producer, PullConsumer, SendStatus
from bolide.client import sending
from bolide.model.errors import (
    CallTimeout,
    ClientNotRunning,
    ConnectionLost,
    InvalidRequest,
    MessageIllegal,
    NoBroker,
    ProtocolError,
    RemoteError,
    RouteNotFound,
)
from bolide.model.pairs import parse_properties
from bolide.net import link as link_module
from bolide.net.surroundings import Surroundings
from bolide.record.codec import split_batch
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.send import SendAnswer
from tests.unit.client.scripted import cluster, wait_for


class NoChance(Random):
    """Always begins with the first."""

    def randrange(self, *args: int, **options: int) -> int:  # type: ignore[override]
        return 0


def test_a_send_carries_the_message_and_returns_its_receipt() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address, group="shop") as producer:
                message = Message(
                    "orders", b"hello", tags="paid", keys=["1", "2"], properties={"a": "b"}, flag=7
                )
                receipt = await producer.send(message)
            (broker,) = c.brokers
            (header,) = broker.sends
            assert (header.topic, header.producer_group, header.queue_id, header.flag) == (
                "orders",
                "shop",
                0,
                7,
            )
            assert header.sys_flag == 0
            assert broker.bodies == [b"hello"]
            properties = parse_properties(header.properties)
            assert properties == {"a": "b", "TAGS": "paid", "KEYS": "1 2", "UNIQ_KEY": receipt.message_id}
            assert receipt.queue == MessageQueue("orders", "broker-0", 0)
            assert (receipt.queue_offset, receipt.status) == (0, SendStatus.SEND_OK)
            assert len(receipt.offset_message_id) == 32

    asyncio.run(scenario())


def test_queues_take_turns() -> None:
    async def scenario() -> None:
        async with cluster(2) as c:
            c.create("orders", 2)
            async with Producer(c.nameserver.address) as producer:
                queues = Counter([(await producer.send(Message("orders", b"x"))).queue for _ in range(40)])
            assert len(queues) == 4
            assert set(queues.values()) == {10}

    asyncio.run(scenario())


@pytest.mark.parametrize("code", [1, 2, 14, 16, 17, 204, 205, 1500])
def test_a_refusal_that_is_the_brokers_own_is_repeated_on_another(code: int) -> None:
    """PR-03."""

    async def scenario() -> None:
        async with cluster(2) as c:
            c.create("orders")
            c.brokers[0].answers = [code] * 9
            async with Producer(c.nameserver.address) as producer:
                for _ in range(8):
                    assert (await producer.send(Message("orders", b"x"))).queue.broker_name == "broker-1"

    asyncio.run(scenario())


def test_there_are_three_tries_and_the_last_refusal_is_raised() -> None:
    """PR-03."""

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            c.brokers[0].answers = [ResponseCode.SYSTEM_BUSY] * 9
            async with Producer(c.nameserver.address) as producer:
                with pytest.raises(RemoteError, match="SYSTEM_BUSY") as raised:
                    await producer.send(Message("orders", b"x"))
            assert raised.value.response_code == ResponseCode.SYSTEM_BUSY
            assert len(c.brokers[0].sends) == 3

    asyncio.run(scenario())


def test_a_refusal_of_the_message_itself_is_raised_at_once() -> None:
    async def scenario() -> None:
        async with cluster(2) as c:
            c.create("orders")
            for broker in c.brokers:
                broker.answers = [ResponseCode.MESSAGE_ILLEGAL]
            async with Producer(c.nameserver.address) as producer:
                with pytest.raises(RemoteError, match="MESSAGE_ILLEGAL"):
                    await producer.send(Message("orders", b"x"))
            assert sum(len(broker.sends) for broker in c.brokers) == 1

    asyncio.run(scenario())


def test_a_chosen_queue_is_never_exchanged() -> None:
    async def scenario() -> None:
        async with cluster(2) as c:
            c.create("orders")
            async with Producer(c.nameserver.address) as producer:
                chosen = MessageQueue("orders", "broker-1", 3)
                assert (await producer.send(Message("orders", b"x"), queue=chosen)).queue == chosen
                selected = await producer.send(Message("orders", b"x"), selector=lambda queues, _: queues[2])
                assert selected.queue == MessageQueue("orders", "broker-0", 2)
                c.brokers[1].answers = [ResponseCode.SYSTEM_ERROR] * 3
                with pytest.raises(RemoteError):
                    await producer.send(Message("orders", b"x"), queue=chosen)
            assert len(c.brokers[1].sends) == 2

    asyncio.run(scenario())


def test_a_broker_that_is_gone_costs_no_message() -> None:
    async def scenario() -> None:
        async with cluster(2) as c:
            c.create("orders")
            async with Producer(c.nameserver.address) as producer:
                for _ in range(8):
                    await producer.send(Message("orders", b"x"))
                await c.brokers[0].stop()
                names = {(await producer.send(Message("orders", b"x"))).queue.broker_name for _ in range(8)}
                assert names == {"broker-1"}

    asyncio.run(scenario())


def test_no_answer_is_an_error_when_the_whole_time_is_over() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            c.brokers[0].silent = True
            async with Producer(c.nameserver.address, timeout_ms=200) as producer:
                with pytest.raises(CallTimeout):
                    await producer.send(Message("orders", b"x"))
            assert len(c.brokers[0].sends) == 1

    asyncio.run(scenario())


def test_stored_but_not_safe_is_a_status_and_not_an_error() -> None:
    """PR-08."""

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            c.brokers[0].answers = [ResponseCode.FLUSH_DISK_TIMEOUT]
            async with Producer(c.nameserver.address) as producer:
                receipt = await producer.send(Message("orders", b"x"))
            assert receipt.status is SendStatus.FLUSH_DISK_TIMEOUT

    asyncio.run(scenario())


def test_bodies_are_packed_from_4096_bytes_on_if_that_helps() -> None:
    """PR-04."""

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            async with Producer(c.nameserver.address) as producer:
                for size in (4095, 4096, 200_000):
                    await producer.send(Message("orders", b"a" * size))
                await producer.send(Message("orders", Random(1).randbytes(5000)))
            (broker,) = c.brokers
            assert [header.sys_flag for header in broker.sends] == [0, 0x301, 0x301, 0]
            assert [len(zlib.decompress(body)) for body in broker.bodies[1:3]] == [4096, 200_000]

    asyncio.run(scenario())


def test_a_batch_is_one_request_and_gives_a_receipt_for_each_message() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address) as producer:
                await producer.send(Message("orders", b"before"))
                batch = [Message("orders", b"%d" % n, keys=[str(n)]) for n in range(3)]
                receipts = await producer.send_batch(batch)
            (broker,) = c.brokers
            assert broker.seen.count(RequestCode.SEND_BATCH_MESSAGE) == 1
            assert broker.sends[1].batch
            items = split_batch(broker.bodies[1])
            assert [body for _, body, _ in items] == [b"0", b"1", b"2"]
            ids = [parse_properties(properties.decode())["UNIQ_KEY"] for _, _, properties in items]
            assert ids == [receipt.message_id for receipt in receipts]
            assert [receipt.queue_offset for receipt in receipts] == [1, 2, 3]
            assert len({receipt.offset_message_id for receipt in receipts}) == 3

    asyncio.run(scenario())


def test_a_delay_level_is_a_property() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            async with Producer(c.nameserver.address) as producer:
                await producer.send(Message("orders", b"x", delay_level=3))
                await producer.send(Message("orders", b"x"))
            delays = [parse_properties(send.properties).get("DELAY") for send in c.brokers[0].sends]
            assert delays == ["3", None]

    asyncio.run(scenario())


def test_what_cannot_be_sent_is_refused_before_it_leaves() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            async with Producer(c.nameserver.address) as producer:
                with pytest.raises(MessageIllegal, match="no body"):
                    await producer.send(Message("orders", b""))
                with pytest.raises(MessageIllegal, match="4194304 are allowed"):
                    await producer.send(Message("orders", bytes(4 * 1024 * 1024 + 1)))
                with pytest.raises(InvalidRequest, match=r"contains '\.'"):
                    await producer.send(Message("../../etc", b"x"))
                with pytest.raises(MessageIllegal, match="separator"):
                    await producer.send(Message("orders", b"x", properties={"a": "b\x02c"}))
                with pytest.raises(MessageIllegal, match="properties"):
                    await producer.send(Message("orders", b"x", properties={"a": "b" * 40_000}))
                with pytest.raises(MessageIllegal, match="one topic"):
                    await producer.send_batch([Message("orders", b"x"), Message("other", b"x")])
                with pytest.raises(MessageIllegal, match="DELAY"):
                    await producer.send_batch([Message("orders", b"x", properties={"DELAY": "3"})])
                with pytest.raises(MessageIllegal, match="delay_level"):
                    await producer.send_batch([Message("orders", b"x", delay_level=3)])
                with pytest.raises(MessageIllegal, match="at least one"):
                    await producer.send_batch([])
            assert c.brokers[0].sends == []

    asyncio.run(scenario())


def test_a_one_way_send_arrives_without_an_answer() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            async with Producer(c.nameserver.address) as producer:
                await producer.send_oneway(Message("orders", b"x"))
                await wait_for(lambda: c.brokers[0].sends, "the message arrives")

    asyncio.run(scenario())


def test_a_topic_that_does_not_exist_borrows_the_default_topics_route() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("TBW102", 8)
            async with Producer(c.nameserver.address) as producer:
                queues = await producer.queues("young")
                assert [queue.queue_id for queue in queues] == [0, 1, 2, 3]
                await producer.send(Message("young", b"x"))
            (header,) = c.brokers[0].sends
            assert (header.default_topic, header.default_topic_queues) == ("TBW102", 4)

    asyncio.run(scenario())


def test_a_message_can_be_forwarded_with_its_properties_and_a_tag_of_any_client() -> None:
    """Sent with tags, keys and all properties of what was read: the same twice is no contradiction."""

    async def scenario() -> None:
        async with cluster() as c, Producer(c.nameserver.address) as producer:
            c.create("orders", 1)
            given = {"TAGS": "a=b,(c)", "KEYS": "k l", "colour": "blue"}
            for keys in ("k l", ["k", "l"]):
                await producer.send(Message("orders", b"x", "a=b,(c)", keys, given))
            await producer.send(Message("orders", b"x", properties=given))
            for header in c.brokers[0].sends:
                assert given.items() <= parse_properties(header.properties).items()

    asyncio.run(scenario())


def test_without_any_route_the_error_says_whom_it_asked_and_what_to_do() -> None:
    async def scenario() -> None:
        async with cluster() as c, Producer(c.nameserver.address) as producer:
            with pytest.raises(RouteNotFound) as raised:
                await producer.send(Message("nowhere", b"x"))
            for word in (c.nameserver.address, "bolide topic create nowhere", "autoCreateTopicEnable"):
                assert word in str(raised.value)

    asyncio.run(scenario())


def test_without_any_broker_the_error_speaks_of_brokers_and_not_of_a_missing_topic() -> None:
    async def scenario() -> None:
        async with (
            cluster(0) as c,
            Producer(c.nameserver.address) as producer,
            PullConsumer(c.nameserver.address) as consumer,
        ):
            for work in (producer.send(Message("orders", b"x")), consumer.queues("orders")):
                with pytest.raises(NoBroker, match=r"knows no broker now.*in the brokers' stores") as raised:
                    await work
                assert "create" not in str(raised.value)

    asyncio.run(scenario())


def test_a_topic_that_no_broker_has_is_said_with_the_brokers_that_are_up() -> None:
    async def scenario() -> None:
        async with cluster(2) as c, PullConsumer(c.nameserver.address) as consumer:
            with pytest.raises(
                RouteNotFound, match=r"brokers that are up: broker-0, broker-1\): start the broker"
            ):
                await consumer.queues("nowhere")

    asyncio.run(scenario())


def test_a_broker_that_is_gone_is_named() -> None:
    async def scenario() -> None:
        async with cluster() as c, Producer(c.nameserver.address) as producer:
            c.create("orders")
            await c.brokers[0].stop()
            with pytest.raises(
                ConnectionLost, match="the broker broker-0 does not answer: cannot connect to"
            ):
                await producer.send(Message("orders", b"x"))

    asyncio.run(scenario())


def test_a_broker_given_for_a_name_server_is_called_one() -> None:
    async def scenario() -> None:
        async with cluster() as c, Producer(c.brokers[0].address) as producer:
            with pytest.raises(
                ConnectionLost, match=f"{c.brokers[0].address} .* is a broker, not a name server"
            ):
                await producer.send(Message("orders", b"x"))

    asyncio.run(scenario())


def test_a_topic_that_permits_no_writing_is_an_error_that_says_so() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", perm=4)
            async with Producer(c.nameserver.address) as producer:
                with pytest.raises(RouteNotFound, match="no queue that can be written to"):
                    await producer.send(Message("orders", b"x"))

    asyncio.run(scenario())


def test_a_name_server_that_does_not_know_a_topic_yet_is_not_believed_alone() -> None:
    """It may have just started: its brokers have registered with the others and not yet with it."""

    async def scenario() -> None:
        async with cluster() as young, cluster() as c:
            c.create("orders")
            addresses = f"{young.nameserver.address};{c.nameserver.address}"
            async with Producer(addresses, surroundings=Surroundings(random=NoChance())) as producer:
                await producer.send(Message("orders", b"x"))
                with pytest.raises(RouteNotFound):
                    await producer.send(Message("nowhere", b"x"))

    asyncio.run(scenario())


def test_a_second_opinion_on_a_topic_is_not_waited_for_long() -> None:
    """A new topic's first message arrives in time although another name server is out of reach."""

    async def scenario() -> None:
        async with cluster() as c, cluster() as silent:
            c.create("TBW102", 8)
            silent.nameserver.silent = True
            addresses = f"{c.nameserver.address};{silent.nameserver.address}"
            async with Producer(addresses, surroundings=Surroundings(random=NoChance())) as producer:
                await producer.send(Message("young", b"x"))

    asyncio.run(scenario())


def test_a_name_server_that_is_down_is_passed_over_and_none_at_all_is_named() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            addresses = f"127.0.0.1:1;{c.nameserver.address}"
            async with Producer(addresses, surroundings=Surroundings(random=NoChance())) as producer:
                await producer.send(Message("orders", b"x"))
            async with Producer("127.0.0.1:1") as producer:
                with pytest.raises(ConnectionLost, match=r"127\.0\.0\.1:1.*bolide up"):
                    await producer.send(Message("orders", b"x"))

    asyncio.run(scenario())


def test_the_broker_knows_the_producer_before_it_sends_and_a_new_connection_tells_it_again() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            (broker,) = c.brokers
            async with Producer(c.nameserver.address, group="shop") as producer:
                await producer.send(Message("orders", b"x"))
                assert broker.seen[:2] == [RequestCode.HEART_BEAT, RequestCode.SEND_MESSAGE_V2]
                assert broker.heartbeats[0]["producerDataSet"] == [{"groupName": "shop"}]
                for link in list(broker.links):
                    link.close()
                await wait_for(lambda: not broker.links, "the connection is gone")
                await producer.send(Message("orders", b"x"))
                assert broker.seen[-2:] == [RequestCode.HEART_BEAT, RequestCode.SEND_MESSAGE_V2]
            await wait_for(lambda: RequestCode.UNREGISTER_CLIENT in broker.seen, "it says goodbye")

    asyncio.run(scenario())


def test_a_producer_that_does_not_run_says_how_to_start_it() -> None:
    async def scenario() -> None:
        producer = Producer("127.0.0.1:9876")
        with pytest.raises(ClientNotRunning, match="async with"):
            await producer.send(Message("orders", b"x"))

    asyncio.run(scenario())


@pytest.mark.parametrize("how", ["selector", "one way"])
def test_a_name_server_that_does_not_answer_counts_against_the_time_of_every_kind_of_send(how: str) -> None:
    async def run() -> None:
        silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        port = silent.sockets[0].getsockname()[1]
        async with Producer(f"127.0.0.1:{port}", timeout_ms=50) as producer:
            message = Message("orders", b"x")
            sends = {
                "selector": producer.send(message, selector=lambda queues, _: queues[0]),
                "one way": producer.send_oneway(message),
            }
            with pytest.raises(CallTimeout, match="took over 50 ms"):
                await sends.pop(how)
            for unused in sends.values():
                unused.close()
        silent.close()

    asyncio.run(run())


def test_one_way_messages_wait_for_a_broker_that_is_behind_instead_of_filling_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_module, "WRITE_BUFFER_BYTES_MAX", 256 * 1024)
    message = Message("orders", random.randbytes(100_000))

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address, timeout_ms=500) as producer:
                await producer.send(Message("orders", b"first"))
                (link,) = c.brokers[0].links
                assert link._transport is not None
                link._transport.pause_reading()
                sent = 1
                with pytest.raises(CallTimeout):  # noqa: PT012 - how many fit is up to the system
                    while sent < 500:
                        await producer.send_oneway(message)
                        sent += 1
                link._transport.resume_reading()
                await wait_for(lambda: len(c.brokers[0].bodies) == sent, "all but the one that was given up")
                await producer.send_oneway(message)

    asyncio.run(scenario())


@pytest.mark.parametrize(("queue_id", "queue_offset"), [(-5, 0), (0, -9)])
def test_an_acknowledgement_of_a_place_that_cannot_be_is_none(queue_id: int, queue_offset: int) -> None:
    answer = Command(ResponseCode.SUCCESS, SendAnswer("id", queue_id, queue_offset).encode())
    with pytest.raises(ProtocolError, match="of a place that cannot be"):
        sending._read(answer)
