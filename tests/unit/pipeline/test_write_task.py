"""A part of a stream's batch is stored once, whoever dies while it is written.  On a real server, without Spark."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from bolide import PullConsumer
from bolide.admin.connection import AdminConnection
from bolide.admin.topics import TopicChange, create_topic, update_topic
from bolide.arrow.rows import IdSet
from bolide.model.errors import BadRow, BolideError, ConnectionLost
from bolide.model.message import BODY_BYTES_MAX
from bolide.model.topic import Permission, TopicConfig
from bolide.pipeline import sender
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.account import Account, Scope
from bolide.pipeline.write_options import WriteOptions
from bolide.pipeline.write_task import Written, write_batches
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

ROWS = 6000
TWINS = 500
"""So many rows say the same as others."""


@pytest.fixture
def server() -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


def batches(count: int = ROWS, *, seed: int | None = None, size: int = 500) -> list[pa.RecordBatch]:
    """Rows to write, in an order of their own if there is a seed; some are there twice."""
    numbers = [*range(count), *range(TWINS)]
    if seed is not None:
        random.Random(seed).shuffle(numbers)
    return [
        pa.record_batch(
            {
                "body": pa.array([b"row %d" % number for number in numbers[at : at + size]], pa.binary()),
                "keys": pa.array(
                    [[f"k{number}"] for number in numbers[at : at + size]], pa.list_(pa.string())
                ),
            }
        )
        for at in range(0, len(numbers), size)
    ]


EXPECTED = Counter(b"row %d" % number for number in [*range(ROWS), *range(TWINS)])


def options(server: EmbeddedServer, topic: str = "sink") -> WriteOptions:
    return WriteOptions(ClusterAccess(server.nameserver), topic=topic)


def stored(server: EmbeddedServer, topic: str = "sink") -> Counter[bytes]:
    found: Counter[bytes] = Counter()
    with PullConsumer(server.nameserver) as consumer:
        for queue in consumer.queues(topic):
            offset = 0
            while (result := consumer.pull(queue, offset)).messages:
                found.update(message.body for message in result.messages)
                offset = result.next_offset
    return found


def restart(server: EmbeddedServer) -> None:
    server.stop()
    server.start()


class Killed(Exception):
    """Stands for whatever ends a task in the middle."""


def dying(given: list[pa.RecordBatch], after: int) -> Iterator[pa.RecordBatch]:
    yield from given[:after]
    raise Killed


def test_a_part_that_died_and_is_tried_again_is_stored_once_in_whatever_order(server: EmbeddedServer) -> None:
    scope = Scope("query", 3, 1)
    with pytest.raises(Killed):
        write_batches(options(server), scope, dying(batches(), 7))
    assert 0 < stored(server).total() < EXPECTED.total()
    with pytest.raises(Killed):
        write_batches(options(server), scope, dying(batches(seed=1), 9))
    written = write_batches(options(server), scope, iter(batches(seed=2)))
    assert stored(server) == EXPECTED
    assert written.rows + written.stored_before == EXPECTED.total()
    assert written.stored_before > 0


@pytest.mark.parametrize(
    "meanwhile", [TopicChange(1, 1), TopicChange(perm=Permission.WRITE)], ids=["fewer queues", "none is read"]
)
def test_a_part_that_is_tried_again_is_stored_once_also_where_consumers_may_not_read(
    server: EmbeddedServer, meanwhile: TopicChange
) -> None:
    async def change(topic: TopicChange) -> None:
        async with AdminConnection(server.nameserver) as servers:
            await create_topic(servers, TopicConfig("sink", 4, 4), if_not_exists=True)
            await update_topic(servers, "sink", topic)

    scope, usual = Scope("query", 0, 0), TopicChange(4, 4, Permission.READ_WRITE)
    asyncio.run(change(usual))
    with pytest.raises(Killed):
        write_batches(options(server), scope, dying(batches(), 7))
    asyncio.run(change(meanwhile))
    written = write_batches(options(server), scope, iter(batches(seed=2)))
    assert written.stored_before > 0
    asyncio.run(change(usual))
    assert stored(server) == EXPECTED


def test_a_part_that_is_whole_is_not_written_again_and_the_next_batch_is(server: EmbeddedServer) -> None:
    assert write_batches(options(server), Scope("q", 0, 0), iter(batches())) == Written(EXPECTED.total(), 0)
    again = write_batches(options(server), Scope("q", 0, 0), iter(batches(seed=5)))
    assert again == Written(0, EXPECTED.total())
    assert stored(server) == EXPECTED
    assert write_batches(options(server), Scope("q", 1, 0), iter(batches())).rows == EXPECTED.total()
    assert write_batches(options(server), Scope("q", 1, 1), iter(batches())).rows == EXPECTED.total()
    assert stored(server) == EXPECTED + EXPECTED + EXPECTED


@pytest.mark.parametrize("scope", [None, Scope("q", 0, 0)], ids=["batch", "stream"])
def test_a_message_of_the_largest_size_is_stored_with_what_it_has(
    scope: Scope | None, server: EmbeddedServer
) -> None:
    """Between small ones; written again as a part of a stream it is known."""
    bodies = [b"before", b"x" * BODY_BYTES_MAX, b"behind"]
    rows = pa.record_batch(
        {
            "body": pa.array(bodies, pa.binary()),
            "tags": pa.array(["t"] * 3),
            "properties": pa.array([[("city", "Köln")]] * 3, pa.map_(pa.string(), pa.string())),
        }
    )
    assert write_batches(options(server), scope, iter([rows])) == Written(3, 0)
    assert stored(server) == Counter(bodies)
    with PullConsumer(server.nameserver) as consumer:
        found = [message for queue in consumer.queues("sink") for message in consumer.pull(queue, 0).messages]
    assert {(message.tags, message.properties["city"]) for message in found} == {("t", "Köln")}
    if scope is not None:
        assert write_batches(options(server), scope, iter([rows])) == Written(0, 3)


def test_a_batch_that_is_over_is_refused(server: EmbeddedServer) -> None:
    write_batches(options(server), Scope("q", 4, 0), iter(batches()))
    with pytest.raises(BolideError, match="batch 4 of the writer q has begun, so batch 3 is over"):
        write_batches(options(server), Scope("q", 3, 0), iter(batches()))
    assert stored(server) == EXPECTED


def test_what_a_batch_has_stored_is_known_after_a_restart_of_the_broker(server: EmbeddedServer) -> None:
    with pytest.raises(Killed):
        write_batches(options(server), Scope("q", 0, 0), dying(batches(), 8))
    server.stop()
    server.start()
    write_batches(options(server), Scope("q", 0, 0), iter(batches(seed=3)))
    assert stored(server) == EXPECTED


def test_a_broker_that_restarts_under_a_task_loses_and_doubles_nothing(server: EmbeddedServer) -> None:
    def given() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches(size=200)):
            if number in (5, 20):
                restarts = threading.Thread(target=restart, args=(server,))
                restarts.start()
                yield batch
                restarts.join()
            else:
                yield batch

    written = write_batches(options(server), Scope("q", 0, 0), given())
    assert written == Written(EXPECTED.total(), 0)
    assert stored(server) == EXPECTED


def test_answers_that_are_lost_are_asked_about(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fifth request is stored, and its connection breaks before the task hears of it."""
    count = 0
    true_send = sender.Sender.send_over

    async def losing(self: sender.Sender, link, frame, queue) -> None:  # type: ignore[no-untyped-def]
        nonlocal count
        count += 1
        await true_send(self, link, frame, queue)
        if count % 5 == 0:
            link.abort()
            raise ConnectionLost("as if the answer had not come")

    monkeypatch.setattr(sender.Sender, "send_over", losing)
    assert write_batches(options(server), Scope("q", 0, 0), iter(batches())).rows == EXPECTED.total()
    assert count > 5
    assert stored(server) == EXPECTED


