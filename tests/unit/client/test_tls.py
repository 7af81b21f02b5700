"""TLS: clients towards servers that speak it, and words for what can be wrong with it."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest
import uvloop

from bolide.aio import ConfigError, Message, NoNameServer, Producer, PullConsumer, PushConsumer, Tls
from bolide.model.errors import TlsFailed
from bolide.net.caller import Caller
from bolide.net.clock import SystemClock
from bolide.wire.command import Command
from tests.peers.certificates import Authority, Certificate
from tests.unit.client.scripted import cluster, wait_for

pytestmark = pytest.mark.needs("openssl")

LOOPBACK = "IP:127.0.0.1"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> ssl.SSLContext:
    return serving(authority.certificate("server", LOOPBACK))


def serving(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.cert, certificate.key)
    return context


async def refusal(tls: ssl.SSLContext | None, mine: Tls) -> str:
    """What a caller says who cannot connect."""
    async with cluster(tls=tls) as c:
        caller = Caller(SystemClock(), tls=mine.context())
        with pytest.raises(TlsFailed) as raised:
            await caller.call(c.nameserver.address, Command(105, {"topic": "orders"}), 5_000)
        await caller.close()
        return str(raised.value).replace(c.nameserver.address, "ADDRESS")


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_clients_send_consume_and_pull_over_tls(
    run: Any, authority: Authority, server: ssl.SSLContext
) -> None:
    async def scenario() -> None:
        async with cluster(tls=server) as c:
            c.create("orders", 2)
            got: list[bytes] = []
            address, tls = c.nameserver.address, Tls(ca_file=authority.ca)
            body = bytes(range(256)) * 4000
            consumer = PushConsumer(
                address,
                group="g",
                listener=lambda messages: got.extend(one.body for one in messages),
                start_from="first",
                tls=tls,
            )
            await consumer.subscribe("orders")
            async with consumer, Producer(address, tls=tls, pack_from_bytes=4_000_000) as producer:
                receipts = await asyncio.gather(*(producer.send(Message("orders", body)) for _ in range(10)))
                await wait_for(lambda: got == [body] * 10, "all messages")
            async with PullConsumer(address, tls=tls) as reader:
                result = await reader.pull(receipts[0].queue, 0)
                assert result.messages[0].body == body
            await wait_for(lambda: not c.brokers[0].links, "the connections are closed")

    run(scenario())


def test_a_server_without_tls_is_said_to_have_none() -> None:
    said = asyncio.run(refusal(None, Tls()))
    assert said.startswith("ADDRESS does not speak TLS (")
    assert "()" not in said
    assert said.endswith("(tls.server.mode=permissive or enforcing), or leave tls out")


def test_a_certificate_of_a_stranger_is_refused_and_the_error_says_what_to_give(
    server: ssl.SSLContext, authority: Authority, tmp_path: Path
) -> None:
    said = asyncio.run(refusal(server, Tls()))
    assert said.startswith("the certificate of ADDRESS is not trusted: ")
    assert said.endswith("as tls=Tls(ca_file=...)")
    assert "ca_file" in asyncio.run(refusal(server, Tls(ca_file=Authority(tmp_path / "other").ca)))


def test_a_certificate_for_another_address_is_refused_unless_names_do_not_matter(
    authority: Authority,
) -> None:
    other = serving(authority.certificate("other", "DNS:mq.example.com"))
    said = asyncio.run(refusal(other, Tls(ca_file=authority.ca)))
    assert "another address" in said
    assert "check_names=False" in said

    async def scenario(tls: Tls) -> None:
        async with cluster(tls=other) as c:
            c.create("orders", 1)
            async with Producer(c.nameserver.address, tls=tls) as producer:
                await producer.send(Message("orders", b"x"))

    asyncio.run(scenario(Tls(ca_file=authority.ca, check_names=False)))
    asyncio.run(scenario(Tls(verify=False)))


def test_a_server_that_demands_a_certificate_gets_ours(authority: Authority) -> None:
    context = serving(authority.certificate("strict", LOOPBACK))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.ca)
    mine = authority.certificate("mine")

    async def scenario() -> None:
        async with cluster(tls=context) as c:
            c.create("orders", 1)
            tls = Tls(ca_file=authority.ca, cert_file=mine.cert, key_file=mine.key)
            async with Producer(c.nameserver.address, tls=tls) as producer:
                await producer.send(Message("orders", b"x"))

    asyncio.run(scenario())


def test_a_client_says_why_it_cannot_reach_a_name_server(server: ssl.SSLContext) -> None:
    async def scenario() -> None:
        async with cluster(tls=server) as c, Producer(c.nameserver.address, tls=True) as producer:
            with pytest.raises(NoNameServer, match="is not trusted"):
                await producer.send(Message("orders", b"x"))

    asyncio.run(scenario())


def test_files_that_cannot_be_used_are_named_where_they_are_given(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("nothing")
    for tls, said in (
        (Tls(ca_file=tmp_path / "missing.pem"), r"missing\.pem"),
        (Tls(ca_file=broken), r"broken\.pem"),
        (Tls(cert_file=broken), r"broken\.pem"),
        (Tls(key_file=broken), "cert_file"),
        ("yes", "tls is True"),
    ):
        with pytest.raises(ConfigError, match=said):
            Producer("127.0.0.1:9876", tls=tls)  # type: ignore[arg-type]
