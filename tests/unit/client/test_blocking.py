"""The blocking shell: the same clients from plain code, any thread, any process."""

import asyncio
import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import bolide
import bolide.aio
from bolide import Message, Producer, PullConsumer, PushConsumer, RouteNotFound, StoredMessage
from bolide.client import loop_thread
from bolide.client.loop_thread import LoopThread
from bolide.model import errors
from bolide.model.errors import ClientNotRunning
from tests.peers.waiting import wait_until
from tests.unit.client.scripted import Cluster, cluster

CLIENTS = ["LitePullConsumer", "Producer", "PullConsumer", "PushConsumer"]


@contextmanager
def running_cluster(brokers: int = 1) -> Iterator[Cluster]:
    """A scripted cluster on an event loop of its own thread."""
    thread = LoopThread(asyncio.new_event_loop)
    context = cluster(brokers)
    made = thread.run(context.__aenter__())
    made.create("orders", 2)
    made.create("%RETRY%g", 1)
    try:
        yield made
    finally:
        thread.run(context.__aexit__(None, None, None))


def test_send_consume_and_pull_from_plain_code() -> None:
    with running_cluster() as c:
        got: list[bytes] = []
        threads: set[str] = set()

        def handle(messages: list[StoredMessage]) -> None:
            threads.add(threading.current_thread().name)
            got.extend(message.body for message in messages)

        consumer = PushConsumer(c.nameserver.address, group="g", listener=handle, start_from="first")
        consumer.subscribe("orders")
        with Producer(c.nameserver.address) as producer, consumer:
            receipt = producer.send(Message("orders", b"one"))
            producer.send_batch([Message("orders", b"two"), Message("orders", b"three")])
            producer.send_oneway(Message("orders", b"four"))
            wait_until(lambda: len(got) == 4, 10, lambda: f"only {got}")
            assert len(producer.queues("orders")) == 2
            assert len(consumer.queues) == 3
        assert sorted(got) == [b"four", b"one", b"three", b"two"]
        assert all(name.startswith("bolide-listener") for name in threads)
        with PullConsumer(c.nameserver.address, group="g") as reader:
            (message,) = reader.pull(receipt.queue, receipt.queue_offset, 1).messages
            assert message.message_id == receipt.message_id
            ends = [int(reader.max_offset(queue)) for queue in reader.queues("orders")]
            assert [reader.committed_offset(queue) for queue in reader.queues("orders")] == ends


def test_errors_arrive_in_the_calling_thread() -> None:
    with running_cluster() as c, Producer(c.nameserver.address) as producer, pytest.raises(RouteNotFound):
        producer.send(Message("nowhere", b"x"))


def test_a_listener_may_use_a_blocking_producer() -> None:
    with running_cluster() as c, Producer(c.nameserver.address) as producer:
        c.create("copies", 1)
        copied = threading.Event()

        def handle(messages: list[StoredMessage]) -> None:
            for message in messages:
                producer.send(Message("copies", message.body))
            copied.set()

        consumer = PushConsumer(c.nameserver.address, group="g", listener=handle, start_from="first")
        consumer.subscribe("orders")
        with consumer:
            producer.send(Message("orders", b"x"))
            assert copied.wait(10)
        assert len(c.brokers[0].queues["copies", 0]) == 1


def test_a_call_on_the_clients_own_loop_is_refused_instead_of_waiting_for_itself() -> None:
    loop = LoopThread(asyncio.new_event_loop)

    async def nothing() -> None:
        pass

    async def inside() -> None:
        loop.run(nothing())

    with pytest.raises(ClientNotRunning, match=r"callback of send_soon.*bolide\.aio"):
        loop.run(inside())


def test_a_forked_process_gets_a_loop_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    first = loop_thread.shared_loop()
    assert loop_thread.shared_loop() is first
    monkeypatch.setattr(first, "pid", os.getpid() + 1)
    second = loop_thread.shared_loop()
    assert second is not first

    async def answer() -> int:
        return 42

    assert second.run(answer()) == 42


def test_a_client_from_before_a_fork_says_so_instead_of_waiting_for_ever() -> None:
    code = """
import os, signal
from bolide import Message, Producer
signal.alarm(30)
producer = Producer("127.0.0.1:1")
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        producer.send(Message("orders", b"x"))
    except Exception as error:
        os._exit(0 if "fork" in str(error) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "0", run.stderr


def test_a_future_from_before_a_fork_says_so_and_one_that_is_done_has_its_receipt() -> None:
    code = """
