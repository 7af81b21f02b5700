"""A batch on several brokers: each that it may have been to is asked what it has, whichever topics it has."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from bolide.admin.cluster import brokers_there
from bolide.admin.connection import AdminConnection
from bolide.admin.topics import create_topic
from bolide.arrow.frames import Frame
from bolide.arrow.rows import IdSet
from bolide.model.errors import ConnectionLost
from bolide.model.offsets import MessageQueue
from bolide.model.topic import TopicConfig
from bolide.pipeline import sender
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.account import Account, Scope
from bolide.pipeline.errors import WriteInDoubt
from bolide.pipeline.write_options import WriteOptions
from bolide.pipeline.write_task import Written, write_batches
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.unit.client.scripted import cluster
from tests.unit.pipeline.test_write_task import stored

WIDE, NARROW = "orders", "bills"
"""On both brokers, and on the first alone."""


@pytest.fixture
def first() -> Iterator[EmbeddedServer]:
    with EmbeddedServer(settings={"brokerName": "broker-a"}) as server:
        yield server


@pytest.fixture
def second(first: EmbeddedServer) -> Iterator[EmbeddedServer]:
    """A broker that is known to the first one's name server, and has one of the topics."""
    settings = {"brokerName": "broker-b", "namesrvAddr": first.nameserver}
    with EmbeddedServer(settings=settings) as server:
        wait_until(lambda: len(brokers(first)) == 2, PATIENCE_SECONDS, "the second broker does not register")
        asyncio.run(make_topics(first))
        yield server


def brokers(server: EmbeddedServer) -> list[str]:
    async def ask() -> list[str]:
        async with AdminConnection(server.nameserver) as servers:
            return sorted((await brokers_there(servers)).brokers)

    return asyncio.run(ask())


async def make_topics(server: EmbeddedServer) -> None:
    async with AdminConnection(server.nameserver) as servers:
        for broker in ("broker-a", "broker-b"):
            await create_topic(servers, TopicConfig(WIDE, 2, 2), broker=broker)
        await create_topic(servers, TopicConfig(NARROW, 2, 2), broker="broker-a")


def batch(*rows: tuple[str, bytes]) -> pa.RecordBatch:
    topics, bodies = zip(*rows, strict=True)
    return pa.record_batch({"topic": pa.array(topics), "body": pa.array(bodies, pa.binary())})


ROWS = [(topic, b"%s %d" % (topic.encode(), at)) for at in range(40) for topic in (WIDE, NARROW)]


def write(server: EmbeddedServer, batches: Iterable[pa.RecordBatch]) -> Written:
    return write_batches(WriteOptions(ClusterAccess(server.nameserver)), Scope("q", 0, 0), iter(batches))


def all_stored(server: EmbeddedServer) -> Counter[bytes]:
    return stored(server, WIDE) + stored(server, NARROW)


@pytest.mark.parametrize("topics", [(WIDE, NARROW), (NARROW, WIDE)])
def test_a_batch_with_topics_on_different_brokers_is_stored_once(
    first: EmbeddedServer, second: EmbeddedServer, topics: tuple[str, str]
) -> None:
    """Whichever topic is opened first; the try before it has written to the other ones only."""
    before = [row for row in ROWS if row[0] == topics[0]][:15]
    assert write(first, [batch(*before)]) == Written(15, 0)
    after = sorted(ROWS, key=lambda row: row[0] != topics[0])
    assert write(first, [batch(*after)]) == Written(len(ROWS) - 15, 15)
    assert all_stored(first) == Counter(body for _, body in ROWS)


def test_a_broker_without_the_topic_that_is_down_is_a_doubt_and_is_named(
    first: EmbeddedServer, second: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "START_TIMEOUT_MS", 200)
    write(first, [batch((WIDE, b"a"), (NARROW, b"b"))])
    second.stop()
    with pytest.raises(WriteInDoubt, match="also to the broker broker-b, which cannot be asked now"):
        write(first, [batch((NARROW, b"b"), (NARROW, b"c"))])
    second.start()
    wait_until(lambda: len(brokers(first)) == 2, PATIENCE_SECONDS, "the second broker does not come back")
    assert write(first, [batch((NARROW, b"b"), (NARROW, b"c"))]) == Written(1, 1)


def test_a_topic_that_came_into_being_on_one_broker_of_two_is_written_to_again(
    first: EmbeddedServer, second: EmbeddedServer
) -> None:
    """The first try has the route of topics that are made on demand; the second one that of the topic."""
    assert write(first, [batch(("made", b"a"))]) == Written(1, 0)
    assert write(first, [batch(("made", b"a"), ("made", b"b"))]) == Written(1, 1)
    assert stored(first, "made") == Counter((b"a", b"b"))


