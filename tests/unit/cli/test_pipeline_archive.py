"""`bolide pipeline archive` and `audit` as far as they go without Spark."""

from pathlib import Path

import pytest

from bolide import Message, Producer, PullConsumer
from bolide.cli import pipeline_archive
from bolide.pipeline.archive.place import Place, open_or_make
from bolide.pipeline.archive.run import Done
from bolide.pipeline.archive.wanted import Wanted
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.run import Stop
from bolide.testing import EmbeddedServer
from tests.unit.cli.conftest import Command


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--to", "PLACE", "--format", "orc"], "--format is one of parquet, delta"),
        (["--to", "PLACE", "--trigger", "soon"], "--trigger: 'soon' is no span of time"),
        (["--to", "s3://bucket/a"], "mount the s3 storage"),
        (["--to", "PLACE", "--spark", "nonsense"], "--spark"),
        (["--to", "PLACE", "--once", "--trigger", "1 minute"], "--trigger has no use"),
        (["--to", "PLACE", "--file-size", "64"], "--file-size is for --compact"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_made(
    command: Command, tmp_path: Path, words: list[str], told: str
) -> None:
    place = tmp_path / "a"
    given = [word.replace("PLACE", str(place)) for word in words]
    assert told in command("pipeline", "archive", "orders", *given, code=2).err
    assert not place.exists()


def test_a_topic_that_is_not_there_makes_no_archive(command: Command, tmp_path: Path) -> None:
    shown = command("pipeline", "archive", "archive-none", "--to", str(tmp_path / "a"), code=4)
    assert "archive-none" in shown.err
    assert not (tmp_path / "a").exists()


def test_an_archive_that_somebody_writes_to_is_refused_before_spark_is_started(
    command: Command, tmp_path: Path
) -> None:
    place = open_or_make(tmp_path / "a")
    with place.held():
        shown = command("pipeline", "archive", "orders", "--to", str(place.folder), code=2)
    assert "somebody else writes to this archive" in shown.err
    assert "starting Spark" not in shown.err


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--once",), 130)])
def test_a_run_that_ends_before_all_is_read_says_so_where_all_was_asked_for(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int
) -> None:
    def stopped(place: Place, kept: Checkpoint, wanted: Wanted, stop: Stop, *more: object) -> Done:
        stop.ask()
        return Done({})

    monkeypatch.setattr(pipeline_archive, "_run", stopped)
    command("topic", "create", "archive-stopped", "--if-not-exists")
    command("pipeline", "archive", "archive-stopped", "--to", str(tmp_path / "a"), *words, code=code)


def test_an_empty_archive_is_nothing_to_compare(command: Command, tmp_path: Path) -> None:
    place = open_or_make(tmp_path / "a")
    shown = command("pipeline", "audit", "--archive", str(place.folder), code=4)
    assert "there is nothing to compare" in shown.err


def test_an_audit_says_what_it_needs(command: Command, tmp_path: Path) -> None:
    assert "--archive, --group or both" in command("pipeline", "audit", "orders", code=2).err
    assert "give topics" in command("pipeline", "audit", "--group", "g", code=2).err
    assert "is no archive" in command("pipeline", "audit", "--archive", str(tmp_path), code=4).err
    deleted = ("pipeline", "audit", "orders", "--group", "g", "--deleted", "orders")
    assert "--deleted is about archived topics" in command(*deleted, code=2).err
    assert "audit-none" in command("pipeline", "audit", "audit-none", "--group", "g", code=4).err


def test_an_audit_without_an_archive_compares_stored_and_consumed(
    command: Command, bolide_module_server: EmbeddedServer
) -> None:
    command("topic", "create", "audit-plain", "--queues", "2")
    command("group", "create", "audit-group")
    nameserver = bolide_module_server.nameserver
    with Producer(nameserver, group="tests") as producer:
        for number in range(6):
            producer.send(Message("audit-plain", b"%d" % number))
    with PullConsumer(nameserver, group="audit-group") as consumer:
        first, second = sorted(consumer.queues("audit-plain"))
        consumer.commit(first, consumer.max_offset(first))
        consumer.commit(second, 1)
        shown = command("pipeline", "audit", "audit-plain", "--group", "audit-group", code=1)
        assert "audit-plain@broker-a:1: 1..2 (2 messages): stored, and not consumed" in shown.out
        found = command("pipeline", "audit", "audit-plain", "--group", "audit-group", "--json", code=1).json
        assert [queue["findings"] for queue in found["queues"]] == [
            [],
            [{"kind": "not-consumed", "first": 1, "end": 3}],
        ]
        consumer.commit(second, consumer.max_offset(second))
    assert "all equal: 2 queues" in command("pipeline", "audit", "audit-plain", "--group", "audit-group").out
