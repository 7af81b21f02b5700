"""Requests and replies: with a real broker between both, and with one that does what a test wants."""

import asyncio
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import bolide
import bolide.aio
from bolide import (
    CallTimeout,
    ClientNotRunning,
    InvalidRequest,
    Message,
    NoReply,
    Producer,
    PushConsumer,
    RemoteError,
    StoredMessage,
    reply_to,
)
from bolide.model.message import format_properties
from bolide.model.offsets import LogOffset, QueueOffset
from bolide.model.pairs import parse_properties
from bolide.net.link import Link
from bolide.testing import EmbeddedServer
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.reply import PushedReply
from tests.peers.waiting import wait_until
from tests.unit.client.scripted import Cluster, cluster, wait_for

PATIENCE_MS = 30_000


@contextmanager
def replier(
    server: EmbeddedServer, topic: str, reply: Callable[[Producer, StoredMessage], None]
) -> Iterator[None]:
    with Producer(server.nameserver, group="repliers", timeout_ms=PATIENCE_MS) as producer:

        def handle(messages: list[StoredMessage]) -> None:
            for message in messages:
                reply(producer, message)

        consumer = PushConsumer(
            server.nameserver, group=f"{topic}-repliers", listener=handle, start_from="first"
        )
        consumer.subscribe(topic)
        with consumer:
            yield


def test_each_request_gets_the_reply_to_it(bolide_module_server: EmbeddedServer) -> None:
    """RR-01: by its correlation id, however large it is."""
    server = bolide_module_server

    def reply(producer: Producer, message: StoredMessage) -> None:
        large = message.body * 5_000  # packed on its way
        producer.send(reply_to(message, large, tags="answer", keys=["k"], properties={"colour": "red"}))

    with (
        replier(server, "questions", reply),
        Producer(server.nameserver, group="askers") as producer,
        Producer(server.nameserver, group="askers") as second,
    ):
        for asker in (producer, second):
            for number in range(5):
                found = asker.request(Message("questions", b"%d" % number), timeout_ms=PATIENCE_MS)
                assert found.body == b"%d" % number * 5_000
                assert (found.tags, found.keys, found.properties["colour"]) == ("answer", ("k",), "red")
                assert found.queue_offset == -1


def test_on_asyncio_many_requests_wait_at_once_and_each_gets_its_own(
    bolide_module_server: EmbeddedServer,
) -> None:
    server = bolide_module_server

    async def scenario() -> None:
        async with bolide.aio.Producer(server.nameserver, timeout_ms=PATIENCE_MS) as producer:

            async def handle(messages: list[StoredMessage]) -> None:
                for message in messages:
                    await producer.send(reply_to(message, b"re: " + message.body))

            consumer = bolide.aio.PushConsumer(
                server.nameserver, group="aio-repliers", listener=handle, start_from="first"
            )
            await consumer.subscribe("aio-questions")
            async with consumer:
                work = (producer.request(Message("aio-questions", b"%d" % number)) for number in range(50))
                replies = await asyncio.gather(*work)
        assert [reply.body for reply in replies] == [b"re: %d" % number for number in range(50)]

    asyncio.run(scenario())


def test_a_request_that_nobody_answers_ends_with_its_time_and_a_late_reply_is_refused(
    bolide_module_server: EmbeddedServer,
) -> None:
    """RR-01: no replier: timeout."""
    server = bolide_module_server
    with Producer(server.nameserver, group="askers") as producer:
        with pytest.raises(NoReply, match=r"nobody has replied .* within 300 ms.*reply_to"):
            producer.request(Message("unanswered", b"?"), timeout_ms=300)
        outcomes: list[object] = []

        def reply(other: Producer, message: StoredMessage) -> None:
            try:
                outcomes.append(other.send(reply_to(message, b"late")))
            except RemoteError as error:
                outcomes.append(error)

        with replier(server, "unanswered", reply):
            wait_until(lambda: bool(outcomes), 30, "nobody has replied")
    assert isinstance(outcomes[0], RemoteError)
    assert "refuses the reply" in str(outcomes[0])
    assert issubclass(NoReply, CallTimeout)


def test_a_reply_is_only_made_to_a_request(bolide_module_server: EmbeddedServer) -> None:
    server = bolide_module_server
    with (
        Producer(server.nameserver) as producer,
        bolide.PullConsumer(server.nameserver) as reader,
    ):
        receipt = producer.send(Message("plain", b"x"))
        (message,) = reader.pull(receipt.queue, receipt.queue_offset, 1).messages
        with pytest.raises(InvalidRequest, match=r"nobody waits for a reply .* Producer\.request"):
            reply_to(message, b"x")
    with pytest.raises(InvalidRequest, match="request is a StoredMessage"):
        reply_to(Message("orders", b"x"), b"y")  # type: ignore[arg-type]


# ---- a broker that does what the test wants


def pushed(body: bytes, sys_flag: int = 0, **properties: str) -> Command:
    header = PushedReply(
        producer_group="g",
        topic="c_REPLY_TOPIC",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=sys_flag,
        flag=0,
        born_host="127.0.0.1:1",
        store_host="127.0.0.1:2",
        born_timestamp_ms=1,
        store_timestamp_ms=2,
        properties=format_properties(properties),
    )
    return Command(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, header.encode(), body)


