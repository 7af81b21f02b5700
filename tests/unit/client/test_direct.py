"""Blocking sends that the thread makes itself, over a connection of its own, and those that it leaves to the loop."""

import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from bolide import (
    CallTimeout,
    ClientNotRunning,
    ConnectionLost,
    Credentials,
    Hooks,
    Message,
    MessageIllegal,
    Producer,
    RemoteError,
    SendReceipt,
)
from bolide.client.blocking import direct
from bolide.client.hooks import SendEvent
from bolide.model.clock import Clock
from bolide.model.errors import RouteNotFound
from bolide.net.link import Link
from bolide.net.thread_link import ThreadLink
from bolide.wire.codes import RequestCode, ResponseCode
from tests.peers.waiting import wait_until
from tests.unit.client.scripted import Cluster, ScriptedBroker
from tests.unit.client.test_blocking import running_cluster

WAIT_S = 30
LONG_MS = 60_000


@contextmanager
def sending_directly(brokers: int = 1, **options: Any) -> Iterator[tuple[Cluster, Producer]]:
    """A producer that has a connection of its own to each broker."""
    with running_cluster(brokers) as c, Producer(c.nameserver.address, **options) as producer:
        _warm(producer)
        for broker in c.brokers:
            assert len(broker.links) == 2
        yield c, producer


def _warm(producer: Producer) -> None:
    for _ in range(3 * direct.SENDS_BEFORE):
        producer.send(Message("orders", b"warm"))


def _own_link(producer: Producer, broker: ScriptedBroker) -> Link:
    """The broker's end of the producer's own connection."""
    (own,) = producer._direct._links.values()
    host, port = own._socket.getsockname()
    (link,) = (link for link in broker.links if link.remote == f"{host}:{port}")
    return link


def test_who_sends_one_after_the_other_gets_receipts_that_tell_where_each_is_stored() -> None:
    with sending_directly() as (c, producer):
        sent = [producer.send(Message("orders", b"%d" % n, tags="t", keys=["k"])) for n in range(6)]
        broker = c.brokers[0]
        for receipt in sent:
            record = broker.queues["orders", receipt.queue.queue_id][receipt.queue_offset]
            assert receipt.message_id.encode() in record
        assert {receipt.queue.queue_id for receipt in sent} == {0, 1}
        assert len({receipt.message_id for receipt in sent}) == 6
        assert broker.sends[-1].properties.split("\x02")[:2] == ["TAGS\x01t", "KEYS\x01k"]
        assert len(broker.heartbeats) == 1, "it is the loop's connection on which the broker knows us"
    assert not c.brokers[0].links, "a close leaves no connection"


