"""How far queries have come, from what Spark reports after every batch.

A report is a plain mapping (`StreamingQueryProgress` as JSON); nothing here calls Spark.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bolide.pipeline.declared.offsets import behind_of

EXPECT = "expect."
"""Before the name of a step, in what Spark observes about it."""

ROWS = "_rows"
"""How many rows an observation has seen."""


@dataclass
class QueryProgress:
    """One query since it was started."""

    name: str
    batch: int | None = None
    batches: int = 0
    rows: int = 0
    rows_per_second: float = 0.0
    """Of the last batch that had rows."""
    behind: int | None = None
    """Messages that its topics had more when the last batch was planned; None where a source does not say."""
    is_active: bool = True
    state_rows: int = 0
    """Rows that steps keep state of."""
    late: int = 0
    """Rows that came too late for steps that keep state, and were left out by them."""
    unmet: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By step and expectation, the rows that did not meet it."""
    seen: str = ""
    """The time of the last report that was counted."""

    def count(self, reports: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Takes in the reports that are new, and returns those of them that had rows."""
        with_rows: list[Mapping[str, Any]] = []
        for report in reports:
            moment = str(report.get("timestamp", ""))
            if moment <= self.seen:
                continue
            self.seen = moment
            rows = int(report.get("numInputRows") or 0)
            self.behind = _behind(report)
            self._count_state(report.get("stateOperators") or ())
            if rows:
                self.batch = int(report["batchId"])
                self.batches += 1
                self.rows += rows
                self.rows_per_second = float(report.get("processedRowsPerSecond") or 0.0)
                self._count_unmet(report.get("observedMetrics") or {})
                with_rows.append(report)
        return with_rows

    def _count_state(self, operators: Iterable[Mapping[str, Any]]) -> None:
        """A batch without rows counts, too: it is the one that forgets."""
        self.state_rows = sum(int(one.get("numRowsTotal") or 0) for one in operators)
        self.late += sum(int(one.get("numRowsDroppedByWatermark") or 0) for one in operators)

    def _count_unmet(self, observed: Mapping[str, Any]) -> None:
        for name, counts in observed.items():
            if name.startswith(EXPECT):
                for expectation, count in counts.items():
                    if expectation != ROWS and count:
                        self.unmet[name.removeprefix(EXPECT), expectation] += int(count)


def unmet_of_all(queries: Iterable[QueryProgress]) -> Mapping[tuple[str, str], int]:
    """By step and expectation.  Every query that reads a step counts it anew: the one that has come furthest tells."""
    found: dict[tuple[str, str], int] = {}
    for query in queries:
        for key, count in query.unmet.items():
            found[key] = max(count, found.get(key, 0))
    return found


def _behind(report: Mapping[str, Any]) -> int | None:
    """Over all sources of topics that say where their queues end."""
    found: int | None = None
    for source in report.get("sources") or ():
        behind = behind_of(source.get("endOffset"), source.get("latestOffset"))
        if behind is not None:
            found = behind + (found or 0)
    return found
