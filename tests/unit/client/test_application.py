"""What functions of the application raise is an outcome of their call, and never the end of anything else."""

import asyncio
import concurrent.futures
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import bolide
from bolide.aio import Hooks, Message, MessageQueue, Producer, StoredMessage, Transaction, TransactionProducer
from bolide.client import orderly as orderly_module
from bolide.client.application import Calls
from bolide.client.loop_thread import LoopThread, _new_loop
from bolide.model.errors import ClientError
from bolide.net.surroundings import Surroundings
from bolide.wire.codes import RequestCode
from tests.peers.waiting import wait_until
from tests.unit.client.consuming import consumer_of, on_cluster
from tests.unit.client.scripted import Cluster, wait_for
from tests.unit.client.test_blocking import running_cluster
from tests.unit.client.test_transactions import check_of


class TimeLimit(BaseException):
    """As some libraries have them."""


ENDS = [
    *(SystemExit, KeyboardInterrupt, GeneratorExit, TimeLimit),
    *(StopIteration, asyncio.CancelledError, concurrent.futures.CancelledError),
]


def raising(kind: type[BaseException]) -> Callable[..., Any]:
    def function(*_: object) -> Any:
        raise kind("as the test wants it")

    return function


@pytest.mark.parametrize("kind", ENDS)
def test_a_message_whose_listener_ends_with_anything_goes_back_and_those_behind_it_come(
    kind: type[BaseException],
) -> None:
    async def scenario(c: Cluster) -> None:
        broker, got = c.brokers[0], list[bytes]()
        for number in range(5):
            broker.store("orders", 0, b"%d" % number)

        def listener(messages: list[StoredMessage]) -> None:
            if messages[0].body == b"1":
                raise kind("as the test wants it")
            got.append(messages[0].body)

        async with await consumer_of(c, listener, start_from="first"):
            await wait_for(lambda: len(got) == 4 and broker.sent_back, "all but one, and that one goes back")
        assert (len(broker.sent_back), broker.offsets["g", "orders", 0]) == (1, 5)

    on_cluster(scenario)


@pytest.mark.parametrize("kind", ENDS)
def test_an_orderly_queue_whose_listener_ends_with_anything_goes_on_with_the_same_message(
    kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orderly_module, "SUSPEND_MS", 10)

    async def scenario(c: Cluster) -> None:
        broker, got = c.brokers[0], list[bytes]()
        for number in range(3):
            broker.store("orders", 0, b"%d" % number)

        def listener(messages: list[StoredMessage]) -> None:
            got.append(messages[0].body)
            if got == [b"0", b"1"]:
                raise kind("as the test wants it")

        async with await consumer_of(c, listener, orderly=True, start_from="first"):
            await wait_for(lambda: len(got) == 4, "all")
        assert got == [b"0", b"1", b"1", b"2"]

    on_cluster(scenario)


@pytest.mark.parametrize("kind", [TimeLimit, asyncio.CancelledError])
def test_so_it_is_with_a_listener_that_is_a_coroutine(kind: type[BaseException]) -> None:
    async def scenario(c: Cluster) -> None:
        broker = c.brokers[0]
        broker.store("orders", 0, b"x")

        async def listener(messages: list[StoredMessage]) -> None:
            raise kind("as the test wants it")

        async with await consumer_of(c, listener, start_from="first"):
            await wait_for(lambda: broker.sent_back, "it goes back")

    on_cluster(scenario)


def test_a_coroutine_ends_the_program_that_runs_its_loop_if_it_says_so() -> None:
    async def listener(messages: list[StoredMessage]) -> None:
        sys.exit("enough")

    async def scenario(c: Cluster) -> None:
        c.brokers[0].store("orders", 0, b"x")
        async with await consumer_of(c, listener, start_from="first"):
            await wait_for(lambda: False, "the end")

    with pytest.raises(SystemExit, match="enough"):
        on_cluster(scenario)


def test_the_loop_that_all_blocking_clients_share_does_not_end_with_a_listener() -> None:
    ends = ["exit", "own task", "stop"]
    seen: list[str] = []

    async def listener(messages: list[StoredMessage]) -> None:
        seen.append(how := messages[0].body.decode())
        if how == "stop":
            asyncio.get_running_loop().stop()
        elif how == "own task":
            await asyncio.create_task(leaves())
        else:
            await leaves()

    async def leaves() -> None:
        sys.exit(1)

    with running_cluster() as c, bolide.Producer(c.nameserver.address) as producer:
        consumer = bolide.PushConsumer(c.nameserver.address, group="g", listener=listener, start_from="first")
        consumer.subscribe("orders")
        with consumer:
            for how in ends:
                producer.send(Message("orders", how.encode()))
                wait_until(lambda how=how: how in seen, 10, lambda: f"only {seen}")  # type: ignore[misc]
            wait_until(lambda: len(c.brokers[0].sent_back) == 2, 10, lambda: f"{c.brokers[0].sent_back}")
            producer.send(Message("orders", b"more"))


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, _new_loop], ids=["asyncio", "chosen"])
def test_what_ends_a_call_on_the_shared_loop_is_raised_where_it_was_made(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    thread = LoopThread(new_loop)

    async def leaves() -> None:
        sys.exit(3)

    async def answer() -> int:
        return 42

    for _ in range(3):
        with pytest.raises(SystemExit, match="3"):
            thread.run(leaves())
        assert thread.run(answer()) == 42


@pytest.mark.parametrize("kind", ENDS)
def test_a_check_that_ends_with_anything_does_not_know(kind: type[BaseException]) -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        producer = TransactionProducer(
            c.nameserver.address, group="tg", check=raising(kind), topics=["orders"]
        )
        async with producer:
            await wait_for(lambda: broker.heartbeats, "the broker knows it")
            (link,) = broker.links
            link.notify(check_of(1, 1, group="tg"))
            await wait_for(lambda: broker.ends, "an answer")
        end, remark = broker.ends[0]
        assert (end.commit_or_rollback, kind.__name__ in (remark or "")) == (0, True)

    on_cluster(scenario)


def test_hooks_and_strategies_that_want_to_end_the_program_fail_like_others() -> None:
    leave = raising(SystemExit)
    gave_up = threading.Event()

    def strategy(queues: Sequence[MessageQueue], members: Sequence[str], me: str) -> Sequence[MessageQueue]:
        if not gave_up.is_set():
            gave_up.set()
            sys.exit(1)
        return queues

    async def scenario(c: Cluster) -> None:
        got: list[bytes] = []
        hooks = [Hooks(leave, leave, leave, leave, leave, leave, keep_message=leave)]
        async with (
            Producer(c.nameserver.address, hooks=hooks) as producer,
            await consumer_of(
                c,
                lambda messages: got.extend(one.body for one in messages),
                start_from="first",
                strategy=strategy,
                hooks=hooks,
            ),
        ):
            await producer.send(Message("orders", b"x"))
            await wait_for(lambda: got == [b"x"], "the message")
        assert RequestCode.CONSUMER_SEND_MSG_BACK not in c.brokers[0].seen

    on_cluster(scenario)


@pytest.mark.parametrize("kind", ENDS)
def test_a_call_in_a_thread_ends_with_an_error_that_names_what_was_raised(kind: type[BaseException]) -> None:
    async def scenario() -> None:
        calls = Calls(Surroundings(), "test", 1)
        with pytest.raises(ClientError, match=kind.__name__) as caught:
            await calls.call(raising(kind))
        assert isinstance(caught.value.__cause__, kind)
        assert await calls.call(lambda: Transaction.COMMIT) is Transaction.COMMIT
        calls.close()

    asyncio.run(scenario())
