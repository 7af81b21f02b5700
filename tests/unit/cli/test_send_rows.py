"""JSON objects, CSV and Parquet of other people as messages, against a real server."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bolide.cli.layout import json_line
from bolide.cli.lines import Columns, Envelope
from bolide.cli.members import OF_MESSAGES, OF_STORED
from bolide.cli.store_export import export_line
from bolide.model.errors import ConfigError, MessageIllegal
from tests.unit.cli.conftest import Command
from tests.unit.cli.samples import sample

ENVELOPE = Envelope("orders")


def sent(command: Command, topic: str) -> list[dict[str, Any]]:
    shown = command("tail", topic, "--json", "--since", "beginning", "--no-follow")
    return [json.loads(line) for line in shown.out.splitlines()]


def test_an_object_without_a_body_is_the_body_to_the_byte() -> None:
    message = Envelope("orders", columns=Columns(key="id", tag="kind")).object(b'{"id": 42,  "kind": "eu"}')
    assert (message.body, message.keys, message.tags) == (b'{"id": 42,  "kind": "eu"}', ["42"], "eu")


def test_an_object_with_a_body_and_something_that_would_be_lost_is_refused() -> None:
    with pytest.raises(MessageIllegal, match="'amount'"):
        ENVELOPE.object(b'{"body": "x", "amount": 5}')
    chosen = Envelope("orders", columns=Columns(body="body"))
    assert chosen.object(b'{"body": "x", "amount": 5}').body == b"x"


def test_what_the_other_commands_write_of_a_message_can_be_sent() -> None:
    for line in (json_line(sample()), export_line(sample())):
        assert ENVELOPE.object(line).body == sample().body
        assert set(json.loads(line)) <= OF_MESSAGES | OF_STORED


def test_an_object_may_say_when_and_where_its_message_goes() -> None:
    message = ENVELOPE.json(b'{"body": "x", "delay_level": 3, "sharding_key": "c-1"}')
    assert (message.delay_level, message.sharding_key) == (3, "c-1")
    at_ms = ENVELOPE.json(b'{"body": "x", "deliver_at": 1893456000000}').deliver_at
    assert at_ms == 1_893_456_000_000
    at = ENVELOPE.json(b'{"body": "x", "deliver_at": "2030-01-01T00:00:00+00:00"}').deliver_at
    assert at == datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "members",
    [
        {"delay_level": "soon"},
        {"delay_level": 1.5},
        {"deliver_at": "later"},
        {"deliver_at": 5},
        {"deliver_at": True},
        {"properties": "no json"},
    ],
)
def test_a_row_with_a_value_that_says_nothing_is_refused(members: dict[str, Any]) -> None:
    with pytest.raises(MessageIllegal):
        ENVELOPE.row({"body": "x", **members})


def test_csv_columns_are_parts_of_the_message(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(
        'body,tags,keys,properties,delay_level\n"a\nb",eu,k1,"{""colour"": ""red""}",\nc,,,,\n',
        encoding="utf-8-sig",
    )
    assert "sent 2 messages" in command("send", "csv-parts", "--file", str(file)).err
    first, second = sorted(sent(command, "csv-parts"), key=lambda one: one["body"])
    assert (first["body"], first["tag"], first["keys"]) == ("a\nb", "eu", ["k1"])
    assert first["properties"]["colour"] == "red"
    assert (second["body"], second["tag"], second["keys"]) == ("c", None, [])


def test_other_peoples_csv_is_sent_by_column_or_as_whole_rows(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "orders.tsv"
    file.write_text("id\torder\n1\tfirst\n2\tsecond\n")
    command("send", "tsv-bodies", "--file", str(file), "--body-column", "order", "--key-column", "id")
    assert sorted((one["body"], one["keys"]) for one in sent(command, "tsv-bodies")) == [
        ("first", ["1"]),
        ("second", ["2"]),
    ]
    command("send", "tsv-rows", "--file", str(file))
    assert {"id": "1", "order": "first"} in [json.loads(one["body"]) for one in sent(command, "tsv-rows")]


def test_a_row_of_another_length_is_named_by_its_line(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("body\nfirst\na,b\nlast\n")
    shown = command("send", "csv-odd", "--file", str(file), "--on-error", "skip", code=1)
    assert "line 3 is skipped: 2 values for 1 columns" in shown.err
    assert "1 line was no message, 2 messages are stored" in shown.err
    assert sorted(one["body"] for one in sent(command, "csv-odd")) == ["first", "last"]


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("body,amount\nx,5\n", [], "no place for the column 'amount'"),
        ("a,b\nx,5\n", ["--body-column", "c"], "there is no column 'c'; there are a, b"),
        ("a,a\nx,5\n", [], "names its columns, each once"),
        ('body\n"x\n', [], "is no CSV"),
        ("id;name\n1;x\n", [], "one column, 'id;name', with ; in it"),
        ("id\tname\n1\tx\n", [], "-f tsv"),
    ],
)
def test_a_file_with_other_columns_than_meant_is_refused(
    command: Command, tmp_path: Path, text: str, words: list[str], said: str
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text(text)
    shown = command("send", "csv-refused", "--file", str(file), *words, code=2)
    assert said in shown.err
    assert "0 messages are stored" in shown.err


def test_a_column_with_a_semicolon_in_its_name_is_sent_when_it_is_named(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id;name\n1;x\n")
    shown = command("send", "csv-named", "--file", str(file), "--body-column", "id;name")
    assert "sent 1 message" in shown.err


def test_parquet_columns_are_parts_of_the_message(command: Command, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    properties = pa.array([[("colour", "red")], []], pa.map_(pa.string(), pa.string()))
    columns = {"body": [b"\xff\x00", b"two"], "keys": [["k1", "k2"], []], "properties": properties}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    command("send", "parquet-parts", "--file", str(tmp_path / "rows.parquet"))
    first = next(one for one in sent(command, "parquet-parts") if "body_base64" in one)
    assert (first["body_base64"], first["keys"], first["properties"]["colour"]) == (
        "/wA=",
        ["k1", "k2"],
        "red",
    )


def test_parquet_that_is_none_or_comes_through_a_pipe_is_refused(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    file.write_bytes(b"nonsense")
    assert "cannot be read as Parquet" in command("send", "parquet-none", "--file", str(file), code=2).err
    assert "--file" in command("send", "parquet-none", "-f", "parquet", code=2).err


def test_without_pyarrow_the_error_names_what_to_install(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "bolide.pipeline.parquet_rows", raising=False)
    monkeypatch.delattr("bolide.pipeline.parquet_rows", raising=False)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    shown = command("send", "parquet-none", "--file", str(tmp_path / "x.parquet"), code=2)
    assert "pip install 'bolide[arrow]'" in shown.err


@pytest.mark.parametrize(
    "words",
    [
        ["text", "--file", "x"],
        ["text", "--body-column", "x"],
        ["--json", "-f", "csv"],
    ],
)
def test_options_that_do_not_go_together_are_refused(command: Command, words: list[str]) -> None:
    command("send", "orders", *words, code=2)


def test_one_sharding_key_means_one_queue(command: Command) -> None:
    messages = [word for number in range(8) for word in ("-m", str(number))]
    command("send", "sharded", *messages, "--sharding-key", "c-1", "--rate", "10000")
    stored = sent(command, "sharded")
    assert len({one["queue"] for one in stored}) == 1
    assert [one["body"] for one in sorted(stored, key=lambda one: one["offset"])] == list("01234567")


@pytest.mark.parametrize("compression", ["none", "zlib", "lz4", "zstd"])
def test_large_bodies_come_back_however_they_are_packed(command: Command, compression: str) -> None:
    body = "x" * 5_000
    command("send", f"packed-{compression}", body, "--compression", compression)
    assert [one["body"] for one in sent(command, f"packed-{compression}")] == [body]


def test_columns_are_checked_by_name() -> None:
    with pytest.raises(ConfigError):
        Columns(tag="colour").check(["body"])
    Columns(key="id").check(["body", "id"])
