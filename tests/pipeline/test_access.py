"""Pipelines on a cluster that demands an account and TLS: as whom the command says, and its secret is in no file."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bolide import Message, Producer, PullConsumer, PushConsumer, StoredMessage
from bolide.cli.main import main
from bolide.model.errors import RouteNotFound
from tests.peers.secured import ALICE, Secured, secured_apache
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until
from tests.pipeline.conftest import Bolide

pytestmark = pytest.mark.needs("java", "mvn", "openssl")

COUNT = 20


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_apache(tmp_path_factory.mktemp("apache")) as server:
        bury(server, "sec-orders", "sec-billing")
        yield server


def bury(server: Secured, topic: str, group: str) -> None:
    """Messages of a topic that are all dead letters of a group too."""

    def fail(messages: list[StoredMessage]) -> None:
        raise ValueError("as tests want it")

    with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS, **server.options) as producer:
        for number in range(COUNT):
            producer.send(Message(topic, b"%d" % number, "paid", [f"k{number}"]))
    with PushConsumer(
        server.nameserver, group=group, listener=fail, start_from="first", attempts_max=0, **server.options
    ) as consumer:
        consumer.subscribe(topic)
        for name in (f"%DLQ%{group}", topic):
            wait_until(lambda name=name: stored(server, name) == COUNT, PATIENCE_SECONDS, f"{name} is whole")  # type: ignore[misc]


def stored(server: Secured, topic: str) -> int:
    with PullConsumer(server.nameserver, **server.options) as reader:
        try:
            return sum(int(reader.max_offset(queue)) for queue in reader.queues(topic))
        except RouteNotFound:
            return 0


@pytest.fixture
def signed(
    bolide: Bolide, apache: Secured, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """`bolide --access-key … pipeline …`, which never says the secret."""
    monkeypatch.setenv("BOLIDE_NAMESERVER", apache.nameserver)

    def signed(*words: str, code: int = 0, before: list[str] | None = None) -> Any:
        capfd.readouterr()
        ended = main([*(apache.words if before is None else before), "pipeline", *words])
        shown = capfd.readouterr()
        assert ended == code, shown.err
        assert ALICE.secret_key not in shown.out + shown.err
        return json.loads(shown.out) if "--json" in words and shown.out else shown.out + shown.err

    return signed


def files_with_the_secret(folder: Path) -> list[Path]:
    secret = ALICE.secret_key.encode()
    return [path for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


def test_every_ready_made_pipeline_is_let_in_as_whom_the_command_says(
    signed: Callable[..., Any], apache: Secured, tmp_path: Path
) -> None:
    archived = signed("archive", "sec-orders", "--to", "archive", "--once", "--json")
    assert archived["topics"]["sec-orders"]["rows"] == COUNT
    audit = ("audit", "sec-orders", "--archive", "archive")
    assert "all equal" in signed(*audit, "--deep")

    replay = ("replay", "--from-topic", "sec-orders", "--to", "sec-copy", "--id", "r1")
    assert signed(*replay, "--preview", "--json")["messages"] == COUNT
    assert signed(*replay, "--yes", "--json")["sent"] == COUNT
    wait_until(lambda: stored(apache, "sec-copy") == COUNT, PATIENCE_SECONDS, "the copies are there")

    stats = ("stats", "sec-orders", "--group", "sec-billing", "--lag-history", "lag.jsonl")
    report = signed(*stats, "--html", "page.html", "--parquet", "tables", "--json")
    assert report["topics"][0]["messages"] == COUNT
    assert [lag["group"] for lag in report["lag"]]

    assert signed("dlq", "report", "sec-billing", "--json")["letters"] == COUNT
    assert signed("dlq", "plan", "sec-billing", "--output", "plan.json", "--json")["letters"] == COUNT
    redrive = ("dlq", "redrive", "plan.json", "--to", "sec-again")
    assert signed(*redrive, "--yes", "--json")["sent"] == COUNT

    assert f"out: {COUNT} rows" in signed("dedup", "sec-orders", "--to", "sec-once", "--by", "key", "--once")
    wait_until(lambda: stored(apache, "sec-once") == COUNT, PATIENCE_SECONDS, "each of them is there once")
    assert not files_with_the_secret(tmp_path)


def test_a_declared_pipeline_is_let_in_too_where_its_file_says_nothing(
    signed: Callable[..., Any], apache: Secured, tmp_path: Path
) -> None:
    (tmp_path / "copy.yaml").write_text(
        f"nameserver: {apache.nameserver}\ncheckpoint: cp\n"
        "sources: {orders: {topic: sec-orders, options: {startingOffsets: earliest}}}\n"
        "steps: {bodies: {sql: SELECT body FROM orders}}\n"
        "sinks: {copies: {from: bodies, topic: sec-copies}, files: {from: orders, path: out}}\n"
    )
    assert "source orders" in signed("explain", "copy.yaml", "--plan")
    assert f"copies: {COUNT} rows" in signed("run", "copy.yaml", "--once")
    wait_until(lambda: stored(apache, "sec-copies") == COUNT, PATIENCE_SECONDS, "the copies are there")
    found = signed("status", "copy.yaml", "--json")
    assert (found["state"], [query["behind"] for query in found["queries"]]) == ("finished", [0, 0])
    assert not files_with_the_secret(tmp_path)


def test_whoever_has_another_secret_is_refused_and_hears_why_without_it(
    signed: Callable[..., Any], apache: Secured, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("a guess")
    before = [*apache.words, "--secret-key-file", str(wrong)]
    for words in (
        ("archive", "sec-orders", "--to", "archive", "--once"),
        ("stats", "sec-orders"),
        ("dlq", "report", "sec-billing"),
    ):
        said = signed(*words, code=1, before=before)
        assert "NO_PERMISSION" in said
        assert "a guess" not in said
    nobody = ["--tls-ca-file", str(apache.ca)]
    assert "NO_PERMISSION" in signed("stats", "sec-orders", code=1, before=nobody)
