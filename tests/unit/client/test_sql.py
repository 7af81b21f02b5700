"""Python consumers that choose messages by an SQL expression over their properties."""

import asyncio
import threading

import pytest

import bolide.aio
from bolide import (
    Message,
    Producer,
    PullConsumer,
    PullStatus,
    PushConsumer,
    StoredMessage,
    SubscriptionMalformed,
)
from bolide.testing import EmbeddedServer

CHEAP = "price < 10 AND colour IS NOT NULL"


def _fill(server: EmbeddedServer, topic: str) -> None:
    with Producer(server.nameserver) as producer:
        for price in range(20):
            properties = {"price": str(price)} | ({"colour": "red"} if price % 2 else {})
            producer.send(Message(topic, b"%d" % price, properties=properties))


def test_a_push_consumer_gets_what_its_expression_wants(bolide_module_server: EmbeddedServer) -> None:
    """FI-03"""
    server = bolide_module_server
    _fill(server, "sql-push")
    seen: list[bytes] = []
    done = threading.Event()

    def handle(messages: list[StoredMessage]) -> None:
        seen.extend(message.body for message in messages)
        if len(seen) >= 5:
            done.set()

    consumer = PushConsumer(server.nameserver, group="sql-readers", listener=handle, start_from="first")
    consumer.subscribe("sql-push", sql=CHEAP)
    with consumer:
        assert done.wait(30)
    assert sorted(seen) == [b"1", b"3", b"5", b"7", b"9"]


def test_on_asyncio_an_expression_may_replace_another(bolide_module_server: EmbeddedServer) -> None:
    server = bolide_module_server
    _fill(server, "sql-aio")
    seen: list[bytes] = []

    async def run() -> None:
        done = asyncio.Event()

        async def handle(messages: list[StoredMessage]) -> None:
            seen.extend(message.body for message in messages)
            if len(seen) >= 2:
                done.set()

        consumer = bolide.aio.PushConsumer(
            server.nameserver, group="sql-aio-readers", listener=handle, start_from="first"
        )
        await consumer.subscribe("sql-aio", tags="none")
        await consumer.subscribe("sql-aio", sql="price >= 18")
        async with consumer, asyncio.timeout(30):
            await done.wait()

    asyncio.run(run())
    assert sorted(seen) == [b"18", b"19"]


def test_a_pull_gets_what_its_expression_wants(bolide_module_server: EmbeddedServer) -> None:
    server = bolide_module_server
    _fill(server, "sql-pull")
    found: list[bytes] = []
    with PullConsumer(server.nameserver) as reader:
        for queue in reader.queues("sql-pull"):
            offset = 0
            while (result := reader.pull(queue, offset, sql=CHEAP)).status is not PullStatus.NO_NEW_MESSAGE:
                found += [message.body for message in result.messages]
                offset = result.next_offset
    assert sorted(found) == [b"1", b"3", b"5", b"7", b"9"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sql": "price >"}, "at character"),
        ({"sql": "price > 'a' OR"}, "at character"),
        ({"sql": ""}, "sql is an expression over properties, as in"),
        ({"sql": 7}, "sql is a text, as in"),
        ({"sql": "price > 3", "tags": "paid"}, "tags or sql, not both"),
        ({"tags": "price > 3"}, "give it as sql"),
    ],
)
def test_what_is_no_expression_is_refused_where_it_is_given(
    bolide_module_server: EmbeddedServer, given: dict[str, str], said: str
) -> None:
    consumer = PushConsumer(
        bolide_module_server.nameserver, group="sql-wrong", listener=lambda messages: None
    )
    with pytest.raises(SubscriptionMalformed) as raised:
        consumer.subscribe("sql-push", **given)
    assert said in str(raised.value)
