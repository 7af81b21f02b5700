"""A report for programs: one JSON document, or a Parquet file for each table.

The fields of both have the same names; docs/stats.md lists them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bolide.pipeline.stats.figures import Report, Spread, TopicFigures, WindowFigures
from bolide.pipeline.stats.files import whole

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT, _WHOLE, _REAL, _MOMENT = "string", "int64", "double", "moment"

_LATENCY = {
    "latency_p50_ms": _REAL,
    "latency_p99_ms": _REAL,
    "latency_max_ms": _WHOLE,
    "negative": _WHOLE,
}
_NAMES = {"topic": _TEXT, "name": _TEXT, "messages": _WHOLE, "bytes": _WHOLE, "share": _REAL}
_LAG = {"group": _TEXT, "topic": _TEXT}
_PROGRESS = {"behind": _WHOLE, "waits_ms": _WHOLE}

TABLES: Mapping[str, Mapping[str, str]] = {
    "topics": {
        "topic": _TEXT,
        "messages": _WHOLE,
        "bytes": _WHOLE,
        "first_ms": _MOMENT,
        "last_ms": _MOMENT,
        "rate": _REAL,
        "size_mean": _REAL,
        "size_p50": _REAL,
        "size_p99": _REAL,
        "size_max": _WHOLE,
        **_LATENCY,
        "latency_min_ms": _WHOLE,
        "packed": _WHOLE,
        "bad_bodies": _WHOLE,
        "retried": _WHOLE,
        "untimed": _WHOLE,
        "keyed": _WHOLE,
        "tagged": _WHOLE,
        "keys_there": _WHOLE,
        "tags_there": _WHOLE,
        "skew": _REAL,
        "verdict": _TEXT,
    },
    "windows": {
        "topic": _TEXT,
        "start_ms": _MOMENT,
        "messages": _WHOLE,
        "bytes": _WHOLE,
        **_LATENCY,
        "skew": _REAL,
        "hot_key": _TEXT,
        "hot_key_messages": _WHOLE,
    },
    "queues": {
        "topic": _TEXT,
        "broker": _TEXT,
        "queue": _WHOLE,
        "messages": _WHOLE,
        "bytes": _WHOLE,
        "share": _REAL,
    },
    "keys": _NAMES,
    "tags": _NAMES,
    "sizes": {"topic": _TEXT, "low": _WHOLE, "high": _WHOLE, "messages": _WHOLE, "bytes": _WHOLE},
    "lag": {
        **_LAG,
        "broker": _TEXT,
        "queue": _WHOLE,
        "offset": _WHOLE,
        "end": _WHOLE,
        **_PROGRESS,
    },
    "lag_history": {"at_ms": _MOMENT, **_LAG, **_PROGRESS},
}
"""The tables with their columns, and what these hold."""

OF_TOPICS = ("windows", "queues", "keys", "tags", "sizes")
"""Tables that each topic has rows of its own in."""


def report_json(report: Report) -> dict[str, Any]:
    return {
        "made_ms": report.made_ms,
        "source": report.source,
        "since_ms": report.since_ms,
        "until_ms": report.until_ms,
        "window_ms": report.window_ms,
        "damaged": report.damaged,
        "notes": list(report.notes),
        "topics": [_topic(topic) for topic in report.topics],
        "lag": [asdict(lag) for lag in report.lags],
        "lag_history": [asdict(sample) for sample in report.lag_history],
    }


def write_tables(report: Report, folder: Path) -> list[Path]:
    """One file for each table, each whole or as it was before; returns them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for name, rows in report_rows(report).items():
        file = folder / f"{name}.parquet"
        rows_typed = pa.Table.from_pylist(rows, schema=_schema(TABLES[name]))
        with whole(file) as path:
            pq.write_table(rows_typed, path, compression="zstd")
        files.append(file)
    return files


def report_rows(report: Report) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table, with exactly its columns."""
    told = report_json(report)
    rows: dict[str, list[dict[str, Any]]] = {
        "topics": told["topics"],
        **{
            name: [{"topic": topic["topic"], **row} for topic in told["topics"] for row in topic[name]]
            for name in OF_TOPICS
        },
        "lag": [
            {"group": lag["group"], "topic": lag["topic"], **queue}
            for lag in told["lag"]
            for queue in lag["queues"]
        ],
        "lag_history": told["lag_history"],
    }
    return {name: _only(rows[name], columns) for name, columns in TABLES.items()}


def _only(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> list[dict[str, Any]]:
    names = list(columns)
    return [{name: row[name] for name in names} for row in rows]


def _schema(columns: Mapping[str, str]) -> "pa.Schema":
    import pyarrow as pa

    kinds = {
        _TEXT: pa.string(),
        _WHOLE: pa.int64(),
        _REAL: pa.float64(),
        _MOMENT: pa.timestamp("ms", tz="UTC"),
    }
    return pa.schema([(name, kinds[kind]) for name, kind in columns.items()])


def _topic(topic: TopicFigures) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "messages": topic.messages,
        "bytes": topic.bytes,
        "first_ms": topic.first_ms,
        "last_ms": topic.last_ms,
        "rate": topic.rate,
        "size_mean": topic.size_mean,
        **_spread("size", topic.size, ""),
        **_spread("latency", topic.latency, "_ms"),
        "negative": topic.negative,
        "latency_min_ms": topic.latency_min,
        "packed": topic.packed,
        "bad_bodies": topic.bad_bodies,
        "retried": topic.retried,
        "untimed": topic.untimed,
        "keyed": topic.keyed,
        "tagged": topic.tagged,
        "keys_there": topic.keys_there,
        "tags_there": topic.tags_there,
        "skew": topic.skew,
        "verdict": topic.verdict,
        "windows": [_window(window) for window in topic.windows],
        "queues": [asdict(queue) for queue in topic.queues],
        "keys": [asdict(name) for name in topic.keys],
        "tags": [asdict(name) for name in topic.tags],
        "sizes": [asdict(size) for size in topic.sizes],
    }


def _window(window: WindowFigures) -> dict[str, Any]:
    return {
        "start_ms": window.start_ms,
        "messages": window.messages,
        "bytes": window.bytes,
        **_spread("latency", window.latency, "_ms"),
        "negative": window.negative,
        "skew": window.skew,
        "hot_key": window.hot_key,
        "hot_key_messages": window.hot_key_messages,
    }


def _spread(what: str, spread: Spread | None, unit: str) -> dict[str, Any]:
    """The fields are there in any case: null where nobody knows."""
    return {
        f"{what}_{name}{unit}": None if spread is None else getattr(spread, name) for name in Spread.__slots__
    }
