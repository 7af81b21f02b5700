"""The life of a client: it is started once, runs until a signal, and says what its end waits for."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest

import bolide
from bolide.aio import (
    ClientNotRunning,
    ConnectionLost,
    Hooks,
    Message,
    Producer,
    PullConsumer,
    PushConsumer,
    StoredMessage,
)
from bolide.client import hub, rounds
from bolide.wire.codes import RequestCode
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until
from tests.unit.client.scripted import ScriptedBroker, cluster, wait_for
from tests.unit.client.test_blocking import running_cluster

CLIENTS: list[Any] = [
    Producer,
    PullConsumer,
    lambda address: PushConsumer(address, group="g", listener=print),
]


@pytest.mark.parametrize("make", CLIENTS, ids=["Producer", "PullConsumer", "PushConsumer"])
def test_a_client_is_started_once(make: Any) -> None:
    async def scenario() -> None:
        async with cluster() as c:
            client = make(c.nameserver.address)
            async with client:
                with pytest.raises(ClientNotRunning, match="running already"):
                    await client.start()
            with pytest.raises(ClientNotRunning, match="closed, and is not started again: make a new one"):
                await client.start()
            await client.close()  # twice is fine

    asyncio.run(scenario())


def test_of_two_starts_at_a_time_one_is_refused() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            producer = Producer(c.nameserver.address)
            outcomes = await asyncio.gather(producer.start(), producer.start(), return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [type(None), ClientNotRunning]
            await producer.close()

    asyncio.run(scenario())


def test_a_closed_client_says_that_it_is_closed() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            async with Producer(c.nameserver.address) as producer:
                await producer.send(Message("orders", b"x"))
            with pytest.raises(ClientNotRunning, match="the client is closed"):
                await producer.send(Message("orders", b"x"))
            consumer = PushConsumer(c.nameserver.address, group="g", listener=print)
            async with consumer:
                pass
            with pytest.raises(ClientNotRunning, match="the client is closed"):
                await consumer.subscribe("orders")

    asyncio.run(scenario())


@pytest.mark.parametrize("make", CLIENTS[:2], ids=["Producer", "PullConsumer"])
def test_on_another_event_loop_a_client_says_so_and_what_to_do(make: Any) -> None:
    client = make("127.0.0.1:9876")
    asyncio.run(client.start())

    async def elsewhere() -> None:
        for work in (client.queues("orders"), client.close()):
            with pytest.raises(ClientNotRunning, match=r"started on another event loop.*blocking clients"):
                await work

    asyncio.run(elsewhere())


def test_a_consumer_that_could_not_start_is_closed() -> None:
    async def scenario() -> None:
        consumer = PushConsumer("127.0.0.1:1", group="g", listener=print)
        with pytest.raises(ConnectionLost):
            await consumer.start()
        with pytest.raises(ClientNotRunning, match="make a new one"):
            await consumer.start()

    asyncio.run(scenario())


def test_a_topic_that_does_not_exist_is_said_once_and_once_more_when_it_appears(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with cluster() as c:
            consumer = PushConsumer(c.nameserver.address, group="g", listener=print)
            await consumer.subscribe("young")
            async with consumer:
                for _ in range(5):
                    await consumer._assignment.rebalance()
                assert [said for said in warnings() if "young" in said] == [
                    said for said in warnings() if "bolide topic create young" in said
                ]
                assert len(warnings()) == 1
                c.create("young", 1)
                for _ in range(5):
                    await consumer._assignment.rebalance()
                assert [said for said in warnings() if "there now" in said] == [
                    "the topic 'young' is there now, and is consumed"
                ]

    def warnings() -> list[str]:
        return [said.getMessage() for said in caplog.records if said.levelno >= logging.WARNING]

    asyncio.run(scenario())


def test_a_consumer_without_a_topic_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with cluster() as c, PushConsumer(c.nameserver.address, group="g", listener=print):
            pass

    asyncio.run(scenario())
    assert "the consumer of g has no topic yet: call subscribe(topic)" in caplog.text


def test_a_close_that_waits_says_for_what(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "SLOW_S", 0.01)

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            c.brokers[0].store("orders", 0, b"slow")
            begun, may_end = asyncio.Event(), asyncio.Event()

            async def listener(messages: list[StoredMessage]) -> None:
                begun.set()
                await may_end.wait()

            consumer = PushConsumer(
                c.nameserver.address,
                group="g",
                listener=listener,
                start_from="first",
                close_timeout_ms=60_000,
            )
            await consumer.subscribe("orders")
            await consumer.start()
            await begun.wait()
            closing = asyncio.ensure_future(consumer.close())
            await wait_for(
                lambda: "waiting for 1 calls of the listener to end, for 60 s at most" in caplog.text,
                "a line",
            )
            may_end.set()
            await closing

    asyncio.run(scenario())


async def _given_up(client: Producer, broker: ScriptedBroker) -> None:
    """Its close, while it waits for the broker's word."""
    broker.silences.add(RequestCode.UNREGISTER_CLIENT)
    closing = asyncio.ensure_future(client.close())
    await wait_for(lambda: RequestCode.UNREGISTER_CLIENT in broker.seen, "the goodbye")
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing


def test_a_close_that_is_given_up_leaves_no_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "CALL_TIMEOUT_MS", PATIENCE_MS)

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            (broker,) = c.brokers
            producer = Producer(c.nameserver.address)
            await producer.start()
            await producer.send(Message("orders", b"x"))
            await _given_up(producer, broker)
            await wait_for(lambda: not broker.links and not c.nameserver.links, "they are closed")
            await producer.close()  # twice is fine

    asyncio.run(scenario())


def test_nor_does_it_close_those_that_others_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "CALL_TIMEOUT_MS", PATIENCE_MS)

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            (broker,) = c.brokers
            seen: list[int] = []
            hooks = [Hooks(before_call=lambda event: seen.append(event.code))]
            first = Producer(c.nameserver.address, group="p", instance_name="shop", hooks=hooks)
            await first.start()
            async with Producer(c.nameserver.address, group="q", instance_name="shop") as second:
                await first.send(Message("orders", b"x"))
                await second.send(Message("orders", b"x"))
                links = set(broker.links)
                await _given_up(first, broker)
                assert seen[-1] == RequestCode.UNREGISTER_CLIENT
                await second.send(Message("orders", b"x"))
                assert broker.links == links
                assert seen[-1] == RequestCode.UNREGISTER_CLIENT, "its hooks have gone with it"
                broker.silences.clear()

    asyncio.run(scenario())


CONSUMER = """
    import asyncio, sys
    from bolide{flavour} import PushConsumer

    def handle(messages):
        print("got", messages[0].body.decode(), flush=True)

    {script}
    print("closed", flush=True)
"""
BLOCKING = """
    consumer = PushConsumer(sys.argv[1], group="g", listener=handle, start_from="first")
    consumer.subscribe("orders")
    consumer.run()
"""
ASYNCIO = """
    async def main():
        consumer = PushConsumer(sys.argv[1], group="g", listener=handle, start_from="first")
        await consumer.subscribe("orders")
        await consumer.run()

    asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("flavour", "script"), [("", BLOCKING), (".aio", ASYNCIO)], ids=["blocking", "asyncio"]
)
def test_a_consumer_runs_until_a_signal_and_ends_in_order(
    number: signal.Signals, flavour: str, script: str
) -> None:
    code = textwrap.dedent(CONSUMER).format(flavour=flavour, script=textwrap.dedent(script))
    with running_cluster() as c:
        c.brokers[0].store("orders", 0, b"x")
        command = [sys.executable, "-c", code, c.nameserver.address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "got x\n"
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, out, err) == (0, "closed\n", "")
        assert c.brokers[0].offsets["g", "orders", 0] == 1
        assert c.brokers[0].members == []


def test_signals_do_what_they_did_before_when_a_consumer_has_run() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with running_cluster() as c:
        consumer = bolide.PushConsumer(c.nameserver.address, group="g", listener=print)
        consumer.subscribe("orders")
        done = threading.Event()

        def stop() -> None:
            wait_until(lambda: consumer.queues, PATIENCE_SECONDS, "it runs")
            os.kill(os.getpid(), signal.SIGTERM)
            done.set()

        threading.Thread(target=stop, daemon=True).start()
        consumer.run()
        assert done.wait(PATIENCE_SECONDS)
    assert signal.getsignal(signal.SIGTERM) is before


def test_outside_of_the_main_thread_run_says_that_no_signal_comes_there() -> None:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            bolide.PushConsumer("127.0.0.1:1", group="g", listener=print).run()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert "main thread" in str(errors[0])
