"""`bolide send`, `tail` and `bench` against the original servers, 5.5.0 and 4.9.7."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers import java
from tests.peers.apache import CAPABLE, Apache
from tests.peers.server import Together
from tests.system.command import run

pytestmark = pytest.mark.needs("java", "mvn")

ROWS = 3_000


@pytest.fixture(scope="module", params=java.VERSIONS, ids=lambda version: f"server-{version}")
def apache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    server = Together(Apache(request.param), tmp_path_factory.mktemp("apache"), CAPABLE).start()
    yield server
    server.kill()  # its orderly stop takes ten seconds and more


def test_rows_are_stored_once_each_and_read_by_format_sql_and_group(apache: Together, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = [
        {"body": f"row {number}", "keys": [f"k{number}"], "properties": {"number": str(number)}}
        for number in range(ROWS)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    at = ("-n", apache.nameserver)
    sent = run("send", "rows", "--file", str(file), *at)
    assert (sent.code, f"sent {ROWS} messages" in sent.err) == (0, True), sent.err
    everything = ("--since", "beginning", "--no-follow", *at)
    shown = run("tail", "rows", "-f", "{keys} {body}", *everything)
    assert sorted(shown.out.splitlines()) == sorted(f"k{number} row {number}" for number in range(ROWS))
    last = run("tail", "rows", "--sql", f"number >= {ROWS - 2}", *everything)
    assert sorted(last.out.splitlines()) == [f"row {ROWS - 2}", f"row {ROWS - 1}"], last.err
    as_member = ("tail", "rows", "--group", "row-readers", *everything)
    assert len(run(*as_member).out.splitlines()) == ROWS
    assert run(*as_member).out == ""


@pytest.mark.parametrize(
    "words", [["produce"], ["produce", "--sync"], ["consume"], ["latency"]], ids=" ".join
)
def test_a_benchmark_runs_to_its_end_and_deletes_its_topic(apache: Together, words: list[str]) -> None:
    at = ("-n", apache.nameserver)
    told = run("bench", *words, "--count", "200", "--seconds", "120", "--json", *at)
    assert told.code == 0, told.err
    result = json.loads(told.out)
    assert (result["messages"], result["failed"]) == (200, 0)
    assert result["bottleneck_text"]
    assert "bolide-bench-" not in run("topic", "list", *at).out


def test_a_topic_is_made_described_and_made_larger(apache: Together) -> None:
    at = ("-n", apache.nameserver)
    assert run("topic", "create", "made", "--queues", "2", *at).code == 0
    assert run("topic", "create", "made", "--queues", "2", *at).code == 1
    changed = run("topic", "update", "made", "--queues", "3", *at)
    assert changed.code == 0, changed.err
    told = json.loads(run("topic", "describe", "made", "--json", *at).out)
    assert len(told["queues"]) == 3
