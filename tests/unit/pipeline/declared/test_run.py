"""How queries are followed and ended, with queries that only pretend: no Spark is needed for that."""

import json
from typing import Any

import pytest

from bolide.pipeline.declared.progress import QueryProgress
from bolide.pipeline.declared.run import (
    BEGUN_IN_VAIN_MAX,
    NO_WORKER,
    PipelineFailed,
    Stop,
    Watch,
    _end,
    _follow,
    _Query,
)


class Hasty(Stop):
    """Never asked for, and looks again at once."""

    def wait(self, seconds: float) -> bool:
        return False


class Report:
    def __init__(self, moment: int, rows: int) -> None:
        self.timestamp = f"2026-01-01T00:00:{moment:02d}.000Z"
        self.json = json.dumps({"timestamp": self.timestamp, "numInputRows": rows, "batchId": moment})


class Query:
    """What Spark's queries have, and no more."""

    def __init__(self, *, error: str | None = None) -> None:
        self.isActive = error is None
        self.recentProgress: list[Report] = []
        self.status = {"isTriggerActive": False}
        self.looks_until_done = 0
        self._error = error

    @property
    def lastProgress(self) -> Report | None:  # noqa: N802 - Spark's name
        if self.status["isTriggerActive"]:
            self.looks_until_done -= 1
            if self.looks_until_done == 0:
                self.recentProgress.append(Report(2, 5))
        return self.recentProgress[-1] if self.recentProgress else None

    def exception(self) -> Exception | None:
        return None if self._error is None else RuntimeError(self._error)

    def stop(self) -> None:
        self.isActive = False


def followed(*spark: Query) -> _Query:
    """A query that is begun again with each of these."""
    left = list(spark)
    return _Query(QueryProgress("out"), lambda: left.pop(0), left.pop(0))


def test_a_stop_waits_for_the_batch_in_hand_and_counts_its_rows() -> None:
    query = Query()
    query.status["isTriggerActive"], query.looks_until_done = True, 4
    one = followed(query)
    stop = Stop()
    stop.ask()
    _end([one], stop, Watch())
    assert not query.isActive
    assert (one.progress.rows, one.progress.batches) == (5, 1)


def test_a_second_signal_does_not_wait() -> None:
    query = Query()
    query.status["isTriggerActive"], query.looks_until_done = True, 10**9
    stop = Stop()
    stop.ask()
    stop.ask()
    _end([followed(query)], stop, Watch())
    assert not query.isActive


def test_a_query_whose_python_did_not_start_begins_again_and_any_other_error_ends_the_run() -> None:
    finished = Query()
    finished.isActive = False
    _follow([followed(Query(error=NO_WORKER), Query(error=NO_WORKER), finished)], Hasty(), Watch())
    with pytest.raises(PipelineFailed, match="out: the disk is full"):
        _follow([followed(Query(error="the disk is full"))], Hasty(), Watch())
    always: list[Any] = [Query(error=NO_WORKER) for _ in range(BEGUN_IN_VAIN_MAX + 1)]
    with pytest.raises(PipelineFailed, match=NO_WORKER):
        _follow([followed(*always)], Hasty(), Watch())
