"""`bolide pipeline` as far as it goes without Spark: init, check, status, and what every command refuses."""

import json
from pathlib import Path

import pytest

from bolide import Message, Producer
from bolide.testing import EmbeddedServer
from tests.unit.cli.conftest import Command


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("file", ["pipeline.yaml", "orders.yml", "orders.py"])
def test_init_writes_a_sound_pipeline_and_overwrites_nothing(command: Command, here: Path, file: str) -> None:
    command("pipeline", "init", file)
    assert "is sound: 1 source, 2 steps, 2 sinks" in command("pipeline", "check", file).out
    before = (here / file).read_text()
    assert "is there already" in command("pipeline", "init", file, code=1).err
    assert (here / file).read_text() == before
    assert "neither YAML" in command("pipeline", "init", "orders.txt", code=2).err


def test_check_tells_everything_with_lines_and_ends_with_1(command: Command, here: Path) -> None:
    (here / "bad.yaml").write_text(
        "nme: x\nsources:\n  a: {topic: a, nameserver: 'x:1'}\nsinks:\n  b: {from: c, path: p}\n"
    )
    told = command("pipeline", "check", "bad.yaml", code=1).out.splitlines()
    assert told[0] == "bad.yaml:1: a pipeline has no key 'nme': did you mean name?"
    assert any(line.startswith("bad.yaml:5: the sink b gets rows of c") for line in told)
    found = command("pipeline", "check", "bad.yaml", "--json", code=1).json
    assert found["problems"][0] == {"line": 1, "text": told[0].split(": ", 1)[1], "is_warning": False}


@pytest.mark.parametrize("verb", ["run", "explain", "status"])
def test_a_file_with_errors_starts_nothing(command: Command, here: Path, verb: str) -> None:
    (here / "bad.yaml").write_text("name: x\n")
    shown = command("pipeline", verb, "bad.yaml", code=2)
    assert "bad.yaml:1: the pipeline has no sources" in shown.err
    assert "bad.yaml has 2 errors, so nothing was started" in shown.err
    assert "bolide pipeline init" in command("pipeline", verb, "missing.yaml", code=4).err


def test_status_holds_a_checkpoint_against_the_brokers(
    command: Command, here: Path, bolide_session_server: EmbeddedServer
) -> None:
    command("topic", "create", "piped", "--queues", "2")
    with Producer(bolide_session_server.nameserver, group="tests") as producer:
        for number in range(6):
            producer.send(Message("piped", b"%d" % number))
    (here / "piped.yaml").write_text(
        "checkpoint: cp\nnameserver: ${BOLIDE_NAMESERVER}\n"
        "sources: {piped: {topic: piped}}\nsinks: {out: {from: piped, path: out}}\n"
    )
    assert command("pipeline", "status", "piped.yaml").out.split() == ["piped:", "never", "run"]
    query = here / "cp" / "queries" / "out"
    for kind in ("offsets", "commits"):
        (query / kind).mkdir(parents=True)
    place = {"piped": {"broker-a": {"0": {"offset": 2}, "1": {"offset": 3}}}}
    (query / "offsets" / "4").write_text(f'v1\n{{"batchTimestampMs": 1700000000000}}\n{json.dumps(place)}')
    (query / "commits" / "4").write_text("v1\n{}")
    (query / "offsets" / "5").write_text("v1\n{}\n{}")
    found = command("pipeline", "status", "piped.yaml", "--json").json
    (one,) = found["queries"]
    assert (found["state"], one["batch"], one["in_hand"], one["behind"]) == ("stopped", 4, 5, 1)
    assert one["waits_ms"] >= 0
    assert [queue["behind"] for queue in one["queues"]] == [1, 0]
    shown = command("pipeline", "status", "piped.yaml", "--queues").out
    assert "piped" in shown
    assert "2023-11-14" in shown
