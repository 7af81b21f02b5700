"""While no name server gives routes: what clients say, and for how long they try."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bolide.aio import LitePullConsumer, Message, NoNameServer, Producer, PushConsumer
from bolide.cli.outcome import explain
from bolide.client import routes, shares
from bolide.wire.codes import RequestCode
from tests.peers.waiting import PATIENCE_MS
from tests.unit.client.scripted import Cluster, ScriptedBroker, cluster, wait_for


def test_a_name_server_that_answers_that_it_is_starting_is_not_said_to_be_missing() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.nameserver.is_starting = True
            async with Producer(c.nameserver.address) as producer:
                with pytest.raises(NoNameServer) as caught:
                    await producer.send(Message("orders", b"x"), timeout_ms=200)
            said = str(caught.value)
            assert f"{c.nameserver.address} says" in said
            assert "waits for its brokers. One is there, so try again in a moment" in said
            assert "bolide up" not in explain(caught.value)

    asyncio.run(scenario())


async def _meanwhile(c: Cluster, work: Any, caplog: pytest.LogCaptureFixture) -> Any:
    """The outcome of work that began while the name server was away: it comes back when somebody waits for it."""
    port = int(c.nameserver.address.rpartition(":")[2])
    await c.nameserver.stop()
    task = asyncio.create_task(work())
    await wait_for(lambda: task.done() or "waiting for a name server" in caplog.text, "the client waits")
    assert not task.done()
    await c.nameserver.start(port)
    return await task


each_kind = pytest.mark.parametrize(
    "make",
    [
        lambda address: PushConsumer(address, group="g", listener=print),
        lambda address: LitePullConsumer(address, group="g"),
    ],
    ids=["push", "lite"],
)


@each_kind
def test_a_consumer_that_starts_before_its_name_server_waits_for_it(
    make: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(routes, "WAIT_MS", PATIENCE_MS)

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            consumer = make(c.nameserver.address)
            await consumer.subscribe("orders")
            await _meanwhile(c, consumer.start, caplog)
            await consumer.close()

    asyncio.run(scenario())


async def _shared(broker: ScriptedBroker, consumer: Any, count: int) -> None:
    """Until the consumer has so many queues, and has looked for the other topics again."""
    await wait_for(lambda: len(consumer.queues) == count, "its share")
    rounds = broker.seen.count(RequestCode.GET_CONSUMER_LIST_BY_GROUP)
    await wait_for(
        lambda: broker.seen.count(RequestCode.GET_CONSUMER_LIST_BY_GROUP) > rounds + 1, "more rounds"
    )


@each_kind
def test_a_topic_that_nobody_has_does_not_stop_the_sharing_of_the_others(
    make: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(shares, "UNSETTLED_PAUSE_MS", 10)

    async def scenario() -> None:
        async with cluster() as c:
            (broker,) = c.brokers
            c.create("orders", 4)
            consumer = make(c.nameserver.address)
            for topic in ("nowhere", "orders"):
                await consumer.subscribe(topic)
            async with consumer:
                port = int(c.nameserver.address.rpartition(":")[2])
                await c.nameserver.stop()
                await consumer.subscribe("later")
                for members, count in ((["0-another"], 2), ([], 4)):
                    broker.members = [*members, consumer._instance.client_id]
                    broker.notify_members("g")
                    await _shared(broker, consumer, count)
                c.create("later", 1)
                await c.nameserver.start(port)
                await wait_for(lambda: len(consumer.queues) == 5, "those of the topic that is there now")

    asyncio.run(scenario())
    said = [one.getMessage() for one in caplog.records if "nothing to consume yet" in one.getMessage()]
    assert len(said) == 2
    assert "'nowhere'" in said[0]
    assert "no name server answers" in said[1]
    assert "sharing the queues" not in caplog.text


def test_the_first_send_to_a_topic_waits_for_a_name_server(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(routes, "WAIT_MS", PATIENCE_MS)

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address, timeout_ms=PATIENCE_MS) as producer:
                receipt = await _meanwhile(c, lambda: producer.send(Message("orders", b"x")), caplog)
            assert receipt.queue.topic == "orders"

    asyncio.run(scenario())


def test_what_no_waiting_mends_is_said_at_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker in its place."""
    monkeypatch.setattr(routes, "WAIT_MS", PATIENCE_MS)

    async def scenario() -> None:
        async with cluster() as c, Producer(c.brokers[0].address, timeout_ms=PATIENCE_MS) as producer:
            with pytest.raises(NoNameServer, match="it is a broker"):
                await producer.send(Message("orders", b"x"))

    asyncio.run(scenario())
    assert "waiting for" not in caplog.text
