"""Transactions of Python producers: with a real broker, and with one that asks what a test wants."""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bolide
import bolide.aio
from bolide import (
    ConfigError,
    InvalidRequest,
    Message,
    MessageIllegal,
    PullConsumer,
    RouteNotFound,
    SendStatus,
    StoredMessage,
    Transaction,
    TransactionProducer,
)
from bolide.client import transactions as transactions_module
from bolide.model.message import SysFlag, format_properties
from bolide.model.pairs import parse_properties
from bolide.net.link import encode_host
from bolide.record.codec import encode_record
from bolide.testing import EmbeddedServer
from bolide.wire.codes import RequestCode, ResponseCode
from bolide.wire.command import Command
from bolide.wire.headers.transaction import CheckTransaction
from tests.peers.waiting import wait_until
from tests.unit.client.scripted import Cluster, ScriptedBroker, cluster, wait_for

COMMIT, ROLLBACK, UNKNOWN = Transaction.COMMIT, Transaction.ROLLBACK, Transaction.UNKNOWN

PROMPT = {"transactionTimeOut": 100, "transactionCheckInterval": 100, "transactionCheckMax": 1_000}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServer]:
    """A broker that asks soon."""
    with EmbeddedServer(settings=PROMPT) as server:
        yield server


def never(message: StoredMessage) -> Transaction:
    raise AssertionError(f"asked for {message.message_id}")


def bodies(server: EmbeddedServer, topic: str) -> list[bytes]:
    """What consumers of a topic can see."""
    with PullConsumer(server.nameserver) as reader:
        try:
            queues = reader.queues(topic)
        except RouteNotFound:
            return []
        return sorted(message.body for queue in queues for message in reader.pull(queue, 0, 32).messages)


# ---- with a real broker


def test_what_is_committed_is_seen_once_and_what_is_rolled_back_never(server: EmbeddedServer) -> None:
    """TX-01: and while the local function runs nobody sees it."""
    topic, seen = "tx-ends", []
    with TransactionProducer(server.nameserver, group="tx-ends", check=never) as producer:

        def local(message: Message) -> Transaction:
            seen.append((threading.current_thread(), bodies(server, topic)))
            return COMMIT if message.tags == "good" else ROLLBACK

        receipts = [
            producer.send_in_transaction(Message(topic, tag.encode(), tags=tag), local)
            for tag in ("bad", "good")
        ]
        assert [(receipt.outcome, receipt.error) for receipt in receipts] == [
            (ROLLBACK, None),
            (COMMIT, None),
        ]
        assert {receipt.status for receipt in receipts} == {SendStatus.SEND_OK}
        wait_until(lambda: bodies(server, topic) == [b"good"], 30, "it is not delivered")
        producer.send(Message(topic, b"plain"))
        assert bodies(server, topic) == [b"good", b"plain"]
    assert seen == [(threading.current_thread(), [])] * 2


def test_a_producer_that_does_not_know_is_asked_and_its_answer_counts(server: EmbeddedServer) -> None:
    """TX-02."""
    topic, asked = "tx-asked", []

    def check(message: StoredMessage) -> Transaction:
        asked.append(message)
        known = {"a": COMMIT, "b": ROLLBACK}.get(message.keys[0])
        return known or (COMMIT if len(asked) > 5 else UNKNOWN)

    with TransactionProducer(server.nameserver, group="tx-asked", check=check) as producer:
        large = b"c" * 10_000  # packed on its way
        for key, body in (("a", b"a"), ("b", b"b"), ("c", large)):
            message = Message(topic, body, keys=[key], properties={"colour": "red"})
            receipt = producer.send_in_transaction(message, lambda message: UNKNOWN)
            assert receipt.outcome is UNKNOWN
        wait_until(lambda: bodies(server, topic) == [b"a", large], 30, lambda: f"{len(asked)} questions")
    assert {message.topic for message in asked} == {topic}
    assert {message.body for message in asked} == {b"a", b"b", large}
    assert {message.properties["colour"] for message in asked} == {"red"}
    assert receipt.message_id in {message.message_id for message in asked}


def test_another_member_of_the_group_is_asked_that_has_sent_nothing_itself(server: EmbeddedServer) -> None:
    """TX-04: the producer that began it is gone."""
    topic = "tx-heir"
    with TransactionProducer(server.nameserver, group="tx-heir", check=lambda message: UNKNOWN) as producer:
        producer.send_in_transaction(Message(topic, b"inherited"), lambda message: UNKNOWN)
    with TransactionProducer(server.nameserver, group="tx-heir", check=lambda message: COMMIT):
        wait_until(lambda: bodies(server, topic) == [b"inherited"], 30, "nobody else is asked")


