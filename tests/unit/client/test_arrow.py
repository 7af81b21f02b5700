"""Tables of messages: `send_arrow` and `poll_arrow`, on a server and on scripted brokers."""

import asyncio
import subprocess
import sys
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise

import pyarrow as pa
import pytest
import zstandard

import bolide
from bolide import (
    BadRow,
    InvalidRequest,
    LitePullConsumer,
    Message,
    Producer,
    RequirementMissing,
    RowsPartlyStored,
    aio,
)
from bolide.arrow.batches import COLUMNS
from bolide.model.message import SysFlag
from bolide.net.ticks import pause
from bolide.testing import EmbeddedServer
from bolide.wire.codes import ResponseCode
from tests.peers.waiting import wait_until
from tests.unit.client.polling import QUEUES, consumer_of, fill, member, offsets, on_cluster
from tests.unit.client.scripted import Cluster

MANY = 30_000


@pytest.fixture
def producer(bolide_module_server: EmbeddedServer) -> Iterator[Producer]:
    with Producer(bolide_module_server.nameserver) as producer:
        yield producer


def readers(server: EmbeddedServer, topic: str, tags: str = "*") -> LitePullConsumer:
    consumer = LitePullConsumer(server.nameserver, group=f"{topic}-readers", start_from="first")
    consumer.subscribe(topic, tags)
    return consumer