def test_an_attempt_that_lives_on_knows_what_its_successor_stored_on_every_broker(
    first: EmbeddedServer, second: EmbeddedServer
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    outcome: list[Written] = []
    rows = [row for row in ROWS if row[0] == WIDE]

    def slow() -> Iterator[pa.RecordBatch]:
        yield batch(*rows[:1])
        begun.set()
        go_on.wait(PATIENCE_SECONDS)
        for row in rows[1:]:
            yield batch(row)

    task = threading.Thread(target=lambda: outcome.append(write(first, slow())))
    task.start()
    begun.wait(PATIENCE_SECONDS)
    write(first, (batch(row) for row in rows))
    go_on.set()
    task.join(PATIENCE_SECONDS)
    assert all_stored(first) == Counter(body for _, body in rows)
    assert outcome, "it finds everything stored"


def test_what_one_broker_has_told_is_known_when_another_one_answers_only_the_second_time(
    first: EmbeddedServer, second: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row for row in ROWS if row[0] == WIDE]
    write(first, (batch(row) for row in rows))
    refused: list[str] = []
    true_begin = Account.begin

    async def begin(self: Account, topic: str, brokers: str, stored: IdSet) -> None:
        if self.broker == "broker-b" and not refused:
            await begun.wait()
            refused.append(self.broker)
            raise ConnectionLost("as if it were starting")
        await true_begin(self, topic, brokers, stored)
        begun.set()

    begun = asyncio.Event()
    monkeypatch.setattr(Account, "begin", begin)
    assert write(first, (batch(row) for row in rows)) == Written(0, len(rows))
    assert refused
    assert all_stored(first) == Counter(body for _, body in rows)


def test_an_attempt_that_has_one_broker_when_another_attempt_takes_both_begins_again(
    first: EmbeddedServer, second: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has begun at the first, the other attempt writes everything, and it begins at the second."""
    rows = [row for row in ROWS if row[0] == WIDE]
    taken: list[Written] = []
    has_first = asyncio.Event()
    true_begin = Account.begin

    async def begin(self: Account, topic: str, brokers: str, stored: IdSet) -> None:
        if self.broker == "broker-b" and not others:
            others.append(self)
            await has_first.wait()
            here = asyncio.get_running_loop()
            taken.append(await here.run_in_executor(None, write, first, [batch(row) for row in rows]))
        await true_begin(self, topic, brokers, stored)
        if not taken:
            has_first.set()

    def choose(self: sender.Sender, frame: Frame, avoid: str | None) -> MessageQueue:
        return MessageQueue(WIDE, "broker-b" if taken else "broker-a", 0)

    others: list[Account] = []
    monkeypatch.setattr(Account, "begin", begin)
    monkeypatch.setattr(sender.Sender, "choose", choose)
    assert write(first, (batch(row) for row in rows)) == Written(0, len(rows))
    assert taken == [Written(len(rows), 0)]
    assert all_stored(first) == Counter(body for _, body in rows)


def test_attempts_at_one_part_that_all_live_store_every_row_once(
    first: EmbeddedServer, second: EmbeddedServer
) -> None:
    """They take the brokers from each other, one by one, until each of them is through."""
    rows = [row for row in ROWS if row[0] == WIDE]

    def attempt(seed: int) -> Written:
        return write(first, (batch(row) for row in random.Random(seed).sample(rows, len(rows))))

    with ThreadPoolExecutor(3) as attempts:
        outcomes = list(attempts.map(attempt, range(3)))
    assert all_stored(first) == Counter(body for _, body in rows)
    assert [outcome.rows + outcome.stored_before for outcome in outcomes] == [len(rows)] * 3


def test_where_brokers_keep_no_account_a_lost_answer_leaves_the_frame_to_another_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As Apache's do: there is nothing to ask of the one that is gone."""
    true_send = sender.Sender.send_over
    gone: list[str] = []

    async def scenario() -> None:
        here = asyncio.get_running_loop()
        async with cluster(2) as c:
            c.create("sink")

            async def losing(self: sender.Sender, link, frame, queue) -> None:  # type: ignore[no-untyped-def]
                if gone:
                    return await true_send(self, link, frame, queue)
                gone.append(queue.broker_name)
                (broker,) = (one for one in c.brokers if one.name == queue.broker_name)
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(broker.stop(), here))
                raise ConnectionLost("as if the answer had not come")

            monkeypatch.setattr(sender.Sender, "send_over", losing)
            options = WriteOptions(ClusterAccess(c.nameserver.address), timeout_ms=2_000)
            written = await here.run_in_executor(
                None, write_batches, options, Scope("q", 0, 0), iter([batch(("sink", b"a"))])
            )
            assert written == Written(1, 0)
            assert [len(broker.sends) for broker in c.brokers if broker.name not in gone] == [1]

    asyncio.run(scenario())
