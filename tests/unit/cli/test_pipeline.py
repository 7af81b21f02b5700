"""`bolide pipeline` as far as it goes without Spark: init, check, status, and what every command refuses."""

import json
from pathlib import Path

import pytest

from bolide import Message, Producer
from bolide.pipeline.dead_letters.plan import write_plan
from bolide.testing import EmbeddedServer
from tests.peers.ports import free_port
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
    assert "bolide pipeline init" in command("pipeline", verb, "missing.yaml", code=2).err


PIPED = (
    "checkpoint: cp\nnameserver: ${BOLIDE_NAMESERVER}\n"
    "sources: {piped: {topic: piped}}\nsinks: {out: {from: piped, path: out}}\n"
)


def test_a_new_pipeline_whose_topics_are_not_there_starts_no_spark(
    command: Command, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark would say the same a minute later, and with a status that says nothing."""
    monkeypatch.setattr("bolide.pipeline.declared.run.session_for", None)
    (here / "piped.yaml").write_text(PIPED)
    monkeypatch.setenv("BOLIDE_NAMESERVER", f"127.0.0.1:{free_port()}")
    assert "starting Spark" not in command("pipeline", "run", "piped.yaml", code=3).err
    with EmbeddedServer() as server:
        monkeypatch.setenv("BOLIDE_NAMESERVER", server.nameserver)
        with Producer(server.nameserver, group="tests") as producer:
            producer.send(Message("pipes", b"1"))
        assert "did you mean pipes?" in command("pipeline", "run", "piped.yaml", code=4).err
        assert "did you mean pipes?" in command("pipeline", "dedup", "piped", "--to", "x", code=4).err
    assert not (here / "cp").exists()


def write_piped(here: Path) -> None:
    """A pipeline and its checkpoint, as Spark leaves it when batch 4 is done and batch 5 in hand."""
    (here / "piped.yaml").write_text(PIPED)
    query = here / "cp" / "queries" / "out"
    for kind in ("offsets", "commits"):
        (query / kind).mkdir(parents=True)
    place = {"piped": {"broker-a": {"0": {"offset": 2}, "1": {"offset": 3}}}}
    (query / "offsets" / "4").write_text(f'v1\n{{"batchTimestampMs": 1700000000000}}\n{json.dumps(place)}')
    (query / "commits" / "4").write_text("v1\n{}")
    (query / "offsets" / "5").write_text("v1\n{}\n{}")


def test_status_holds_a_checkpoint_against_the_brokers(
    command: Command, here: Path, bolide_module_server: EmbeddedServer
) -> None:
    command("topic", "create", "piped", "--queues", "2", "--if-not-exists")
    with Producer(bolide_module_server.nameserver, group="tests") as producer:
        for number in range(6):
            producer.send(Message("piped", b"%d" % number))
    (here / "piped.yaml").write_text(PIPED)
    assert command("pipeline", "status", "piped.yaml").out.split() == ["piped:", "never", "run"]
    write_piped(here)
    found = command("pipeline", "status", "piped.yaml", "--json").json
    (one,) = found["queries"]
    assert (found["state"], one["batch"], one["in_hand"], one["behind"]) == ("stopped", 4, 5, 1)
    assert one["waits_ms"] >= 0
    assert [queue["behind"] for queue in one["queues"]] == [1, 0]
    shown = command("pipeline", "status", "piped.yaml", "--queues").out
    assert "piped" in shown
    assert "2023-11-14" in shown


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize(
    ("state", "shown", "code"),
    [
        ("failed", "failed", 1),
        ("running", "killed", 1),
        ("stopped", "stopped", 0),
        ("finished", "finished", 0),
    ],
)
def test_status_ends_with_1_for_a_pipeline_that_did_not_end_in_order(
    command: Command, here: Path, form: tuple[str, ...], state: str, shown: str, code: int
) -> None:
    """What was written down as running, and holds no lock, was killed."""
    (here / "piped.yaml").write_text(PIPED)
    (here / "cp").mkdir()
    (here / "cp" / "state.json").write_text(json.dumps({"state": state, "error": "boom"}))
    assert shown in command("pipeline", "status", "piped.yaml", *form, code=code).out


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_status_ends_with_3_when_nobody_answers_and_still_tells_what_the_checkpoint_says(
    command: Command, here: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    monkeypatch.setenv("BOLIDE_NAMESERVER", f"127.0.0.1:{free_port()}")
    write_piped(here)
    said = command("pipeline", "status", "piped.yaml", *form, code=3)
    assert "stopped" in said.out
    assert "out: " in said.err
    (here / "cp" / "state.json").write_text(json.dumps({"state": "failed", "error": "boom"}))
    command("pipeline", "status", "piped.yaml", *form, code=1)


def test_status_ends_with_4_when_the_topic_is_gone(command: Command, here: Path) -> None:
    write_piped(here)
    (here / "piped.yaml").write_text(PIPED.replace("topic: piped", "topic: never-made"))
    for file in (here / "cp" / "queries" / "out" / "offsets").iterdir():
        file.write_text(file.read_text().replace("piped", "never-made"))
    assert "never-made" in command("pipeline", "status", "piped.yaml", code=4).err


@pytest.mark.parametrize(
    "words",
    [
        ("archive", "piped", "--to", "archive"),
        ("audit", "piped", "--group", "billing"),
        ("replay", "--from-topic", "piped", "--to", "again"),
        ("stats", "piped"),
        ("dlq", "report", "billing"),
        ("dlq", "plan", "billing", "--output", "new.json"),
        ("dlq", "redrive", "plan.json", "--preview"),
    ],
    ids=" ".join,
)
def test_a_ready_made_pipeline_does_not_go_without_the_tls_that_was_asked_for(
    command: Command, here: Path, words: tuple[str, ...]
) -> None:
    """The server has none, and hears nothing in the clear."""
    letter = {"broker": "broker-a", "queue": 0, "offset": 0, "id": "7F00", "to": "orders"}
    write_plan(here / "plan.json", "plan-1", "s", "billing", "now", {}, [letter])
    assert "does not speak TLS" in command("--tls", "pipeline", *words, code=3).err


@pytest.mark.parametrize(
    ("before", "options"),
    [(["--tls"], "startingOffsets: earliest"), ([], "tls: true")],
    ids=["command", "file"],
)
def test_status_asks_the_brokers_as_the_pipeline_does(
    command: Command, here: Path, before: list[str], options: str
) -> None:
    (here / "piped.yaml").write_text(
        "checkpoint: cp\nnameserver: ${BOLIDE_NAMESERVER}\n"
        f"sources: {{piped: {{topic: piped, options: {{{options}}}}}}}\nsinks: {{out: {{from: piped, path: out}}}}\n"
    )
    query = here / "cp" / "queries" / "out"
    for kind, text in (
        ("offsets", 'v1\n{}\n{"piped": {"broker-a": {"0": {"offset": 2}}}}'),
        ("commits", "v1\n{}"),
    ):
        (query / kind).mkdir(parents=True)
        (query / kind / "0").write_text(text)
    assert "does not speak TLS" in command(*before, "pipeline", "status", "piped.yaml", code=3).err


def test_what_a_recipe_prints_has_no_account(command: Command, here: Path) -> None:
    (here / "secret").write_text("very secret")
    before = ("--access-key", "ops", "--secret-key-file", "secret", "--tls")
    printed = command(*before, "pipeline", "dedup", "piped", "--to", "once", "--print").out
    assert "very secret" not in printed
    assert "ops" not in printed


def test_a_declared_pipeline_says_as_whom_it_reads_in_its_file(command: Command, here: Path) -> None:
    (here / "signed.yaml").write_text(
        "name: x\nsources:\n  a: {topic: a, nameserver: 'x:1', options: {accessKey: ops, secretKey: s, tls: true}}\n"
        "sinks:\n  b: {from: a, path: p}\n"
    )
    assert "is sound" in command("--tls", "pipeline", "check", "signed.yaml").out