def test_functions_may_be_coroutines_and_plain_ones_run_in_threads(server: EmbeddedServer) -> None:
    async def scenario() -> None:
        threads: dict[str, threading.Thread] = {}

        async def local(message: Message) -> Transaction:
            threads["local"] = threading.current_thread()
            return UNKNOWN

        def plain_local(message: Message) -> Transaction:
            threads["plain local"] = threading.current_thread()
            return COMMIT

        async def check(message: StoredMessage) -> Transaction:
            threads["check"] = threading.current_thread()
            return COMMIT

        async with bolide.aio.TransactionProducer(server.nameserver, group="tx-aio", check=check) as producer:
            await producer.send_in_transaction(Message("tx-aio", b"asked"), local)
            await producer.send_in_transaction(Message("tx-aio", b"ended"), plain_local)
            await wait_for(lambda: len(threads) == 3, "somebody is asked")
        here = threading.current_thread()
        assert {name for name, thread in threads.items() if thread is here} == {"local", "check"}

    asyncio.run(scenario())
    wait_until(lambda: bodies(server, "tx-aio") == [b"asked", b"ended"], 30, "not delivered")


def test_blocking_a_coroutine_function_will_do_too(server: EmbeddedServer) -> None:
    async def local(message: Message) -> Transaction:
        return COMMIT

    with TransactionProducer(server.nameserver, group="tx-mixed", check=never) as producer:
        assert producer.send_in_transaction(Message("tx-mixed", b"x"), local).outcome is COMMIT
    wait_until(lambda: bodies(server, "tx-mixed") == [b"x"], 30, "not delivered")


