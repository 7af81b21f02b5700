"""How far queries have come, from what Spark reports."""

import json
from typing import Any

from bolide.pipeline.declared.offsets import behind_of
from bolide.pipeline.declared.progress import QueryProgress, unmet_of_all


def report(moment: int, rows: int, batch: int, **more: Any) -> dict[str, Any]:
    return {
        "timestamp": f"2026-01-01T00:00:{moment:02d}.000Z",
        "numInputRows": rows,
        "batchId": batch,
        "processedRowsPerSecond": rows / 2,
        **more,
    }


def offsets(*of_queues: int) -> dict[str, Any]:
    return {"t": {"b": {str(number): {"offset": offset} for number, offset in enumerate(of_queues)}}}


def test_every_report_counts_once() -> None:
    query = QueryProgress("archive")
    first = [report(1, 10, 0), report(2, 20, 1)]
    assert query.count(first) == first
    assert query.count([*first, report(3, 0, 2), report(4, 5, 2)]) == [report(4, 5, 2)]
    assert (query.rows, query.batches, query.batch, query.rows_per_second) == (35, 3, 2, 2.5)


def test_rows_that_are_not_as_expected_add_up_and_are_not_counted_for_each_sink() -> None:
    observed = {"expect.parsed": {"_rows": 10, "positive": 3, "known": 0}, "somebody else's": {"x": 1}}
    queries = [QueryProgress("a"), QueryProgress("b")]
    queries[0].count([report(1, 10, 0, observedMetrics=observed), report(2, 10, 1, observedMetrics=observed)])
    queries[1].count([report(1, 10, 0, observedMetrics=observed)])
    assert unmet_of_all(queries) == {("parsed", "positive"): 6}


def test_behind_is_what_topics_have_more() -> None:
    query = QueryProgress("archive")
    done, latest = offsets(5, 7), offsets(9, 7, 3)
    sources = [
        {"endOffset": done, "latestOffset": latest},
        {"endOffset": {"logOffset": 1}, "latestOffset": None},
    ]
    query.count([report(1, 1, 0, sources=sources)])
    assert query.behind == 7
    query.count([report(2, 1, 1, sources=sources[1:])])
    assert query.behind is None


def test_offsets_of_other_sources_tell_nothing() -> None:
    assert behind_of(json.dumps(offsets(5)), json.dumps(offsets(6))) == 1
    others: list[Any] = [None, 5, "5", "text", {"a": 1}, {"a": {"b": 1}}, {"a": {"b": {"c": 1}}}, []]
    for other in others:
        assert behind_of(other, offsets(6)) is None
