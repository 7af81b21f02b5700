"""Traces of messages: told in the background, bounded, and never a reason for a send to fail."""

import asyncio
import logging

import pytest

from bolide.aio import Message, Producer, SendReceipt, Transaction, TransactionProducer
from bolide.client import tracing
from bolide.model.pairs import parse_properties
from bolide.wire.codes import ResponseCode
from tests.unit.client.scripted import Cluster, cluster

TRACES = "RMQ_SYS_TRACE_TOPIC"


def told(c: Cluster) -> list[tuple[list[str], list[list[str]]]]:
    """The keys of each trace message, and the fields of its traces."""
    return [
        (
            parse_properties(header.properties)["KEYS"].split(),
            [trace.split("\x01") for trace in body.decode().split("\x02")[:-1]],
        )
        for broker in c.brokers
        for header, body in zip(broker.sends, broker.bodies, strict=True)
        if header.topic == TRACES
    ]


def test_the_trace_of_a_message_has_the_fields_of_the_original() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            c.create(TRACES, 1)
            async with Producer(c.nameserver.address, group="shop", trace=True) as producer:
                first = await producer.send(Message("orders", b"hello", tags="paid", keys=["1", "2"]))
                second = await producer.send(Message("orders", b"x", delay_level=3))
                batch = await producer.send_batch(
                    [Message("orders", b"ab", keys=["k"]), Message("orders", b"c")]
                )
            ((keys, traces),) = told(c)
            assert keys == [
                *(first.message_id, "1", "2", second.message_id),
                *(batch[0].message_id, "k", batch[1].message_id),
            ]
            (
                name,
                at,
                region,
                group,
                topic,
                message_id,
                tags,
                words,
                host,
                size,
                took,
                kind,
                offset_id,
                ok,
            ) = traces[0]
            assert (name, region, group, topic, ok) == ("Pub", "DefaultRegion", "shop", "orders", "true")
            assert (message_id, offset_id) == (first.message_id, first.offset_message_id)
            assert (tags, words, host, size, kind) == ("paid", "1 2", c.brokers[0].address, "5", "0")
            assert int(at) > 0
            assert int(took) >= 0
            assert [trace[11] for trace in traces] == ["0", "3", "0", "0"]
            assert [trace[9] for trace in traces[2:]] == ["2", "1"]
            sent = [header for header in c.brokers[0].sends if header.topic == TRACES]
            assert sent[0].producer_group == "_INNER_TRACE_PRODUCER-shop"

    asyncio.run(scenario())


def test_a_half_message_is_told_as_one() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            c.create(TRACES, 1)
            async with TransactionProducer(
                c.nameserver.address, group="g", check=lambda message: Transaction.COMMIT, trace=True
            ) as producer:
                await producer.send_in_transaction(
                    Message("orders", b"x"), lambda message: Transaction.COMMIT
                )
            ((_, traces),) = told(c)
            assert [trace[11] for trace in traces] == ["1"]

    asyncio.run(scenario())


def test_many_traces_share_messages_and_too_many_are_dropped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tracing, "TRACES_WAITING_MAX", 250)

    async def scenario() -> list[SendReceipt]:
        async with cluster() as c:
            c.create("orders", 1)
            c.create(TRACES, 1)
            async with Producer(c.nameserver.address, trace=True) as producer:
                receipts = await producer.send_many(Message("orders", b"x") for _ in range(400))
            assert [len(traces) for _, traces in told(c)] == [100, 100, 50]
            return receipts

    with caplog.at_level(logging.WARNING, "bolide"):
        assert len(asyncio.run(scenario())) == 400
    assert "traces of messages are dropped" in caplog.text


def test_traces_that_nobody_takes_fail_no_send(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address, trace=True) as producer:
                await producer.send(Message("orders", b"there is no topic for traces"))
            c.create(TRACES, 1)
            async with Producer(c.nameserver.address, trace=True) as producer:
                await producer.send(Message("orders", b"x"))
                c.brokers[0].answers = [ResponseCode.SYSTEM_ERROR] * 9
            assert len(c.brokers[0].queues["orders", 0]) == 2

    with caplog.at_level(logging.WARNING, "bolide"):
        asyncio.run(scenario())
    assert "traces of messages are dropped" in caplog.text
