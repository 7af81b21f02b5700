"""What each Spark is asked to do, and the figures that come out; rows are counted after every job that keeps them."""

import itertools
import shutil
from pathlib import Path

from tests.bench.memory import touch_free_memory
from tests.bench.scale import Scale
from tests.bench.sides import OURS, Untrustworthy
from tests.bench.spark.sides import Ours, SparkSide, running_kafkas, running_ours
from tests.bench.workloads import BODY_BYTES, Figures

WARM_SHARE = 5
IDLE_TRIGGERS = 30

_numbers = itertools.count(1)


def spark_figures(name: str, scale: Scale, home: Path) -> Figures:
    """One round of one side, on a fresh server with a fresh Spark."""
    if name == OURS:
        with running_ours(home) as ours:
            return _of_ours(ours, scale)
    with running_kafkas(home) as theirs:
        figures = _of_both(theirs, scale)[0]
    # What they do not have is held against what comes nearest: the same columns in files, all messages once.
    noop, parquet = figures["noop"], figures["parquet"]
    return figures | {"kafka_columns": parquet, "kafka_noop": noop, "store": noop}


def _of_ours(side: Ours, scale: Scale) -> Figures:
    figures, topic = _of_both(side, scale)
    messages = scale.spark_messages
    kafkas = {**side.reading(topic), "schema": "kafka"}
    figures["kafka_columns"] = _to_parquet(side, kafkas, messages)
    figures["kafka_noop"] = _to_noop(side, kafkas, messages)
    stored = {"topic": topic, "path": str(side.store)}
    _expect(side.spark.ask("count", source="rocketmq-store", options=stored)["rows"], messages)
    seconds = side.spark.ask("read", source="rocketmq-store", options=stored, sink="noop", folder="")
    figures["store"] = messages / seconds["seconds"]
    figures["growth"] = _cost(side, scale.spark_many) / _cost(side, scale.spark_few)
    figures["worker_mb"] = side.spark.worker_peak_bytes / 1e6
    return figures


def _of_both(side: SparkSide, scale: Scale) -> tuple[Figures, str]:
    """Rows a second, and the topic; a smaller topic goes the same ways before it."""
    for messages in (scale.spark_messages // WARM_SHARE, scale.spark_messages):
        touch_free_memory()
        topic, written = _filled(side, messages)
        options = side.reading(topic)
        figures = {
            "write": written,
            "noop": _to_noop(side, options, messages),
            "parquet": _to_parquet(side, options, messages),
            "stream": _streamed(side, options, messages),
        }
    idle = side.spark.ask(
        "idle", source=side.source, options=options, folder=_folder(side), triggers=IDLE_TRIGGERS
    )
    return figures | {"idle_ms": idle["ms"]}, topic


def _filled(side: SparkSide, messages: int) -> tuple[str, float]:
    """A new topic with so many messages, and how many were written a second."""
    topic = f"spark-{next(_numbers)}"
    side.make_topic(topic)
    words = {"sink": side.source, "options": side.writing(topic)}
    seconds = side.spark.ask("write", messages=messages, body_bytes=BODY_BYTES, **words)["seconds"]
    _expect(side.spark.ask("count", source=side.source, options=side.reading(topic))["rows"], messages)
    return topic, messages / seconds


def _to_noop(side: SparkSide, options: dict[str, str], messages: int) -> float:
    answer = side.spark.ask("read", source=side.source, options=options, sink="noop", folder="")
    return messages / answer["seconds"]


def _to_parquet(side: SparkSide, options: dict[str, str], messages: int) -> float:
    folder = _folder(side)
    answer = side.spark.ask("read", source=side.source, options=options, sink="parquet", folder=folder)
    _check_files(side, folder, messages)
    return messages / answer["seconds"]


def _streamed(side: SparkSide, options: dict[str, str], messages: int) -> float:
    folder = _folder(side)
    answer = side.spark.ask("stream", source=side.source, options=options, folder=folder)
    _check_files(side, folder, messages)
    return messages / answer["seconds"]


def _cost(side: Ours, messages: int) -> float:
    """Seconds for a message that is read to nowhere, of a topic with so many of them."""
    topic, _ = _filled(side, messages)
    return 1 / _to_noop(side, side.reading(topic), messages)


def _check_files(side: SparkSide, folder: str, messages: int) -> None:
    _expect(side.spark.ask("count_files", folder=folder)["rows"], messages)
    shutil.rmtree(folder)


def _folder(side: SparkSide) -> str:
    return str(side.home / f"files-{next(_numbers)}")


def _expect(rows: float, messages: int) -> None:
    if rows != messages:
        raise Untrustworthy(f"{rows:,.0f} rows of {messages:,} messages")
