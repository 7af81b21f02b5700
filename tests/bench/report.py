"""From samples to one table: medians, ratios first, each bar with its verdict, as Markdown and as JSON."""

import json
import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.clients import peers
from tests.bench.rows import ROWS, Row
from tests.bench.run import Samples
from tests.bench.scale import Scale
from tests.bench.sides import KAFKA, OURS, THEIRS
from tests.peers import java, kafka

PEERS = {THEIRS: ("Apache", java.LATEST), KAFKA: ("Kafka", kafka.VERSION)}


@dataclass(frozen=True)
class Line:
    """One row with its figures."""

    row: Row
    ours: list[float]
    theirs: list[float]

    @property
    def ratio(self) -> float | None:
        if self.ours and self.theirs and median(self.theirs):
            return median(self.ours) / median(self.theirs)
        return None

    @property
    def passed(self) -> bool | None:
        """None where there is no bar, or nothing to hold against it."""
        bar = self.row.bar
        judged = self.ratio if bar and bar.relative else median(self.ours) if self.ours else None
        return None if bar is None or judged is None else bar.holds(judged)

    def cells(self) -> tuple[str, ...]:
        verdict = {True: "pass", False: "FAIL", None: ""}[self.passed]
        bar = self.row.bar.text if self.row.bar else ""
        ratio = "" if self.ratio is None else f"{self.ratio:.2f} x"
        return (
            *(self.row.title, ratio, bar, verdict),
            *(self._figure(self.ours), self._figure(self.theirs), self.row.unit),
        )

    def _figure(self, values: list[float]) -> str:
        return f"{median(values):,.{self.row.digits}f}" if values else ""


def lines_of(samples: Samples) -> list[Line]:
    """The rows that have any figure."""
    lines = [
        Line(row, *(samples.of(side, row.workload, row.figure) for side in (OURS, row.peer))) for row in ROWS
    ]
    return [line for line in lines if line.ours or line.theirs]


def markdown(lines: list[Line], samples: Samples, scale: Scale) -> str:
    tables = [line for peer in PEERS for line in _table(peer, lines)]
    facts = machine()
    notes = [
        f"{facts['cores']} cores, {facts['processor']}, Linux {facts['kernel']}, load average at the start "
        f"{facts['load_average']:.2f}.",
        f"Java client {java.LATEST}, 128-byte bodies, 4 queues, ASYNC_FLUSH; medians of {scale.rounds} "
        f"round(s), {scale.run_seconds} s each after {scale.warm_seconds} s of warm-up ({scale.name}).",
        f"Many topics: {scale.topics:,} of 8 queues, then {scale.idle_connections:,} idle connections; "
        f"push consume: {scale.consume_messages:,} messages. The last rows once each on a fresh server: kill -9 behind "
        f"{scale.recovery_messages:,} messages, query by key among {scale.indexed_messages:,}.",
        f"Segment rolls: {scale.segment_rolls} or more of 64 MiB, 64 senders of 1,024-byte bodies; topics that come "
        f"and go: {scale.passing_topics:,}. Longest callbacks: {scale.scene_topics:,} topics, "
        f"{scale.scene_groups:,} groups, {scale.held_pulls:,} held pulls. Timed messages that wait: "
        f"{scale.pending_messages:,}.",
        f"Spark: local[2], {scale.spark_messages:,} messages of 128 bytes in 4 queues or partitions; PySpark "
        f"{version('pyspark')} on our side, {kafka.SPARK_VERSION} on Kafka's. The cost of a row: {scale.spark_many:,} "
        f"messages over {scale.spark_few:,}.",
        f"Python clients: {scale.client_messages:,} messages, a third of them on asyncio; beside confluent-kafka "
        f"{peers.CONFLUENT} (acks=all, linger 5 ms), aiokafka {peers.AIOKAFKA} and, through the original's proxy, "
        f"rocketmq-python-client {peers.ROCKETMQ}. Memory: {scale.client_many:,} messages sent and polled again.",
        *_failures(samples),
        *(["", *samples.notes] if samples.notes else []),
    ]
    return "\n".join(["# bolide and its peers in one run", "", *tables, *notes, ""])


def _table(peer: str, lines: list[Line]) -> list[str]:
    """The rows in which this peer stands beside us; nothing where there are none."""
    name, number = PEERS[peer]
    header = ("measured", f"bolide / {name}", "bar", "", "bolide", f"{name} {number}", "unit")
    cells = [line.cells() for line in lines if line.row.peer == peer]
    table = [header, tuple("---" for _ in header), *cells] if cells else []
    return [*("| " + " | ".join(row) + " |" for row in table), *([""] if table else [])]


def as_json(lines: list[Line], samples: Samples, scale: Scale) -> dict[str, Any]:
    return {
        "machine": machine(),
        "scale": scale.__dict__,
        "rows": [
            {
                "row": f"{line.row.workload}.{line.row.figure}",
                "title": line.row.title,
                "unit": line.row.unit,
                "ratio": line.ratio,
                "bar": line.row.bar.text if line.row.bar else None,
                "passed": line.passed,
                "bolide": line.ours,
                "peer": line.row.peer,
                "theirs": line.theirs,
            }
            for line in lines
        ],
        "samples": {"/".join(key): values for key, values in samples.values.items()},
        "notes": samples.notes,
    }


def write(folder: Path, lines: list[Line], samples: Samples, scale: Scale) -> Path:
    """Both files; the result is the Markdown one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(as_json(lines, samples, scale), indent=1) + "\n")
    page = folder / "bench.md"
    page.write_text(markdown(lines, samples, scale))
    return page


def machine() -> dict[str, Any]:
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "cores": os.cpu_count(),
        "processor": models[0] if models else platform.machine(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_average": LOAD_AT_START,
    }


def _failures(samples: Samples) -> list[str]:
    """Sends that a client gave up on are no secret."""
    return [
        f"{side}, {workload}: {sum(values):,.0f} sends failed."
        for (side, workload, figure), values in samples.values.items()
        if figure == "failed" and sum(values) > 0
    ]


LOAD_AT_START = os.getloadavg()[0]
