"""`bolide pipeline stats` as far as it goes without Spark: what it refuses, and that it does so at once."""

from dataclasses import replace
from pathlib import Path

import pytest

from bolide import Message, Producer
from bolide.cli import pipeline_stats_tables
from bolide.testing import EmbeddedServer
from tests.unit.cli.conftest import Command
from tests.unit.pipeline.stats.samples import NOTHING, REPORT


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*words: object, **named: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("bolide.pipeline.session.local_session", refuse)


@pytest.fixture
def topic(bolide_module_server: EmbeddedServer) -> str:
    with Producer(bolide_module_server.nameserver, group="tests") as producer:
        producer.send(Message("counted", b"x"))
    return "counted"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name the topics"),
        (["counted", "--since", "1h", "--until", "2h"], "is not before --until"),
        (["counted", "--since", "end"], "a report of nothing"),
        (["counted", "--window", "200 ms"], "a second wide, or wider"),
        (["counted", "--window", "soon"], "is no span"),
        (["counted", "--store", ".", "--group", "g"], "leave one out"),
        (["counted", "--archive", ".", "--group", "g"], "leave one out"),
        (["counted", "--archive", ".", "--store", "."], "two places to read"),
        (["counted", "--archive", "s3://x/y"], "mount the s3 storage"),
        (["counted", "--lag-history", "x"], "name them with --group"),
        (["counted", "--html", "nowhere/x.html"], "there is no directory nowhere"),
        (["counted", "--html", "."], "is a directory"),
        (["counted", "--parquet", "file"], "is a file"),
        (["counted", "--spark", "spark.x"], "spark.x"),
        (["counted", "--top", "1001"], "1000"),
        (["bad name"], "bad name"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_asked(
    command: Command, words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert told in command("pipeline", "stats", *words, code=2).err


def test_what_does_not_exist_is_code_4(command: Command, topic: str, tmp_path: Path) -> None:
    assert "did you mean counted?" in command("pipeline", "stats", "countd", code=4).err
    assert "has a group 'nobody'" in command("pipeline", "stats", topic, "--group", "nobody", code=4).err
    assert str(tmp_path) in command("pipeline", "stats", "--store", str(tmp_path), code=4).err
    assert "is no archive" in command("pipeline", "stats", "--archive", str(tmp_path), code=4).err


def test_a_history_that_is_refused_is_not_touched(command: Command, topic: str, tmp_path: Path) -> None:
    history = tmp_path / "lag.jsonl"
    command("pipeline", "stats", topic, "--group", "nobody", "--lag-history", str(history), code=4)
    assert not history.exists()


def test_tables_for_people_have_the_figures_and_what_is_odd(capsys: pytest.CaptureFixture[str]) -> None:
    pipeline_stats_tables.write_report(REPORT)
    shown = capsys.readouterr().out
    assert "12345" in shown
    assert "12 messages were stored before they were born, by up to 35 ms" in shown
    assert "customer-7 (900)" in shown
    assert "the busiest of 2 queues has 1.19 times the mean: even" in shown
    assert "billing" in shown


def test_an_empty_topic_is_a_line_without_figures(capsys: pytest.CaptureFixture[str]) -> None:
    pipeline_stats_tables.write_report(replace(REPORT, topics=[NOTHING], lags=()))
    assert "no messages" in capsys.readouterr().out
