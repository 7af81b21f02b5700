"""A client belongs to a process and an event loop, and leaves nothing there when it is closed."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bolide
from bolide.aio import ClientNotRunning, Message, Producer, PullConsumer, PushConsumer, StoredMessage
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.unit.client.scripted import cluster, wait_for
from tests.unit.client.test_blocking import running_cluster


def test_a_client_on_another_loop_than_its_own_says_so() -> None:
    with EmbeddedServer() as server:
        loop = asyncio.new_event_loop()
        producer = Producer(server.nameserver)
        reader = PullConsumer(server.nameserver)
        consumer = PushConsumer(server.nameserver, group="g", listener=print)
        for client in (producer, reader, consumer):
            loop.run_until_complete(client.start())
        loop.run_until_complete(producer.send(Message("orders", b"x")))
        calls: list[Callable[[], Awaitable[Any]]] = [
            lambda: producer.send(Message("orders", b"x")),
            lambda: producer.send_batch([Message("orders", b"x")]),
            lambda: producer.queues("orders"),
            lambda: reader.queues("orders"),
            lambda: consumer.subscribe("orders"),
            producer.close,
            reader.close,
        ]
        for call in calls:

            async def elsewhere(call: Callable[[], Awaitable[Any]] = call) -> None:
                with pytest.raises(ClientNotRunning, match=r"another event loop.*make a client on each loop"):
                    await call()

            asyncio.run(elsewhere())
        loop.run_until_complete(producer.send(Message("orders", b"still there")))
        for client in (producer, reader, consumer):
            loop.run_until_complete(client.close())
        loop.close()


def test_an_asyncio_client_from_before_a_fork_says_so() -> None:
    code = """
import asyncio, os, sys
from bolide.aio import ClientNotRunning, Message, Producer

async def main():
    async with Producer(sys.argv[1]) as producer:
        await producer.send(Message("orders", b"x"))
        child = os.fork()
        if child == 0:
            try:
                producer.send(Message("orders", b"x")).send(None)  # as the loop of this process would
            except ClientNotRunning as error:
                os._exit(0 if "forked" in str(error) and "make a new client" in str(error) else 1)
            os._exit(2)
        status = os.waitpid(child, 0)[1]
        await producer.send(Message("orders", b"the connection is still ours"))
        print(os.waitstatus_to_exitcode(status))

asyncio.run(main())
"""
    with EmbeddedServer() as server:
        command = [sys.executable, "-W", "ignore", "-c", code, server.nameserver]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "0", run.stderr


# ---- what is left after a close ----------------------------------------------------------------------------------


def descriptors() -> set[str]:
    """What this process has open, by what it is: sockets have numbers of their own."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.add(f"{entry.name} {os.readlink(entry)}")
        except OSError:  # the one that lists the others
            continue
    return found


def _set(event: threading.Event, messages: list[StoredMessage]) -> None:
    event.set()


def threads() -> set[str]:
    """But those that a loop looks names up in, of which a busy machine has more."""
    return {thread.name for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}


@pytest.mark.parametrize("options", [{}, {"instance_name": "shop"}], ids=["alone", "shared"])
def test_after_a_close_there_is_no_task_timer_thread_socket_or_file_left(options: dict[str, Any]) -> None:
    with running_cluster() as c:

        def links() -> int:
            return len(c.nameserver.links) + len(c.brokers[0].links)

        async def scenario() -> None:
            loop = asyncio.get_running_loop()
            await loop.getaddrinfo("127.0.0.1", 1)  # the loop has a thread of its own for that
            gc.collect()  # of what other tests have left
            tasks, before, open_before = asyncio.all_tasks(), threads(), descriptors()
            got: list[bytes] = []

            def listener(messages: list[StoredMessage]) -> None:
                got.extend(one.body for one in messages)

            address = c.nameserver.address
            consumer = PushConsumer(address, group="g", listener=listener, start_from="first", **options)
            await consumer.subscribe("orders")
            producer, reader = Producer(address, **options), PullConsumer(address, **options)
            async with consumer, producer, reader:
                for _ in range(4):
                    await producer.send(Message("orders", bytes(range(256)) * 1000))  # packed in a thread
                await wait_for(lambda: len(got) == 4, "all messages")
                for queue in await reader.queues("orders"):
                    await reader.max_offset(queue)
                assert asyncio.all_tasks() > tasks
                assert threads() > before
                assert links() == (2 if options else 6)
            assert asyncio.all_tasks() == tasks
            timers = [one for one in loop._scheduled if not one.cancelled()]  # type: ignore[attr-defined]
            assert timers == []
            await wait_for(lambda: links() == 0, "the other ends are closed")
            await wait_for(lambda: threads() <= before, "the threads have ended")
            gc.collect()
            assert descriptors() <= open_before

        asyncio.run(scenario())


def test_blocking_clients_leave_the_one_loop_that_they_share_and_nothing_else() -> None:
    with running_cluster() as c:
        address = c.nameserver.address
        with bolide.Producer(address) as producer:  # the loop, and what it has for itself
            producer.send(Message("orders", b"first"))
        wait_until(lambda: not c.nameserver.links and not c.brokers[0].links, 10, "the other ends are closed")
        gc.collect()
        names, before = threads(), len(descriptors())
        for _ in range(3):
            seen = threading.Event()
            consumer = bolide.PushConsumer(
                address, group="g", listener=partial(_set, seen), start_from="first"
            )
            consumer.subscribe("orders")
            with consumer, bolide.Producer(address) as producer:
                producer.send(Message("orders", b"x"))
                assert seen.wait(PATIENCE_SECONDS)
        wait_until(lambda: threads() <= names, 10, lambda: f"{threads() - names} are left")
        wait_until(lambda: len(descriptors()) <= before, 10, "descriptors are left")


def test_a_client_whose_start_fails_or_is_closed_meanwhile_leaves_nothing() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            before = asyncio.all_tasks()
            producer = Producer(c.nameserver.address)
            starting = asyncio.ensure_future(producer.start())
            await asyncio.wait([starting], timeout=0)
            await producer.close()
            with pytest.raises(ClientNotRunning, match="closed"):
                await starting
            assert asyncio.all_tasks() == before

    asyncio.run(scenario())