def test_a_task_that_was_given_up_and_lives_on_stores_nothing_more(server: EmbeddedServer) -> None:
    begun, go_on = threading.Event(), threading.Event()
    outcome: list[object] = []

    def slow() -> Iterator[pa.RecordBatch]:
        given = batches(seed=8)
        yield from given[:6]
        begun.set()
        go_on.wait(PATIENCE_SECONDS)
        yield from given[6:]

    def first() -> None:
        outcome.append(write_batches(options(server), Scope("q", 0, 0), slow()))

    task = threading.Thread(target=first)
    task.start()
    begun.wait(PATIENCE_SECONDS)
    written = write_batches(options(server), Scope("q", 0, 0), iter(batches()))
    assert stored(server) == EXPECTED
    go_on.set()
    task.join(PATIENCE_SECONDS)
    assert stored(server) == EXPECTED
    assert written.rows + written.stored_before == EXPECTED.total()
    assert outcome, "it finds everything stored, or fails"


def test_delayed_rows_of_a_part_that_is_tried_again_come_once(server: EmbeddedServer) -> None:
    def given() -> list[pa.RecordBatch]:
        count = 40
        return [
            pa.record_batch(
                {
                    "body": pa.array([b"d%d" % at for at in range(start, start + 10)], pa.binary()),
                    "delay_level": pa.array(
                        [(None, 1, 0)[at % 3] for at in range(start, start + 10)], pa.int32()
                    ),
                }
            )
            for start in range(0, count, 10)
        ]

    expected = Counter(b"d%d" % at for at in range(40))
    with pytest.raises(Killed):
        write_batches(options(server), Scope("q", 0, 0), dying(given(), 3))
    write_batches(options(server), Scope("q", 0, 0), iter(given()))
    wait_until(lambda: stored(server).total() >= 40, PATIENCE_SECONDS, "delayed messages do not come")
    assert stored(server) == expected
    assert write_batches(options(server), Scope("q", 0, 0), iter(given())).rows == 0


