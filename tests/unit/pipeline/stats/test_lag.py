"""The history of lag: only ever added to, and read whatever is in it."""

from dataclasses import replace
from pathlib import Path

import pytest

from bolide.pipeline.stats import lag
from bolide.pipeline.stats.lag import add_to_history, read_history
from tests.unit.pipeline.stats.samples import LAG

GROUPS, TOPICS = ["billing"], ["orders"]


def behind(file: Path) -> list[int]:
    return [sample.behind for sample in read_history(file, GROUPS, TOPICS)[0]]


def test_every_report_adds_a_sample_and_reads_all(tmp_path: Path) -> None:
    file = tmp_path / "lag.jsonl"
    for number in (3, 1, 2):
        add_to_history(file, [replace(LAG, behind=number)], now_ms=number * 1000)
    samples, unread = read_history(file, GROUPS, TOPICS)
    assert [(sample.at_ms, sample.behind) for sample in samples] == [(1000, 1), (2000, 2), (3000, 3)]
    assert unread == 0


def test_only_the_groups_and_topics_of_the_report_are_read_and_their_retries(tmp_path: Path) -> None:
    file = tmp_path / "lag.jsonl"
    others = [replace(LAG, group="other"), replace(LAG, topic="other"), replace(LAG, topic="%RETRY%billing")]
    add_to_history(file, [LAG, *others], now_ms=1)
    assert [one.topic for one in read_history(file, GROUPS, TOPICS)[0]] == ["orders", "%RETRY%billing"]


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"[]",
        b"{}",
        b"7",
        b'{"at_ms": "x", "group": "billing", "topic": "orders", "behind": 1, "waits_ms": 1}',
        b'{"at_ms": 1, "group": 7, "topic": "orders", "behind": 1, "waits_ms": 1}',
        b'{"at_ms": 1, "group": "billing", "topic": "orders", "behind": -1, "waits_ms": 1}',
        b'{"at_ms": 1, "group": "billing", "topic": "orders", "behind": true, "waits_ms": 1}',
        b'{"at_ms": 1, "group": "billing", "topic": "orders", "behind": 1e400, "waits_ms": 1}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_lines_that_cannot_be_read_are_counted_and_kept(tmp_path: Path, line: bytes) -> None:
    file = tmp_path / "lag.jsonl"
    file.write_bytes(line)  # without its end, as a crash may have left it
    add_to_history(file, [LAG], now_ms=5)
    samples, unread = read_history(file, GROUPS, TOPICS)
    assert ([sample.at_ms for sample in samples], unread) == ([5], 1)
    assert file.read_bytes().startswith(line + b"\n")


def test_of_a_long_history_the_newest_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "lag.jsonl"
    for number in range(20):
        add_to_history(file, [replace(LAG, behind=number)], now_ms=number)
    monkeypatch.setattr(lag, "STATS_HISTORY_BYTES_MAX", file.stat().st_size // 2)
    assert behind(file)[-1] == 19
    assert 5 < len(behind(file)) < 12
    assert read_history(file, GROUPS, TOPICS)[1] == 0