def test_a_broker_that_a_thread_cannot_find_is_left_to_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop may be learning another route at this very moment."""
    with sending_directly() as (_, producer):
        routes = producer._core.instance.routes
        found = routes.address
        failures = [RouteNotFound("not now")]

        def address(broker_name: str, *rest: int) -> str:
            if failures:
                raise failures.pop()
            return found(broker_name, *rest)

        monkeypatch.setattr(routes, "address", address)
        assert producer.send(Message("orders", b"x")).queue.topic == "orders"
        assert not failures


def test_a_connection_with_half_a_request_on_it_is_not_used_again() -> None:
    """A second Ctrl-C may come before anybody drops it."""
    with sending_directly() as (_, producer):
        (former,) = producer._direct._links.values()
        former.is_clean = False
        producer.send(Message("orders", b"x"))
        (link,) = producer._direct._links.values()
        assert link is not former
        assert former._socket.fileno() == -1


def test_the_connect_counts_in_the_time_of_the_send(monkeypatch: pytest.MonkeyPatch) -> None:
    with sending_directly() as (_, producer):
        producer._direct._drop_all()
        given: list[int] = []

        def connect(address: str, clock: Clock, timeout_ms: int) -> ThreadLink:
            given.append(timeout_ms)
            return ThreadLink(address, clock, timeout_ms)

        monkeypatch.setattr(direct, "ThreadLink", connect)
        producer.send(Message("orders", b"x"), timeout_ms=500)
        assert given == [500]


def test_a_close_leaves_no_connection_though_the_loop_fails_and_a_sender_does_not_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(direct, "LEAVE_S", 0.01)
    with sending_directly() as (_, producer):
        (link,) = producer._direct._links.values()
        really_close = producer._core.close

        async def close() -> None:
            await really_close()
            raise RuntimeError("as the test wants it")

        monkeypatch.setattr(producer._core, "close", close)
        producer._direct._turns.append("somebody who does not leave")
        with pytest.raises(RuntimeError, match="as the test wants it"):
            producer.close()
        assert link._socket.fileno() == -1
        monkeypatch.undo()


def test_who_sends_a_few_has_one_connection() -> None:
    with running_cluster() as c, Producer(c.nameserver.address) as producer:
        for _ in range(direct.SENDS_BEFORE):
            producer.send(Message("orders", b"x"))
        assert len(c.brokers[0].links) == 1


def _watch(_: SendEvent) -> None:
    pass


@pytest.mark.parametrize(
    "options",
    [
        {"hooks": [Hooks(after_send=_watch)]},
        {"credentials": Credentials("somebody", "12345678")},
        {"trace": True},
        {"avoid_slow_brokers": True},
        {"pack_from_bytes": 1},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_is_not_plain_goes_through_the_loop(options: dict[str, Any]) -> None:
    with running_cluster() as c, Producer(c.nameserver.address, **options) as producer:
        c.create("RMQ_SYS_TRACE_TOPIC", 1)
        _warm(producer)
        assert len(c.brokers[0].links) == 1


def test_messages_that_keep_an_order_go_through_the_loop_where_others_of_theirs_may_be() -> None:
    with running_cluster() as c, Producer(c.nameserver.address) as producer:
        (queue, _) = producer.queues("orders")
        for _ in range(2 * direct.SENDS_BEFORE):
            producer.send(Message("orders", b"x", sharding_key="one"))
            producer.send(Message("orders", b"x", properties={"__SHARDINGKEY": "one"}))
            producer.send(Message("orders", b"x"), queue=queue)
            producer.send(Message("orders", b"x"), selector=lambda queues, _: queues[0])
        assert len(c.brokers[0].links) == 1


def test_a_refusal_that_another_broker_may_not_have_is_tried_there_as_the_same_message() -> None:
    with sending_directly(brokers=2) as (c, producer):
        for broker in c.brokers:
            broker.sends.clear()
        c.brokers[0].answers = [ResponseCode.SYSTEM_BUSY]
        receipts = [producer.send(Message("orders", b"x")) for _ in range(4)]
        refused = len(c.brokers[0].sends) + len(c.brokers[1].sends) - len(receipts)
        assert (refused, c.brokers[0].answers) == (1, [])
        ids = [send.properties for broker in c.brokers for send in broker.sends]
        assert len(set(ids)) == len(receipts)


def test_without_retries_the_first_refusal_is_told() -> None:
    with sending_directly(retries=0) as (c, producer):
        c.brokers[0].answers = [ResponseCode.SYSTEM_BUSY]
        with pytest.raises(RemoteError, match="as the test wants it"):
            producer.send(Message("orders", b"x"))
        producer.send(Message("orders", b"x"))


def test_a_refusal_of_the_message_itself_is_told_at_once_and_the_connection_serves_on() -> None:
    with sending_directly() as (c, producer):
        broker = c.brokers[0]
        broker.answers = [ResponseCode.MESSAGE_ILLEGAL]
        before, links = len(broker.sends), set(broker.links)
        with pytest.raises(RemoteError, match="as the test wants it"):
            producer.send(Message("orders", b"x"))
        producer.send(Message("orders", b"x"))
        assert (len(broker.sends), broker.links) == (before + 2, links)


def test_what_is_wrong_with_a_message_is_said_before_anything_is_sent() -> None:
    with sending_directly() as (c, producer):
        before = len(c.brokers[0].sends)
        with pytest.raises(MessageIllegal, match="has no body"):
            producer.send(Message("orders", b""))
        with pytest.raises(MessageIllegal, match="a message is a Message"):
            producer.send("orders")  # type: ignore[arg-type]
        assert len(c.brokers[0].sends) == before


def test_a_broker_that_is_silent_ends_a_send_in_time_and_the_next_one_goes_over_a_new_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with sending_directly() as (c, producer):
        broker = c.brokers[0]
        monkeypatch.setattr(direct, "SOON_MS", 0)  # however long after it comes
        broker.forget_connections()  # that of the loop as well
        before = set(broker.links)
        with pytest.raises(CallTimeout, match=rf"no answer from {broker.address} within \d+ ms"):
            producer.send(Message("orders", b"x"), timeout_ms=50)
        receipt = producer.send(Message("orders", b"y"))
        assert broker.queues["orders", receipt.queue.queue_id]
        assert broker.links - before, "a new one"


def test_a_connection_that_is_lost_while_a_send_waits_is_a_try_that_failed() -> None:
    with sending_directly(timeout_ms=LONG_MS) as (c, producer):
        broker = c.brokers[0]
        own = _own_link(producer, broker)
        broker.forgotten.add(own)
        outcome = _in_thread(lambda: producer.send(Message("orders", b"x")))
        wait_until(lambda: _is_waiting(producer), WAIT_S, "no send waits")
        own._loop.call_soon_threadsafe(own.abort)
        assert isinstance(outcome(), SendReceipt)
        assert broker.bodies.count(b"x") == 1


def test_without_retries_a_lost_connection_is_told_in_the_words_of_the_loop() -> None:
    with sending_directly(timeout_ms=LONG_MS, retries=0) as (c, producer):
        broker = c.brokers[0]
        own = _own_link(producer, broker)
        broker.forgotten.add(own)
        outcome = _in_thread(lambda: producer.send(Message("orders", b"x")))
        wait_until(lambda: _is_waiting(producer), WAIT_S, "no send waits")
        own._loop.call_soon_threadsafe(own.abort)
        with pytest.raises(ConnectionLost, match=rf"^the connection to {broker.address} was lost$"):
            outcome()


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("way", ["direct", "of the loop"])
def test_a_send_that_waits_ends_with_its_producer_and_says_that_it_may_be_stored(
    way: str, retries: int
) -> None:
    """As of any request without an answer; what is sent afterwards hears that the client is closed."""
    with running_cluster() as c:
        producer = Producer(c.nameserver.address, timeout_ms=LONG_MS, retries=retries)
        producer._direct._is_off = way == "of the loop"
        producer.start()
        _warm(producer)
        c.brokers[0].silent = True
        outcome = _in_thread(lambda: producer.send(Message("orders", b"x")))
        wait_until(lambda: c.brokers[0].bodies[-1] == b"x", WAIT_S, "the message did not come")
        producer.close()
        with pytest.raises(ConnectionLost, match=rf"^the connection to {c.brokers[0].address} was lost$"):
            outcome()
        with pytest.raises(ClientNotRunning, match="the client is closed"):
            producer.send(Message("orders", b"y"))
        wait_until(lambda: not c.brokers[0].links, WAIT_S, "a connection is left")


def test_a_send_goes_through_the_loop_while_another_thread_waits_for_its_own() -> None:
    with sending_directly(timeout_ms=LONG_MS, retries=0) as (c, producer):
        own = _own_link(producer, c.brokers[0])
        c.brokers[0].forgotten.add(own)
        outcome = _in_thread(lambda: producer.send(Message("orders", b"first")))
        wait_until(lambda: _is_waiting(producer), WAIT_S, "no send waits")
        producer.send(Message("orders", b"second"))
        assert c.brokers[0].bodies[-1] == b"second"
        own._loop.call_soon_threadsafe(own.abort)
        with pytest.raises(ConnectionLost):
            outcome()


class Interrupt(Exception):
    pass


def test_an_interrupt_ends_a_send_and_the_connection_on_which_its_answer_would_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(direct, "IDLE_MS", LONG_MS)  # that is not what ends it

    def interrupt(*_: object) -> None:
        raise Interrupt

    def press() -> None:
        wait_until(lambda: len(broker.seen) > before, WAIT_S, "the message did not come")
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    with sending_directly(timeout_ms=LONG_MS) as (c, producer):
        broker = c.brokers[0]
        own = _own_link(producer, broker)
        broker.silences.add(RequestCode.SEND_MESSAGE_V2)
        before = len(broker.seen)
        usual = signal.signal(signal.SIGUSR1, interrupt)
        try:
            waiting = threading.Thread(target=press)
            waiting.start()
            with pytest.raises(Interrupt):
                producer.send(Message("orders", b"x"))
            waiting.join()
        finally:
            signal.signal(signal.SIGUSR1, usual)
        broker.silences.clear()
        wait_until(lambda: own not in broker.links, WAIT_S, "the connection is still in use")
        receipt = producer.send(Message("orders", b"y"))
        record = broker.queues["orders", receipt.queue.queue_id][receipt.queue_offset]
        assert receipt.message_id.encode() in record


@pytest.mark.parametrize("event", ["call", "c_return"])
def test_an_interrupt_at_any_moment_of_a_send_keeps_nobody_from_the_connection(event: str) -> None:
    """An interpreter looks for signals where a function of ours begins, and where one of C's has come back."""
    with sending_directly(timeout_ms=LONG_MS) as (_, producer):
        for moment in itertools.count():
            left = moment

            def interrupt(frame: FrameType, what: str, _: object) -> None:
                nonlocal left
                left -= what == event
                if left < 0:
                    sys.setprofile(None)
                    raise Interrupt

            sys.setprofile(interrupt)
            try:
                producer.send(Message("orders", b"x"))
            except Interrupt:
                continue
            finally:
                sys.setprofile(None)
                assert not producer._direct._turns, f"after an interrupt at moment {moment}"
            assert moment > 20
            return


