"""Credentials: every request is signed, whoever it goes to and whether anybody waits for its answer."""

import asyncio
import logging
from typing import Any

import pytest

from bolide.aio import ConfigError, Credentials, Message, Producer, PullConsumer, PushConsumer
from bolide.net.link import Link
from bolide.wire.codes import RequestCode
from bolide.wire.command import ACCESS_KEY, SIGNATURE, Command
from bolide.wire.signature import signature
from tests.unit.client.scripted import Cluster, cluster, wait_for

ALICE = Credentials("alice", "very secret", "a token")


def watched(c: Cluster) -> list[Command]:
    """All requests that the servers of the cluster get from now on."""
    seen: list[Command] = []
    for node in (c.nameserver, *c.brokers):

        def on_request(link: Link, request: Command, pass_on: Any = node.on_request) -> None:
            seen.append(request)
            pass_on(link, request)

        node.on_request = on_request  # type: ignore[method-assign]
    return seen


def test_every_request_is_signed_heartbeats_and_one_way_ones_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            seen = watched(c)
            address = c.nameserver.address
            consumer = PushConsumer(address, group="g", listener=lambda _: None, credentials=ALICE)
            await consumer.subscribe("orders")
            async with Producer(address, credentials=ALICE) as producer, consumer:
                await producer.send(Message("orders", b"x"))
                await producer.send_oneway(Message("orders", b"x"))
                await wait_for(lambda: len(c.brokers[0].bodies) == 2, "both messages")
            codes = {request.code for request in seen}
            assert codes > {
                RequestCode.GET_ROUTEINFO_BY_TOPIC,
                RequestCode.HEART_BEAT,
                RequestCode.SEND_MESSAGE_V2,
                RequestCode.UNREGISTER_CLIENT,
                RequestCode.UPDATE_CONSUMER_OFFSET,
            }
            for request in seen:
                assert request.fields[ACCESS_KEY] == "alice"
                assert request.fields[SIGNATURE] == signature(request, "very secret"), request.code

    asyncio.run(scenario())
    assert "very secret" not in caplog.text
    assert "a token" not in caplog.text


def test_without_credentials_nothing_is_signed() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            seen = watched(c)
            async with Producer(c.nameserver.address) as producer:
                await producer.send(Message("orders", b"x"))
            assert not any(ACCESS_KEY in request.fields or SIGNATURE in request.fields for request in seen)

    asyncio.run(scenario())


def test_secrets_are_in_no_repr_and_no_error() -> None:
    assert repr(ALICE) == "Credentials(access_key='alice')"
    for wrong in (("alice", ""), ("", "very secret"), ("alice", b"very secret"), ("alice", "very secret", 5)):
        with pytest.raises(ConfigError) as raised:
            Credentials(*wrong)
        assert "very secret" not in str(raised.value)
    with pytest.raises(ConfigError) as raised:
        Producer("127.0.0.1:9876", credentials=("alice", "very secret"))  # type: ignore[arg-type]
    assert "very secret" not in str(raised.value)


def test_clients_that_share_connections_are_the_same_account() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            address = c.nameserver.address
            async with (
                Producer(address, instance_name="shop", credentials=ALICE),
                PullConsumer(
                    address,
                    instance_name="shop",
                    credentials=Credentials(*("alice", "very secret", "a token")),
                ),
            ):
                with pytest.raises(ConfigError, match="same credentials"):
                    await PullConsumer(address, instance_name="shop").start()

    asyncio.run(scenario())
