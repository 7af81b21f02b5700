"""`send_soon` while a request of the topic is under way: what waits for it, and for how long."""

import asyncio
from functools import partial
from typing import Any

import pytest

from bolide.aio import Message, Producer
from bolide.client import soon as soon_module
from tests.unit.client.scripted import cluster, wait_for

LONG_MS = 60_000


@pytest.mark.parametrize("avoids", [False, True])
def test_a_broker_that_is_silent_holds_up_one_batch_and_the_others_go_elsewhere(
    monkeypatch: pytest.MonkeyPatch, avoids: bool
) -> None:
    monkeypatch.setattr(soon_module, "HELD_UP_MS", 20)

    async def scenario() -> None:
        async with cluster(2) as c:
            c.create("orders", 4)
            silent, well = c.brokers
            silent.silent = True
            async with Producer(
                c.nameserver.address, timeout_ms=LONG_MS, linger_ms=1, avoid_slow_brokers=avoids
            ) as producer:
                futures: list[Any] = []

                def has_gone(swallowed: int) -> bool:
                    """Answered, or the first that nobody answers."""
                    return futures[-1].done() or (not swallowed and bool(silent.sends))

                for number in range(30):
                    swallowed = len(silent.sends)
                    futures.append(await producer.send_soon(Message("orders", b"%d" % number)))
                    await wait_for(partial(has_gone, swallowed), f"message {number} waits for no other")
                assert [future.done() for future in futures].count(False) == len(silent.sends) == 1
                for link in list(silent.links):  # at last the system tells
                    link.abort()
                await producer.flush()
                assert {(await future).queue.broker_name for future in futures} == {well.name}

    asyncio.run(scenario())


def test_messages_that_come_while_a_request_is_under_way_go_together_when_it_has_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As long as it takes no longer than most."""
    monkeypatch.setattr(soon_module, "HELD_UP_MS", LONG_MS)

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 4)
            (broker,) = c.brokers
            async with Producer(c.nameserver.address, timeout_ms=LONG_MS, linger_ms=0) as producer:
                await (await producer.send_soon(Message("orders", b"known")))
                real, goes_on, waiting = producer.sending.acknowledged, asyncio.Event(), asyncio.Event()

                async def held(outgoing: Any, **given: Any) -> Any:
                    waiting.set()
                    await goes_on.wait()
                    return await real(outgoing, **given)

                monkeypatch.setattr(producer.sending, "acknowledged", held)
                await producer.send_soon(Message("orders", b"first"))
                await waiting.wait()
                before = len(broker.sends)
                (way,) = producer.soon._ways.values()
                for _ in range(10):
                    await producer.send_soon(Message("orders", b"next"))
                late_s = asyncio.get_running_loop().time() + LONG_MS / 2000
                await wait_for(lambda: way.timer and way.timer.when() > late_s, "they have waited their time")
                assert len(way.sending) == 1
                goes_on.set()
                await producer.flush()
                assert len(broker.sends) == before + 2
                alone = await producer.send_soon(Message("orders", b"last"))
                await wait_for(alone.done, "what comes when nothing is under way waits for nothing")

    asyncio.run(scenario())
