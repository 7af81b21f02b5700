"""A report for programs: the fields that docs/stats.md lists, in JSON and in Parquet."""

import re
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from bolide.pipeline.stats.tables import OF_TOPICS, TABLES, report_json, report_rows, write_tables
from tests.unit.pipeline.stats.samples import NOTHING, ORDERS, REPORT

PAGE = (Path(__file__).resolve().parents[4] / "docs" / "stats.md").read_text()
LISTED = {
    name: re.findall(r"`([a-z0-9_]+)`", fields)
    for name, fields in re.findall(r"^\| `([a-z_]+)` \| (.+?) \|", PAGE, re.MULTILINE)
}


def test_json_has_the_fields_that_the_page_lists() -> None:
    told = report_json(REPORT)
    assert list(told) == LISTED["report"]
    (topic,) = told["topics"]
    assert list(topic) == [*LISTED["topics"], *OF_TOPICS]
    for name in OF_TOPICS:
        assert ["topic", *topic[name][0]] == LISTED[name]
    assert list(told["lag"][0]) == ["group", "topic", "behind", "waits_ms", "queues"]
    assert ["group", "topic", *told["lag"][0]["queues"][0]] == LISTED["lag"]
    assert list(told["lag_history"][0]) == LISTED["lag_history"]


def test_every_table_has_the_columns_that_the_page_lists() -> None:
    assert {name: list(columns) for name, columns in TABLES.items()} == {
        name: fields for name, fields in LISTED.items() if name != "report"
    }
    for name, rows in report_rows(REPORT).items():
        assert all(list(row) == LISTED[name] for row in rows)


def test_fields_are_there_when_nothing_is_known() -> None:
    (empty,), (full,) = (report_json(replace(REPORT, topics=[one]))["topics"] for one in (NOTHING, ORDERS))
    assert list(empty) == list(full)
    assert (empty["rate"], empty["size_p50"], empty["latency_p99_ms"], empty["skew"]) == (None,) * 4
    assert empty["verdict"] == "no messages"


def test_parquet_files_hold_the_rows_with_types_and_replace_older_ones(tmp_path: Path) -> None:
    for report in (replace(REPORT, topics=()), REPORT):
        files = write_tables(report, tmp_path / "deep" / "tables")
        assert [file.stem for file in files] == list(TABLES)
    tables = {file.stem: pq.read_table(file) for file in files}
    assert tables["windows"].column("messages").to_pylist() == [10_000, 2_345]
    assert tables["windows"].column("latency_p99_ms").to_pylist() == [40.0, None]
    assert (
        tables["topics"].column("first_ms").to_pylist()[0].isoformat() == "2023-11-15T12:00:00.005000+00:00"
    )
    assert tables["lag"].num_rows == 1
    assert len(list((tmp_path / "deep" / "tables").iterdir())) == len(TABLES)


def test_a_table_without_rows_has_the_same_columns(tmp_path: Path) -> None:
    full = {file.stem: pq.read_schema(file) for file in write_tables(REPORT, tmp_path / "full")}
    empty = {
        file.stem: pq.read_schema(file)
        for file in write_tables(replace(REPORT, topics=()), tmp_path / "empty")
    }
    assert full == empty