import os, signal, sys
from bolide import ClientNotRunning, Message, Producer
signal.alarm(30)
with Producer(sys.argv[1], linger_ms=1000) as producer:
    done = producer.send_soon(Message("orders", b"x"))
    receipt = done.result()
    waits = producer.send_soon(Message("orders", b"y"))
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        assert done.result() == receipt
        try:
            waits.result()
        except ClientNotRunning as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(2)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), waits.result().queue_offset >= 0)
"""
    with running_cluster() as c:
        command = [sys.executable, "-c", code, c.nameserver.address]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.stdout.strip() == "0 True", run.stderr


@pytest.mark.parametrize("name", CLIENTS)
def test_both_shells_offer_the_same_methods_with_the_same_arguments(name: str) -> None:
    plain, awaitable = getattr(bolide, name), getattr(bolide.aio, name)
    assert _methods(plain) == _methods(awaitable)


def _methods(kind: type[Any]) -> dict[str, list[str]]:
    found = inspect.getmembers(kind, inspect.isfunction)
    public = {name: list(inspect.signature(f).parameters) for name, f in found if not name.startswith("_")}
    arguments = inspect.signature(kind).parameters
    return public | {"arguments": [name for name in arguments if name != "surroundings"]}


def test_importing_the_package_loads_no_client() -> None:
    code = "import bolide, sys; print(sorted(n for n in sys.modules if n.startswith(('bolide', 'asyncio'))))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['bolide']"


def test_every_public_name_exists_and_a_wrong_one_is_an_attribute_error() -> None:
    for name in bolide.__all__:
        assert getattr(bolide, name) is not None
    assert set(bolide.__all__) <= set(dir(bolide))
    assert set(bolide.aio.__all__) == set(bolide.__all__)
    stub = Path(bolide.__file__).with_suffix(".pyi").read_text()
    assert sorted(re.findall(r"import \w+ as (\w+)", stub)) == sorted(bolide.__all__)
    with pytest.raises(AttributeError, match="Producr"):
        _ = bolide.Producr  # type: ignore[attr-defined]


def test_the_version_is_the_one_that_is_installed() -> None:
    assert bolide.__version__ == importlib.metadata.version("bolide")
    assert "__version__" in dir(bolide)


def test_every_error_that_a_client_raises_can_be_imported_from_the_package() -> None:
    """Goal: nobody digs in `bolide.model.errors`.  Method: look for what the rooms below a client raise by name."""
    raised = {
        name
        for room in ("client", "record", "rules")
        for path in (Path(bolide.__file__).parent / room).glob("*.py")
        for name in re.findall(r"raise (\w+)\(", path.read_text())
        if isinstance(getattr(errors, name, None), type)
    }
    raised -= {"RecordTooLarge", "TopicNotFound"}  # the store's and the broker's
    assert raised <= set(bolide.__all__)
    assert "SubscriptionMalformed" in raised


@pytest.mark.parametrize("package", [bolide, bolide.aio], ids=["blocking", "asyncio"])
@pytest.mark.parametrize(
    "name",
    [
        *(*CLIENTS, "Message", "DedupWindow"),
        *("ConfigStrategy", "ConsistentHashStrategy", "MachineRoomNearbyStrategy", "MachineRoomStrategy"),
    ],
)
def test_everything_public_is_explained_with_all_its_arguments(package: Any, name: str) -> None:
    kind = getattr(package, name)
    unexplained = [one for one in inspect.signature(kind).parameters if f"        {one}:" not in kind.__doc__]
    assert [one for one in unexplained if one != "surroundings"] == []
    for method, function in inspect.getmembers(
        kind, lambda one: inspect.isfunction(one) or isinstance(one, property)
    ):
        if method.startswith("_"):
            continue
        assert function.__doc__, f"{name}.{method} has no docstring"
        parameters = (
            [] if isinstance(function, property) else list(inspect.signature(function).parameters)[1:]
        )
        if len(parameters) > 1:
            assert [one for one in parameters if one not in function.__doc__] == [], f"{name}.{method}"


@pytest.mark.parametrize("name", CLIENTS)
def test_both_shells_explain_their_methods_in_the_same_words(name: str) -> None:
    plain, awaitable = getattr(bolide, name), getattr(bolide.aio, name)
    for method in _methods(plain).keys() - {"arguments"}:
        said = str(getattr(awaitable, method).__doc__).replace("async with", "with").replace("await ", "")
        assert str(getattr(plain, method).__doc__) == said, method
