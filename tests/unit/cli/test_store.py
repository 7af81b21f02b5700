"""`bolide store …` as users run it, on a store that nobody has open."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from bolide.cli.main import main
from tests.unit.cli.samples import sample
from tests.unit.cli.shells import shell
from tests.unit.offline.damaged import MESSAGES, original, root, write_at
from tests.unit.offline.test_verify import record_at

__all__ = ["original", "root"]  # fixtures


class Run:
    """Runs commands; gives what one wrote to stdout and remembers what it wrote to stderr."""

    def __init__(self, shown: pytest.CaptureFixture[bytes]) -> None:
        self._shown = shown
        self.errors = ""

    def __call__(self, *words: object, code: int = 0) -> str:
        outcome = main(["store", *map(str, words)])
        shown = self._shown.readouterr()
        assert outcome == code, shown
        self.errors = shown.err.decode()
        return shown.out.decode()


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    return Run(capsysbinary)


def test_inspect_tells_what_is_there(root: Path, run: Run) -> None:
    shown = run("inspect", root)
    for word in ("clean stop", "orders", "payments", "billing", "index/", "topics.json", "checkpoint"):
        assert word in shown
    assert "payments" not in run("inspect", root, "--topic", "orders").split("TABLE")[0]


def test_inspect_as_json_is_one_document(root: Path, run: Run) -> None:
    found = json.loads(run("inspect", root, "--json", "--count"))
    assert found["clean"] is True
    assert sum(queue["messages"] for queue in found["queues"]) == MESSAGES
    assert sum(queue["records"] for queue in found["queues"]) == MESSAGES
    assert found["index"][0]["entries"] == 3 * MESSAGES
    assert found["groups"][0]["lag"] == 3
    assert found["tables"]["topics.json"]["counter"] == 3


@pytest.mark.parametrize("verb", ["verify", "verify --json", "repair"])
def test_a_verdict_on_a_store_does_not_depend_on_who_listens(root: Path, verb: str) -> None:
    path, at, _ = record_at(root, 5)
    write_at(path, at + 90, b"!")
    assert shell(f"bolide store {verb} {root} | true").returncode == 1


def test_verify_says_sound_with_code_0_and_damage_with_code_1(root: Path, run: Run) -> None:
    assert run("verify", root).startswith(f"sound: {MESSAGES} records")
    path, at, _ = record_at(root, 5)
    write_at(path, at + 90, b"!")
    shown = run("verify", root, code=1)
    assert f"DAMAGE commitlog/{path.name} at {at}" in shown
    lines = [json.loads(line) for line in run("verify", root, "--json", code=1).splitlines()]
    assert [line["kind"] for line in lines] == ["damage", "summary"]
    assert lines[-1]["sound"] is False


def test_repair_shows_first_and_does_it_when_told(root: Path, run: Run) -> None:
    assert run("repair", root) == ""
    path, at, _ = record_at(root, 5)
    write_at(path, at + 90, b"!")
    assert "bridge it" in run("repair", root, code=1)
    run("verify", root, code=1)
    assert "sound" in run("repair", root, "--apply")
    assert "lost" in run("verify", root)


def test_export_writes_lines_that_send_can_read(root: Path, run: Run, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in run("export", root, "-t", "orders").splitlines()]
    assert [line["body"] for line in lines] == [f"body of message {n:05d}" for n in range(0, MESSAGES, 2)]
    assert lines[0]["keys"] == ["k0"]
    assert lines[0]["storeTimestamp"] == "2023-11-14T22:13:21.000Z"
    run("export", root, "-t", "orders", "-o", tmp_path / "out.jsonl")
    assert [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()] == lines


def test_export_of_a_topic_that_is_not_there_says_so_and_writes_nothing(
    root: Path, run: Run, tmp_path: Path
) -> None:
    for output in ((), ("-o", tmp_path / "out.jsonl")):
        assert run("export", root, "-t", "nope", *output, code=4) == ""
        assert "has no topic 'nope'" in run.errors
    assert list(tmp_path.glob("out*")) == []


def test_export_leaves_out_what_is_unreadable_and_says_so(root: Path, run: Run) -> None:
    path, at, _ = record_at(root, 5)
    write_at(path, at + 90, b"!")
    assert len(run("export", root, code=1).splitlines()) == MESSAGES - 1


def test_bodies_that_are_no_text_are_base64() -> None:
    from bolide.cli.store_export import export_line

    assert json.loads(export_line(sample(body=b"\xff\x00")))["body_base64"] == "/wA="


def test_the_members_of_a_line_are_the_columns_of_the_spark_source() -> None:
    schema = pytest.importorskip("bolide.pipeline.schema")
    from bolide.cli.store_export import export_line

    bad = sample(body_error="it is cut off")
    assert [name.removesuffix("_base64") for name in json.loads(export_line(bad))] == list(schema.COLUMNS)
    assert [*schema.COLUMNS.keys() - json.loads(export_line(sample())).keys()] == ["bodyError"]


def test_parquet_has_the_same_messages(root: Path, run: Run, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run("export", root, "--format", "parquet", "-o", tmp_path / "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    lines = [json.loads(line) for line in run("export", root).splitlines()]
    assert [row["body"].decode() for row in table] == [line["body"] for line in lines]
    for name in ("topic", "queueId", "queueOffset", "tags", "keys", "msgId", "logOffset"):
        assert [row[name] for row in table] == [line[name] for line in lines], name


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("export", "ROOT", "--format", "csv"), "jsonl or parquet"),
        (("export", "ROOT", "--format", "parquet"), "-o"),
        (("export", "ROOT", "--since", "someday"), "no moment"),
    ],
)
def test_wrong_usage_is_explained(root: Path, run: Run, words: tuple[str, ...], hint: str) -> None:
    run(*(root if word == "ROOT" else word for word in words), code=2)
    assert hint in run.errors


def test_a_directory_that_is_no_store_is_refused(tmp_path: Path, run: Run) -> None:
    for command in ("inspect", "verify", "repair", "export"):
        run(command, tmp_path, code=4)
        assert "no store directory" in run.errors


def test_progress_is_shown_on_a_terminal_only(
    root: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shutil.copytree(root, tmp_path / "another")
    run("verify", tmp_path / "another")
    assert run.errors == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    run("verify", tmp_path / "another")