def test_the_local_function_may_use_what_belongs_to_the_thread_that_sends(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    """As a connection to SQLite, which another thread may not touch."""
    database = sqlite3.connect(tmp_path / "orders.db")
    database.execute("CREATE TABLE orders (id TEXT)")

    def local(message: Message) -> Transaction:
        with database:
            database.execute("INSERT INTO orders VALUES (?)", (message.body.decode(),))
        return COMMIT

    with TransactionProducer(server.nameserver, group="tx-local", check=never) as producer:
        assert producer.send_in_transaction(Message("tx-local", b"42"), local).error is None
    assert database.execute("SELECT id FROM orders").fetchall() == [("42",)]
    database.close()


def test_what_the_local_function_raises_is_not_known_and_stands_in_log_and_receipt(
    server: EmbeddedServer, caplog: pytest.LogCaptureFixture
) -> None:
    def local(message: Message) -> Transaction:
        raise ValueError("out of order")

    with TransactionProducer(server.nameserver, group="tx-raise", check=lambda message: COMMIT) as producer:
        with caplog.at_level(logging.ERROR, "bolide"):
            receipt = producer.send_in_transaction(Message("tx-raise", b"x"), local)
            nonsense = producer.send_in_transaction(Message("tx-raise", b"y"), lambda message: "commit")  # type: ignore[arg-type, return-value]
        assert (receipt.outcome, str(receipt.error)) == (UNKNOWN, "out of order")
        assert nonsense.outcome is UNKNOWN
        assert "local returns Transaction.COMMIT" in str(nonsense.error)
        assert receipt.message_id in caplog.text
        assert "out of order" in caplog.text
        wait_until(lambda: bodies(server, "tx-raise") == [b"x", b"y"], 30, "nobody was asked")


def test_a_local_function_that_is_interrupted_leaves_the_transaction_to_the_check(
    server: EmbeddedServer,
) -> None:
    def local(message: Message) -> Transaction:
        raise KeyboardInterrupt

    with TransactionProducer(server.nameserver, group="tx-stop", check=lambda message: COMMIT) as producer:
        with pytest.raises(KeyboardInterrupt):
            producer.send_in_transaction(Message("tx-stop", b"x"), local)
        wait_until(lambda: bodies(server, "tx-stop") == [b"x"], 30, "nobody was asked")


def test_nobody_is_asked_while_the_local_function_still_runs(server: EmbeddedServer) -> None:
    """The broker asks several times meanwhile."""
    with TransactionProducer(server.nameserver, group="tx-slow", check=never) as producer:
        asked_so_far = _questions(producer)

        def local(message: Message) -> Transaction:
            wait_until(lambda: asked_so_far() >= 2, 30, "the broker does not ask")
            return COMMIT

        producer.send_in_transaction(Message("tx-slow", b"x"), local)
        wait_until(lambda: bodies(server, "tx-slow") == [b"x"], 30, "not delivered")


def _questions(producer: TransactionProducer) -> Callable[[], int]:
    """Counts what brokers ask."""
    served = producer._core.transactions.serve
    count = 0

    def counting(link: object, request: Command) -> object:
        nonlocal count
        count += 1
        return served(link, request)  # type: ignore[arg-type]

    serves = producer._core._instance._member.serves
    serves[RequestCode.CHECK_TRANSACTION_STATE] = counting  # type: ignore[assignment]
    return lambda: count


# ---- with a broker that does what the test wants


async def ended(broker: ScriptedBroker, count: int) -> None:
    await wait_for(lambda: len(broker.ends) >= count, f"{count} transactions end")


def check_of(number: int, log_offset: int, message_id: str = "ID", group: str = "g") -> Command:
    host = encode_host("127.0.0.1", 1)
    record = encode_record(
        topic=b"orders",
        body=b"x",
        properties=format_properties({"UNIQ_KEY": message_id, "PGROUP": group}).encode(),
        queue_id=0,
        flag=0,
        queue_offset=number,
        log_offset=log_offset,
        sys_flag=0,
        born_timestamp_ms=0,
        born_host=host,
        store_timestamp_ms=0,
        store_host=host,
        reconsume_times=0,
        prepared_offset=0,
    )
    header = CheckTransaction(number, log_offset)  # a broker of 4.9 says no more
    return Command(RequestCode.CHECK_TRANSACTION_STATE, header.encode(), record)


def producer_of(c: Cluster, check: object = never, **options: object) -> bolide.aio.TransactionProducer:
    return bolide.aio.TransactionProducer(c.nameserver.address, group="g", check=check, **options)  # type: ignore[arg-type]


def test_a_half_message_is_marked_and_its_end_names_its_place() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            (broker,) = c.brokers
            async with producer_of(c) as producer:
                receipt = await producer.send_in_transaction(
                    Message("orders", b"a" * 5_000), lambda m: COMMIT
                )
                await producer.send_in_transaction(Message("orders", b"b"), lambda m: ROLLBACK)
                await producer.send_in_transaction(Message("orders", b"c"), lambda m: 1 / 0)  # type: ignore[arg-type, return-value]
                await ended(broker, 3)
            first = broker.sends[0]
            sent = parse_properties(first.properties)
            assert (sent["TRAN_MSG"], sent["PGROUP"]) == ("true", "g")
            assert first.sys_flag == SysFlag.PREPARED | SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZLIB
            end, remark = broker.ends[0]
            assert (end.producer_group, end.topic, end.from_transaction_check) == ("g", "orders", False)
            assert (end.msg_id, end.transaction_id) == (receipt.message_id, receipt.message_id)
            assert (end.tran_state_table_offset, end.commit_log_offset, remark) == (0, 1, None)
            assert [end.commit_or_rollback for end, _ in broker.ends] == [8, 12, 0]
            assert "ZeroDivisionError" in (broker.ends[2][1] or "")

    asyncio.run(scenario())


def test_what_is_not_stored_safely_is_rolled_back_without_a_call() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            (broker,) = c.brokers
            broker.answers = [ResponseCode.FLUSH_DISK_TIMEOUT]
            async with producer_of(c) as producer:
                receipt = await producer.send_in_transaction(Message("orders", b"x"), never)  # type: ignore[arg-type]
                await ended(broker, 1)
            assert (receipt.outcome, receipt.status) == (ROLLBACK, SendStatus.FLUSH_DISK_TIMEOUT)
            assert broker.ends[0][0].commit_or_rollback == 12

    asyncio.run(scenario())


def test_a_question_is_answered_on_its_connection_and_only_for_the_own_group() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            (broker,) = c.brokers
            answers = {"A": COMMIT, "B": ROLLBACK, "C": UNKNOWN}

            def check(message: StoredMessage) -> Transaction:
                return answers[message.message_id]

            async with producer_of(c, check, topics=["orders"]):
                await wait_for(lambda: broker.heartbeats, "the broker knows it before it has sent anything")
                (link,) = broker.links
                link.notify(check_of(1, 1, group="others"))
                link.notify(Command(RequestCode.CHECK_TRANSACTION_STATE, {"x": "y"}, b"nothing"))
                link.notify(Command(RequestCode.CHECK_TRANSACTION_STATE, check_of(1, 1).fields, b"nothing"))
                for number, name in enumerate("ABCD"):
                    link.notify(check_of(10 + number, 100 + number, name))
                await ended(broker, 4)
            found = {end.msg_id: (end, remark) for end, remark in broker.ends}
            assert {name: end.commit_or_rollback for name, (end, _) in found.items()} == {
                "A": 8,
                "B": 12,
                "C": 0,
                "D": 0,
            }
            end, remark = found["D"]
            assert (end.tran_state_table_offset, end.commit_log_offset, end.from_transaction_check) == (
                13,
                103,
                True,
            )
            assert "KeyError" in (remark or "")

    asyncio.run(scenario())


def test_questions_about_one_message_are_one_and_the_newest_place_is_answered() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            (broker,) = c.brokers
            go_on, calls = asyncio.Event(), []

            async def check(message: StoredMessage) -> Transaction:
                calls.append(message.message_id)
                await go_on.wait()
                return COMMIT

            async with producer_of(c, check, topics=["orders"]):
                await wait_for(lambda: broker.heartbeats, "the broker knows it")
                (link,) = broker.links
                for place in (1, 2, 3):
                    link.notify(check_of(place, place * 100, "A"))
                link.notify(check_of(9, 900, "B"))
                await wait_for(lambda: calls == ["A", "B"], "both are asked for")
                go_on.set()
                await ended(broker, 2)
            places = [
                (end.msg_id, end.tran_state_table_offset, end.commit_log_offset) for end, _ in broker.ends
            ]
            assert sorted(places) == [("A", 3, 300), ("B", 9, 900)]

    asyncio.run(scenario())


def test_a_transaction_that_is_asked_for_while_it_runs_ends_at_its_newest_place() -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            (broker,) = c.brokers

            async def local(message: Message) -> Transaction:
                (link,) = broker.links
                sent = parse_properties(broker.sends[0].properties)
                link.notify(check_of(77, 7_700, sent["UNIQ_KEY"]))
                running = producer.transactions._open[sent["UNIQ_KEY"]]
                await wait_for(lambda: running.place.number == 77, "it is asked for")
                return COMMIT

            async with producer_of(c) as producer:
                await producer.send_in_transaction(Message("orders", b"x"), local)
                await ended(broker, 1)
            end, _ = broker.ends[0]
            assert (end.tran_state_table_offset, end.commit_log_offset) == (77, 7_700)

    asyncio.run(scenario())


def test_so_many_checks_run_at_once_and_so_many_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transactions_module, "CHECKS_WAITING_MAX", 10)

    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders", 1)
            (broker,) = c.brokers
            go_on, running, most = asyncio.Event(), 0, 0

            async def check(message: StoredMessage) -> Transaction:
                nonlocal running, most
                running += 1
                most = max(most, running)
                await go_on.wait()
                running -= 1
                return COMMIT

            async with producer_of(c, check, topics=["orders"], concurrency=3):
                await wait_for(lambda: broker.heartbeats, "the broker knows it")
                (link,) = broker.links
                for number in range(20):
                    link.notify(check_of(number, number, f"ID{number}"))
                await wait_for(lambda: "they will ask again" in caplog.text, "the rest is passed over")
                go_on.set()
                await ended(broker, 10)
            assert most == 3
            assert len(broker.ends) == 10

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("message", "local", "said"),
    [
        (Message("orders", b"x", delay_level=3), lambda m: COMMIT, "has no delay"),
        (Message("orders", b"x", delay=3), lambda m: COMMIT, "has no delay"),
        (Message("orders", b"x", properties={"DELAY": "3"}), lambda m: COMMIT, "has no delay"),
        (Message("orders", b""), lambda m: COMMIT, "no body"),
        (None, lambda m: COMMIT, "a message is a Message"),
        (Message("orders", b"x"), None, "local is a function that takes a message, not NoneType"),
        (Message("orders", b"x"), lambda: COMMIT, "takes a message, and this one takes ()"),
    ],
)
def test_what_is_wrong_with_a_transaction_is_named_before_it_begins(
    message: object, local: object, said: str
) -> None:
    async def scenario() -> None:
        async with cluster() as c:
            c.create("orders")
            async with producer_of(c) as producer:
                with pytest.raises((MessageIllegal, InvalidRequest)) as raised:
                    await producer.send_in_transaction(message, local)  # type: ignore[arg-type]
            assert said in str(raised.value)
            assert c.brokers[0].sends == []

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"check": None}, "check is a function that takes a message, not NoneType"),
        ({"check": lambda: COMMIT}, "and this one takes ()"),
        ({"concurrency": 0}, "concurrency is a whole number from 1 to 1000"),
        ({"topics": "orders"}, "topics is a list of topics, as in ['orders'], not str 'orders'"),
    ],
)
@pytest.mark.parametrize("kind", [TransactionProducer, bolide.aio.TransactionProducer])
def test_what_is_wrong_with_a_transaction_producer_is_named(
    kind: type[TransactionProducer], options: dict[str, object], said: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        kind("127.0.0.1:9876", group="g", **{"check": never, **options})  # type: ignore[arg-type]
    assert said in str(raised.value)