def rows_of(
    consumer: LitePullConsumer, count: int, columns: list[str] | None = None
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []

    def have_come() -> bool:
        batch = consumer.poll_arrow(timeout_ms=100, columns=columns)
        if batch is not None:
            batch.validate(full=True)
            rows.extend(batch.to_pylist())
        return len(rows) >= count

    wait_until(have_come, 30, lambda: f"{len(rows)} of {count}")
    return rows


async def polled(consumer: aio.LitePullConsumer, count: int, **options: object) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    async with asyncio.timeout(30):
        while len(rows) < count:
            batch = await consumer.poll_arrow(**options)  # type: ignore[arg-type]
            rows += [] if batch is None else batch.to_pylist()
    return rows


# ---- there and back --------------------------------------------------------------------------------------------


def test_what_a_table_says_comes_back_as_a_table(
    bolide_module_server: EmbeddedServer, producer: Producer
) -> None:
    table = pa.table(
        {
            "body": ["one", "two", "three"],
            "tags": ["paid", None, "open"],
            "keys": [["a", "b"], [], None],
            "properties": pa.array([[("colour", "red")], [], None], pa.map_(pa.string(), pa.string())),
            "sharding_key": ["x", "x", None],
        }
    )
    assert producer.send_arrow(table, topic="arrow-there").rows == 3
    with readers(bolide_module_server, "arrow-there") as consumer:
        rows = {row["body"]: row for row in rows_of(consumer, 3)}
    assert list(rows[b"one"]) == list(COLUMNS)
    assert [rows[body]["tags"] for body in (b"one", b"two", b"three")] == ["paid", None, "open"]
    assert rows[b"one"]["keys"] == ["a", "b"]
    assert ("colour", "red") in rows[b"one"]["properties"]  # type: ignore[operator]
    assert rows[b"one"]["queueId"] == rows[b"two"]["queueId"]
    assert rows[b"one"]["queueOffset"] < rows[b"two"]["queueOffset"]  # type: ignore[operator]


def test_a_key_has_the_same_queue_however_it_is_sent(
    bolide_module_server: EmbeddedServer, producer: Producer
) -> None:
    keys = [f"key {number}" for number in range(20)]
    producer.send_arrow(pa.table({"body": keys, "sharding_key": keys}), topic="arrow-keys")
    with readers(bolide_module_server, "arrow-keys") as consumer:
        queue_of = {row["body"]: row["queueId"] for row in rows_of(consumer, 20)}
    for key in keys:
        receipt = producer.send(Message("arrow-keys", b"again", sharding_key=key))
        assert receipt.queue.queue_id == queue_of[key.encode()]


def test_many_rows_go_in_few_requests_to_all_queues_and_come_in_order(
    bolide_module_server: EmbeddedServer, producer: Producer
) -> None:
    receipt = producer.send_arrow(
        pa.table({"value": [b"%d" % number for number in range(MANY)]}), topic="arrow-many"
    )
    assert (receipt.rows, receipt.less_safe) == (MANY, 0)
    assert receipt.requests < MANY / 500
    with readers(bolide_module_server, "arrow-many") as consumer:
        rows = rows_of(consumer, MANY, ["queueId", "queueOffset", "body"])
    assert sorted(int(row["body"]) for row in rows) == list(range(MANY))  # type: ignore[call-overload]
    queues = {row["queueId"] for row in rows}
    assert len(queues) == len(producer.queues("arrow-many"))
    for queue in queues:
        places = [row["queueOffset"] for row in rows if row["queueId"] == queue]
        assert all(after == before + 1 for before, after in pairwise(places))  # type: ignore[operator]


def test_a_column_says_the_topic_and_another_when_a_row_is_delivered(
    bolide_module_server: EmbeddedServer, producer: Producer
) -> None:
    moments = pa.array([None, None, datetime(2020, 1, 1, tzinfo=UTC)], pa.timestamp("ns", "UTC"))
    table = pa.table(
        {"topic": ["arrow-a", "arrow-b", "arrow-a"], "body": ["1", "2", "3"], "deliver_at": moments}
    )
    assert producer.send_arrow(table).rows == 3
    with readers(bolide_module_server, "arrow-a") as a, readers(bolide_module_server, "arrow-b") as b:
        assert sorted(row["body"] for row in rows_of(a, 2, ["body"])) == [b"1", b"3"]  # type: ignore[type-var]
        assert [row["body"] for row in rows_of(b, 1, ["body"])] == [b"2"]


class Frame:
    """What gives itself as a stream, as the frames of other libraries do."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, wanted: object = None) -> object:
        return self._table.__arrow_c_stream__(wanted)


def test_frames_of_other_libraries_and_their_layouts_are_taken(
    bolide_module_server: EmbeddedServer, producer: Producer
) -> None:
    columns = {
        "body": pa.array(["a", "b", "c"], pa.string_view()),
        "tags": pa.array(["x", None, "x"]).dictionary_encode(),
        "keys": pa.array([["k"], None, ["l"]], pa.large_list(pa.large_string())),
        "sharding_key": pa.nulls(3),
    }
    batches = pa.table(columns).to_batches(max_chunksize=1)
    assert producer.send_arrow(Frame(pa.Table.from_batches(batches)), topic="arrow-frames").rows == 3
    with readers(bolide_module_server, "arrow-frames", "x") as consumer:
        rows = rows_of(consumer, 2, ["BODY", "keys"])
    assert {row["body"]: row["keys"] for row in rows} == {b"a": ["k"], b"c": ["l"]}


# ---- what is refused -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (pa.table({"body": ["a"], "tag": ["x"]}), "no column 'tag' .did you mean tags..."),
        (pa.table({"body": [1]}), "the column body is string or binary, not int64: cast it"),
        (pa.table({"tags": ["x"]}), "the column body is missing"),
        (pa.table({"body": ["a"], "value": ["a"]}), "the same thing"),
        (
            pa.table({"body": ["a"], "deliver_at": [datetime(2030, 1, 1)]}),  # noqa: DTZ001 - the point of it
            r"deliver_at is timestamp or long, not timestamp\[us\]",
        ),
        ({"body": ["a"]}, "a table is a pyarrow Table .* not dict"),
    ],
)
def test_columns_that_are_none_of_a_message_s_are_refused_before_anything_is_sent(
    table: object, complaint: str
) -> None:
    async def scenario(c: Cluster) -> None:
        async with aio.Producer(c.nameserver.address) as producer:
            with pytest.raises(InvalidRequest, match=complaint):
                await producer.send_arrow(table, topic="orders")
        assert c.brokers[0].sends == []

    on_cluster(scenario)


def test_without_a_topic_nothing_is_sent() -> None:
    async def scenario(c: Cluster) -> None:
        async with aio.Producer(c.nameserver.address) as producer:
            with pytest.raises(InvalidRequest, match='send_arrow\\(table, topic="orders"\\)'):
                await producer.send_arrow(pa.table({"body": ["a"]}))

    on_cluster(scenario)


@pytest.mark.parametrize(
    ("bodies", "row", "why"),
    [
        ([b"a", None], 1, "is null"),
        ([b"a", b"b", b""], 2, "has 0 bytes"),
        ([bytes((4 << 20) + 1)], 0, "4194305"),
    ],
)
def test_a_row_that_is_no_message_is_named_and_nothing_is_sent(
    bodies: list[bytes | None], row: int, why: str
) -> None:
    async def scenario(c: Cluster) -> None:
        async with aio.Producer(c.nameserver.address) as producer:
            with pytest.raises(BadRow, match=f"row {row}: the column body .*{why}") as caught:
                await producer.send_arrow(pa.table({"body": pa.array(bodies, pa.binary())}), topic="orders")
        assert caught.value.row == row
        assert c.brokers[0].sends == []

    on_cluster(scenario)


def test_which_rows_are_not_stored_is_said() -> None:
    """Those with one key are in one queue, and come in several requests, one behind the other."""
    body = bytes(100_000)

    async def scenario(c: Cluster) -> None:
        c.brokers[0].answers = [ResponseCode.SUCCESS, ResponseCode.MESSAGE_ILLEGAL]
        table = pa.table({"body": [body] * 20, "sharding_key": ["k"] * 20})
        async with aio.Producer(c.nameserver.address) as producer:
            with pytest.raises(RowsPartlyStored, match="MESSAGE_ILLEGAL") as caught:
                await producer.send_arrow(table, topic="orders")
        error = caught.value
        assert 0 < error.stored < 20
        assert error.missing == list(range(error.stored, 20))
        assert sum(len(queue) for queue in c.brokers[0].queues.values()) == error.stored

    on_cluster(scenario)


def test_a_bad_row_behind_what_was_sent_is_counted_from_the_beginning() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(5):
            bodies = [bytes(9_000_000 // 3)] * 3 if number < 4 else [b"x", None]
            yield pa.record_batch({"body": pa.array(bodies, pa.binary())})

    async def scenario(c: Cluster) -> None:
        reader = pa.RecordBatchReader.from_batches(pa.schema([("body", pa.binary())]), batches())
        async with aio.Producer(c.nameserver.address) as producer:
            with pytest.raises(RowsPartlyStored) as caught:
                await producer.send_arrow(reader, topic="orders")
        assert isinstance(caught.value.cause, BadRow)
        assert caught.value.cause.row == 13

    on_cluster(scenario)


# ---- polls -----------------------------------------------------------------------------------------------------


def test_offsets_move_as_with_poll() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        fill(broker, 40)
        async with member(c, auto_commit=False) as consumer:
            assert len(await polled(consumer, 40)) == 40
            assert offsets(broker) == [None] * 4
            await consumer.commit()
            assert offsets(broker) == [10] * 4
            await consumer.seek(QUEUES[0], 7)
            rows = await polled(consumer, 3, columns=["queueOffset"])
            assert rows == [{"queueOffset": 7}, {"queueOffset": 8}, {"queueOffset": 9}]
            assert await consumer.poll_arrow(timeout_ms=0) is None

    on_cluster(scenario)


def test_a_poll_for_rows_is_bounded_by_count_and_by_bytes() -> None:
    async def scenario(c: Cluster) -> None:
        fill(c.brokers[0], 40, queues=1)
        async with consumer_of(c) as consumer:
            await consumer.assign(QUEUES[:1])
            first = await consumer.poll_arrow(messages_max=3)
            second = await consumer.poll_arrow(bytes_max=1)
            rest = await polled(consumer, 36)
        assert first is not None
        assert second is not None
        assert (first.num_rows, second.num_rows) == (3, 1)
        assert [row["queueOffset"] for row in rest] == list(range(4, 40))

    on_cluster(scenario)


def test_paused_queues_give_nothing_and_an_iteration_gives_its_rest_back() -> None:
    async def scenario(c: Cluster) -> None:
        fill(c.brokers[0], 10, queues=2)
        async with consumer_of(c) as consumer:
            await consumer.assign(QUEUES[:1])
            in_hand = await anext(consumer)
            assert in_hand.queue_offset == 0
            rows = await polled(consumer, 4, columns=["queueOffset"])
            assert [row["queueOffset"] for row in rows] == [1, 2, 3, 4]
            await consumer.assign(QUEUES[:2])
            await consumer.pause(QUEUES[1:2])
            assert await consumer.poll_arrow(timeout_ms=50) is None
            await consumer.resume(QUEUES[1:2])
            assert len(await polled(consumer, 5)) == 5

    on_cluster(scenario)


@pytest.mark.parametrize("bad_bodies", ["deliver", "skip"])
def test_packed_bodies_come_unpacked_and_what_cannot_be_read_as_its_bytes_or_not_at_all(
    bad_bodies: str, caplog: pytest.LogCaptureFixture
) -> None:
    packed = SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZLIB

    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        broker.store("orders", 0, b"sound")
        broker.store("orders", 0, zlib.compress(b"packed"), sys_flag=packed)
        broker.store("orders", 0, b"no zlib", sys_flag=packed)
        broker.queues["orders", 0].append(b"rubbish")
        broker.store("orders", 0, b"last")
        async with consumer_of(c, bad_bodies=bad_bodies) as consumer:
            await consumer.assign(QUEUES[:1])
            count = 5 if bad_bodies == "deliver" else 3
            rows = await polled(consumer, count, columns=["queueOffset", "body", "bodyError"])
            skipped = consumer.skipped
        found = [(row["queueOffset"], row["body"]) for row in rows]
        sound = [(0, b"sound"), (1, b"packed"), (4, b"last")]
        if bad_bodies == "skip":
            assert (found, skipped) == (sound, 2)
            return
        assert found == [*sound[:2], (2, b"no zlib"), (3, b"rubbish"), sound[2]]
        assert [bool(row["bodyError"]) for row in rows] == [False, False, True, True, False]
        assert "the record cannot be read" in str(rows[3]["bodyError"])
        assert "orders@broker-0:0: what is at offset 3 cannot be read" in caplog.text

    on_cluster(scenario)


@pytest.mark.parametrize("bad_bodies", ["deliver", "skip"])
def test_bodies_that_unpack_in_vain_let_others_have_their_turn(bad_bodies: str) -> None:
    """A frame of zstd that does not tell its size may unpack to thousands of its bytes before it proves bad."""
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    cut_off = (packer.compress(bytes(100_000)) + packer.flush())[:-1]

    async def scenario(c: Cluster) -> None:
        for _ in range(5):
            c.brokers[0].store("orders", 0, cut_off, sys_flag=SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZSTD)
        c.brokers[0].store("orders", 0, b"last")
        offsets: list[object] = []
        columns = ["queueOffset", "bodyError"]
        async with consumer_of(c, bad_bodies=bad_bodies) as consumer, asyncio.timeout(30):
            await consumer.assign(QUEUES[:1])
            while not offsets or offsets[-1] != 5:
                skipped = consumer.skipped
                batch = await consumer.poll_arrow(timeout_ms=0, bytes_max=100_000, columns=columns)
                rows = [] if batch is None else batch.column(0).to_pylist()
                assert len(rows) + consumer.skipped - skipped <= 1
                offsets += rows
                await pause(0)
        assert (offsets, consumer.skipped) == (([*range(6)], 0) if bad_bodies == "deliver" else ([5], 5))

    on_cluster(scenario)


def test_a_record_of_another_queue_is_a_row_that_says_so() -> None:
    async def scenario(c: Cluster) -> None:
        (broker,) = c.brokers
        broker.store("orders", 1, b"elsewhere")
        broker.queues["orders", 0].append(broker.queues["orders", 1][0])
        broker.store("orders", 0, b"sound")
        async with consumer_of(c) as consumer:
            await consumer.assign(QUEUES[:1])
            rows = await polled(consumer, 2, columns=["queueOffset", "body", "bodyError"])
        assert "gives one of 'orders', queue 1" in str(rows[0]["bodyError"])
        assert (rows[0]["queueOffset"], rows[1]["body"]) == (0, b"sound")

    on_cluster(scenario)


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        (["bdy"], "did you mean body?"),
        (["body", "Body"], "twice"),
        ([], "names none"),
        ("body", "a list of names"),
    ],
)
def test_a_column_that_no_topic_has_is_refused(columns: list[str], complaint: str) -> None:
    async def scenario(c: Cluster) -> None:
        async with member(c) as consumer:
            with pytest.raises(InvalidRequest, match=complaint):
                await consumer.poll_arrow(columns=columns)

    on_cluster(scenario)


def test_a_filter_hook_has_no_messages_to_look_at() -> None:
    odd = bolide.Hooks(keep_message=lambda message: message.queue_offset % 2 == 1)

    async def scenario(c: Cluster) -> None:
        async with member(c, hooks=[odd]) as consumer:
            with pytest.raises(InvalidRequest, match="filter hook"):
                await consumer.poll_arrow()

    on_cluster(scenario)


# ---- pyarrow ---------------------------------------------------------------------------------------------------


def test_clients_are_imported_without_pyarrow() -> None:
    code = "import sys, bolide.aio; bolide.Producer; bolide.LitePullConsumer; print('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_where_pyarrow_is_absent_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.compute", None)

    async def scenario(c: Cluster) -> None:
        async with aio.Producer(c.nameserver.address) as producer, member(c) as consumer:
            with pytest.raises(RequirementMissing, match=r"send_arrow needs pyarrow.*bolide\[arrow\]"):
                await producer.send_arrow(object(), topic="orders")
            with pytest.raises(RequirementMissing, match=r"poll_arrow needs pyarrow.*bolide\[arrow\]"):
                await consumer.poll_arrow()

    on_cluster(scenario)