def test_a_close_that_is_refused_ends_nothing() -> None:
    refused: list[BaseException] = []

    def close(*_: object) -> None:
        try:
            producer.close()
        except ClientNotRunning as error:
            refused.append(error)

    with sending_directly() as (_, producer):
        producer.send_soon(Message("orders", b"x"), callback=close).result(timeout_ms=LONG_MS)
        wait_until(lambda: bool(refused), WAIT_S, "nobody was refused")
        assert not producer._direct._is_off


def test_a_connection_that_nobody_uses_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct, "IDLE_MS", 100)
    with running_cluster() as c, Producer(c.nameserver.address) as producer:
        _warm(producer)
        wait_until(lambda: len(c.brokers[0].links) == 1, WAIT_S, "it is still there")
        _warm(producer)
        wait_until(lambda: len(c.brokers[0].links) == 1, WAIT_S, "the second is still there")


def test_where_no_second_connection_can_be_made_sends_go_through_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries = 0

    def refused(*_: object) -> None:
        nonlocal tries
        tries += 1
        raise ConnectionLost("no more")

    monkeypatch.setattr(direct, "ThreadLink", refused)
    with running_cluster() as c, Producer(c.nameserver.address) as producer:
        _warm(producer)
        assert tries == 1, "and it is not tried again at every send"
        assert len(c.brokers[0].bodies) == 3 * direct.SENDS_BEFORE


