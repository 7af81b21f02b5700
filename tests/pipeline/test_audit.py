"""The audit of an archive: equal when it is, and otherwise which offsets of which queue, and which files."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from bolide import Message, Producer
from bolide.model.offsets import MessageQueue
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.archive.audit import Stored, ask_stored, compared, prove
from bolide.pipeline.archive.compare import Audit
from bolide.pipeline.archive.place import DELTA, PARQUET, Place, open_or_make
from bolide.pipeline.archive.read import committed
from bolide.pipeline.archive.spans import Span
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_MS
from tests.pipeline.archive_rows import message, opened, rows
from tests.pipeline.conftest import Bolide

pytestmark = pytest.mark.needs("java")

FIRST, SECOND = MessageQueue("orders", "broker-a", 0), MessageQueue("orders", "broker-a", 1)
ALL = Stored({FIRST: Span(2, 6), SECOND: Span(0, 6)})


def audit(spark: SparkSession, place: Place, stored: Stored = ALL, nameserver: str = "") -> Audit:
    state = committed(place)
    topics = sorted({queue.topic for queue in stored.ends})
    queues = compared(stored, state, topics, has_group=bool(stored.consumed))
    deep = stored if nameserver else None
    return prove(spark, place, state, queues, topics=None, deep=deep, cluster=ClusterAccess(nameserver))


def told(found: Audit) -> list[tuple[int, str, str]]:
    """Queue, offsets and what is wrong with them."""
    return [
        (one.queue.queue_id, str(finding.span), finding.kind.value)
        for one in found.queues
        for finding in sorted(one.findings)
    ]


@pytest.fixture(scope="module", params=[PARQUET, DELTA])
def sound(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Place:
    """Two batches of two queues, a file for each queue and batch."""
    place = open_or_make(tmp_path_factory.mktemp("audit") / "a", request.param)
    archive = opened(place)
    for begin in (0, 3):
        numbers = range(begin, begin + 3)
        archive.append(rows(spark, [message(at, queue=queue) for queue in (0, 1) for at in numbers]))
    return place


@pytest.fixture
def place(sound: Place, tmp_path: Path) -> Place:
    """A copy to be damaged."""
    shutil.copytree(sound.folder, tmp_path / "a")
    return Place(tmp_path / "a", sound.format)


def file_with(place: Place, queue: int, offset: int) -> Path:
    for file in sorted(place.data.rglob("*.parquet")):
        found = pq.ParquetFile(file).read(["queueId", "queueOffset"]).to_pylist()
        if {"queueId": queue, "queueOffset": offset} in found:
            return file
    raise AssertionError("no file has it")


def rewrite(file: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.ParquetFile(file).read()), file)


def test_an_archive_that_has_what_is_stored_is_equal(spark: SparkSession, sound: Place) -> None:
    """What has expired and is archived is no gap."""
    assert audit(spark, sound).is_equal
    gone = audit(spark, sound, Stored())
    assert gone.is_equal
    assert [one.stored for one in gone.queues] == []


def test_a_removed_file_is_named_with_the_offsets_that_it_had(spark: SparkSession, place: Place) -> None:
    file = file_with(place, 1, 4)
    file.unlink()
    found = audit(spark, place)
    assert [(one.path, one.problem) for one in found.files] == [
        (str(file.relative_to(place.data)), "missing")
    ]
    assert told(found) == [(1, "3..5", "missing")]


def test_a_doubled_row_is_found(spark: SparkSession, place: Place) -> None:
    rewrite(file_with(place, 0, 1), lambda table: pa.concat_tables([table, table.slice(1, 1)]))
    assert told(audit(spark, place)) == [(0, "1", "doubled")]


def test_a_changed_body_is_found_in_its_range(spark: SparkSession, place: Place) -> None:
    def change(table: pa.Table) -> pa.Table:
        bodies = [b"something else", *table["body"].to_pylist()[1:]]
        return table.set_column(table.schema.get_field_index("body"), table.schema.field("body"), [bodies])

    rewrite(file_with(place, 1, 3), change)
    found = audit(spark, place)
    assert told(found) == [(1, "3..5", "changed")]
    assert found.files == []


def test_a_file_that_cannot_be_read_is_named(spark: SparkSession, place: Place) -> None:
    file = file_with(place, 0, 0)
    content = bytearray(file.read_bytes())
    content[4:-200] = bytes(len(content) - 204)
    file.write_bytes(content)
    found = audit(spark, place)
    assert [one.problem for one in found.files] == ["unreadable"]
    assert told(found) == [(0, "0..2", "missing")]


def test_gaps_are_told_from_what_is_stored_still_and_what_is_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = open_or_make(tmp_path / "a")
    opened(place).append(rows(spark, [message(at) for at in (2, 3, 6, 9)]))
    opened(place).append(rows(spark, [message(at, queue=1) for at in range(3)]))
    stored = Stored({FIRST: Span(5, 12), SECOND: Span(0, 2)}, {FIRST: 7, SECOND: None})
    assert told(audit(spark, place, stored)) == [
        (0, "4", "lost"),
        (0, "5", "not-archived"),
        (0, "7..8", "not-archived"),
        (0, "7..11", "not-consumed"),
        (0, "10..11", "not-archived"),
        (1, "0..1", "not-consumed"),
        (1, "2", "beyond-the-end"),
    ]


def test_a_file_that_nobody_committed_is_named(spark: SparkSession, tmp_path: Path) -> None:
    """A plain read of the folder has its rows."""
    place = open_or_make(tmp_path / "a")
    opened(place).append(rows(spark, [message(at) for at in range(3)]))
    file = next(place.data.rglob("*.parquet"))
    shutil.copy(file, file.with_name("more.parquet"))
    found = audit(spark, place, Stored({FIRST: Span(0, 3)}))
    assert [(Path(one.path).name, one.problem) for one in found.files] == [("more.parquet", "foreign")]
    assert told(found) == []


def test_a_deep_audit_finds_what_the_topic_says_otherwise(
    spark: SparkSession, server: EmbeddedServer, tmp_path: Path
) -> None:
    """The manifest agrees with the files, and both with the offsets of the topic: only its messages tell."""
    queue = MessageQueue("audited", "broker-a", 0)
    with Producer(server.nameserver, group="shop", timeout_ms=PATIENCE_MS) as producer:
        for number in range(6):
            producer.send(Message("audited", b"%d" % number), queue=queue)
    options = {"nameserver": server.nameserver, "subscribe": "audited"}
    topic = spark.read.format("rocketmq").options(**options).load()
    for name, change, expected in (
        ("same", "body", []),
        ("other", "if(queueOffset = 3, cast('!' AS binary), body)", [(0, "3", "differs")]),
    ):
        place = open_or_make(tmp_path / name)
        opened(place).append(topic.selectExpr("* EXCEPT (body)", f"{change} AS body"))
        stored = asked(server, ["audited"])
        assert told(audit(spark, place, stored)) == []
        assert told(audit(spark, place, stored, server.nameserver)) == expected


@pytest.mark.parametrize("named", [(), ("elsewhere",)])
def test_a_topic_that_no_broker_has_is_not_equal_unless_somebody_says_that_it_was_deleted(
    bolide: Bolide, spark: SparkSession, tmp_path: Path, named: Sequence[str]
) -> None:
    """The name server may be that of another cluster: then nothing was compared."""
    place = open_or_make(tmp_path / "a")
    opened(place).append(rows(spark, [message(at, topic="elsewhere") for at in range(3)]))
    asked = ("audit", *named, "--archive", str(place.folder), "--deep", "--group", "readers")
    shown = bolide(*asked, code=1)
    assert "elsewhere@broker-a:0: 0..2 (3 messages): archived, and not compared" in shown
    assert "--deleted" in shown
    assert "all equal: 1 queue" in bolide(*asked, "--deleted", "elsewhere")


def test_what_is_archived_while_an_audit_looks_is_no_foreign_file(
    bolide: Bolide,
    spark: SparkSession,
    server: EmbeddedServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {"nameserver": server.nameserver, "subscribe": "audit-beside"}
    queue = MessageQueue("audit-beside", "broker-a", 0)
    archive = opened(open_or_make(tmp_path / "a"))

    def archive_more() -> None:
        with Producer(server.nameserver, group="shop", timeout_ms=PATIENCE_MS) as producer:
            producer.send(Message("audit-beside", b"one"), queue=queue)
        archive.append(spark.read.format("rocketmq").options(**options).load())

    def prove_late(*words: Any, **more: Any) -> Audit:
        if len(looks) == 0:
            archive_more()
        looks.append(prove(*words, **more))
        return looks[-1]

    archive_more()
    looks: list[Audit] = []
    monkeypatch.setattr("bolide.pipeline.archive.audit.prove", prove_late)
    shown = bolide("audit", "--archive", str(tmp_path / "a"))
    assert "all equal" in shown
    assert [found.is_equal for found in looks] == [False, True]


def asked(server: EmbeddedServer, topics: Sequence[str]) -> Stored:
    return asyncio.run(ask_stored(ClusterAccess(server.nameserver), topics, None))