def test_a_broker_that_is_gone_and_may_have_stored_rows_is_named(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "START_TIMEOUT_MS", 200)
    true_begin = Account.begin

    async def begin(self: Account, topic: str, brokers: str, known: IdSet) -> None:
        await true_begin(self, topic, f"{brokers},broker-b", known)

    monkeypatch.setattr(Account, "begin", begin)
    with pytest.raises(BolideError, match="also to the broker broker-b, which cannot be asked now"):
        write_batches(options(server), Scope("q", 0, 0), iter(batches()))


def tagged(tags: list[str], **more: pa.Array) -> pa.RecordBatch:
    bodies = [b"row %d" % number for number in range(len(tags))]
    return pa.record_batch({"body": pa.array(bodies, pa.binary()), "tags": pa.array(tags), **more})


def test_rows_that_are_no_messages_are_left_out_if_that_is_wished_and_the_others_stored_once(
    server: EmbeddedServer,
) -> None:
    given = [tagged(["a", "a b", "*", "b"] * 100), tagged(["*"] * 10), tagged(["c"] * 100)]
    skipping = replace(options(server), skip_bad_rows=True)
    with pytest.raises(Killed):
        write_batches(skipping, Scope("q", 0, 0), dying(given, 2))
    assert write_batches(skipping, Scope("q", 0, 0), iter(given)).left_out == 210
    assert stored(server).total() == 300


def test_a_row_that_ends_a_write_is_named_by_its_place_with_what_would_help(server: EmbeddedServer) -> None:
    given = [tagged(["a"] * 5), tagged(["a", "a b"])]
    with pytest.raises(BadRow, match=r"row 6: the column tags .*; badRows=skip leaves such rows out"):
        write_batches(options(server), None, iter(given))
    queues = pa.array([0, 0, 9_999], pa.int32())
    skipping = replace(options(server), skip_bad_rows=True)
    with pytest.raises(BadRow, match=r"row 2: the column queue_id is 9999; the topic has the queues 0 to 3$"):
        write_batches(skipping, None, iter([tagged(["a", "a b", "a"], queue_id=queues)]))


def test_a_partition_without_rows_opens_nothing() -> None:
    nowhere = WriteOptions(ClusterAccess("127.0.0.1:1"), topic="sink")
    assert write_batches(nowhere, Scope("q", 0, 0), iter(batches(0)[:0])) == Written()
