"""`bolide pipeline dedup` and `join` as far as they go without Spark: what they make, and what they refuse."""

from pathlib import Path

import pytest
import yaml

from tests.unit.cli.conftest import Command


def test_print_writes_a_pipeline_that_is_sound(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (
        ("dedup", "orders", "--to", "clean", "--by", "get_json_object(cast(body AS string), '$.id')"),
        (
            "join",
            "orders",
            "payments",
            "--on",
            "key",
            "--within",
            "10m",
            "--to-parquet",
            "out",
            "--type",
            "left",
        ),
    ):
        shown = command("pipeline", *words, "--print", "--spark", "spark.sql.shuffle.partitions=2")
        (tmp_path / "made.yaml").write_text(shown.out)
        assert yaml.safe_load(shown.out)["settings"] == {"spark.sql.shuffle.partitions": "2"}
        assert "made.yaml is sound" in command("pipeline", "check", "made.yaml").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("dedup", "orders"), "say where the rows go, with --to TOPIC or with --to-parquet DIR"),
        (("dedup", "orders", "--to", "orders"), "orders would be read and written"),
        (("dedup", "orders", "--to", "b", "--within", "often"), "within: 'often' is no time"),
        (("dedup", "orders", "--to", "b", "--option", "x"), "--option wants key=value"),
        (
            ("join", "a", "b", "--on", "key", "--within", "1m", "--to", "c", "--type", "full"),
            "type is one of",
        ),
        (("join", "a", "b", "--to", "c"), "--on"),
    ],
)
def test_wrong_words_start_nothing_and_end_with_2(
    command: Command, words: tuple[str, ...], told: str
) -> None:
    assert told in command("pipeline", *words, code=2).err