def test_new_queues_of_a_topic_are_used_when_the_route_tells_of_them() -> None:
    with sending_directly() as (c, producer):
        c.create("orders", 3)
        producer._core.instance.hub.routes._routes.clear()
        assert len(producer.queues("orders")) == 3
        assert {producer.send(Message("orders", b"x")).queue.queue_id for _ in range(3)} == {0, 1, 2}


def test_a_forked_process_that_closes_its_copy_disturbs_nobody() -> None:
    code = """
import os, signal, sys
from bolide import ClientNotRunning, Message, Producer
signal.alarm(60)
with Producer(sys.argv[1], retries=0) as producer:
    for _ in range(30):
        producer.send(Message("orders", b"x"))
    child = os.fork()
    if child == 0:
        try:
            producer.close()
        except ClientNotRunning:
            os._exit(0)
        os._exit(1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), producer.send(Message("orders", b"last")).status.name)
"""
    with running_cluster() as c:
        command = [sys.executable, "-c", code, c.nameserver.address]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert run.stdout.strip() == "0 SEND_OK", run.stderr
        assert c.brokers[0].bodies.count(b"last") == 1


def _is_waiting(producer: Producer) -> bool:
    return bool(producer._direct._turns)


def _in_thread(work: Callable[[], SendReceipt]) -> Callable[[], SendReceipt]:
    """Begin it; what is given waits for its outcome."""
    found: list[SendReceipt | BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def outcome() -> SendReceipt:
        thread.join(WAIT_S)
        assert found, "it has not ended"
        if isinstance(found[0], BaseException):
            raise found[0]
        return found[0]

    return outcome