async def asked(c: Cluster) -> tuple[Link, dict[str, str]]:
    """The connection of the only request so far, and its properties."""
    (broker,) = c.brokers
    await wait_for(lambda: broker.sends, "the request is sent")
    (link,) = broker.links
    return link, parse_properties(broker.sends[-1].properties)


def test_a_request_names_its_sender_and_what_it_waits_for() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("questions", 1)
            async with bolide.aio.Producer(c.nameserver.address) as producer:
                work = asyncio.create_task(producer.request(Message("questions", b"?"), timeout_ms=9_000))
                link, properties = await asked(c)
                assert properties["TTL"] == "9000"
                assert properties["REPLY_TO_CLIENT"] == c.brokers[0].heartbeats[0]["clientID"]
                own = properties["CORRELATION_ID"]
                for wrong in (pushed(b"x", CORRELATION_ID="other"), pushed(b"x")):
                    assert (await link.call(wrong, 5_000)).code != ResponseCode.SUCCESS
                unreadable = Command(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, {"topic": "x"}, b"x")
                assert (await link.call(unreadable, 5_000)).code != ResponseCode.SUCCESS
                packed = pushed(zlib.compress(b"yes"), 0x301, CORRELATION_ID=own, UNIQ_KEY="id")
                assert (await link.call(packed, 5_000)).code == ResponseCode.SUCCESS
                reply = await work
                assert (reply.body, reply.message_id, reply.broker_name) == (b"yes", "id", "broker-0")
                again = await link.call(pushed(b"again", CORRELATION_ID=own), 5_000)
                assert again.code != ResponseCode.SUCCESS

    asyncio.run(scenario())


def test_a_reply_that_comes_before_the_acknowledgement_is_enough() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("questions", 1)
            c.brokers[0].silent = True
            async with bolide.aio.Producer(c.nameserver.address, retries=0) as producer:
                work = asyncio.create_task(producer.request(Message("questions", b"?"), timeout_ms=9_000))
                link, properties = await asked(c)
                own = properties["CORRELATION_ID"]
                assert (await link.call(pushed(b"yes", CORRELATION_ID=own), 5_000)).code == 0
                link.close()
                assert (await work).body == b"yes"

    asyncio.run(scenario())


def test_a_request_that_is_not_stored_is_no_missing_reply() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("questions", 1)
            c.brokers[0].silent = True
            async with bolide.aio.Producer(c.nameserver.address) as producer:
                with pytest.raises(CallTimeout, match="took over 200 ms") as raised:
                    await producer.request(Message("questions", b"?"), timeout_ms=200)
                assert not isinstance(raised.value, NoReply)

    asyncio.run(scenario())


def test_closing_ends_requests_that_wait() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("questions", 1)
            async with bolide.aio.Producer(c.nameserver.address) as producer:
                work = asyncio.create_task(producer.request(Message("questions", b"?"), timeout_ms=9_000))
                await asked(c)
                await wait_for(lambda: producer._requests._waiting, "it waits")
            with pytest.raises((ClientNotRunning, bolide.ConnectionLost)):
                await work

    asyncio.run(scenario())


def test_a_reply_goes_to_the_broker_of_the_request_and_to_another_only_if_that_one_is_gone() -> None:
    """Who has asked is connected there."""

    async def scenario() -> None:
        async with cluster(3) as c:
            c.create("c_REPLY_TOPIC", 1)
            request = _request_at("broker-1")
            async with bolide.aio.Producer(c.nameserver.address) as producer:
                for _ in range(4):
                    receipt = await producer.send(reply_to(request, b"yes"))
                    assert receipt.queue.broker_name == "broker-1"
                await c.brokers[1].stop()
                receipt = await producer.send(reply_to(request, b"yes"))
                assert receipt.queue.broker_name != "broker-1"
            assert RequestCode.SEND_REPLY_MESSAGE_V2 in c.brokers[1].seen
            assert RequestCode.SEND_MESSAGE_V2 not in c.brokers[1].seen
            (header, *_) = c.brokers[1].sends
            sent = parse_properties(header.properties)
            assert {
                name: sent[name] for name in ("MSG_TYPE", "CORRELATION_ID", "REPLY_TO_CLIENT", "TTL")
            } == {
                "MSG_TYPE": "reply",
                "CORRELATION_ID": "7",
                "REPLY_TO_CLIENT": "somebody",
                "TTL": "1000",
            }

    asyncio.run(scenario())


def _request_at(broker_name: str) -> StoredMessage:
    properties = {"CORRELATION_ID": "7", "REPLY_TO_CLIENT": "somebody", "TTL": "1000", "CLUSTER": "c"}
    return StoredMessage(
        topic="questions",
        body=b"?",
        properties=properties,
        queue_id=0,
        queue_offset=QueueOffset(0),
        log_offset=LogOffset(0),
        broker_name=broker_name,
        sys_flag=0,
        flag=0,
        born_timestamp_ms=0,
        born_host="127.0.0.1:1",
        store_timestamp_ms=0,
        store_host="127.0.0.1:2",
        reconsume_times=0,
        message_id="id",
        offset_message_id="",
    )
