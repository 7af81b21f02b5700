"""Runs a pipeline: starts its queries, tells how far they are, and ends them so that the batch in hand is done.

Spark ends a query in the middle of its batch.  A restart repeats that batch, and a sink that takes it twice (a topic of
another broker than ours) has rows twice.  So a stop waits for the batch to end, and only then ends the query.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from bolide.model.errors import BolideError
from bolide.pipeline.declared.checkpoint import Checkpoint
from bolide.pipeline.declared.definition import AVAILABLE_NOW, Definition
from bolide.pipeline.declared.kept import keep
from bolide.pipeline.declared.progress import QueryProgress
from bolide.pipeline.session import for_messages, session_for
from bolide.pipeline.spark_errors import first_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S = 0.5
"""Between two looks at queries that run."""

LOOK_STOPPING_S = 0.01
"""Between two looks at a query whose batch is to end: the next one must not get far."""


NO_WORKER = "Python worker failed to connect back"
"""Spark gives the Python of a source or step ten seconds to start, which no setting changes: on a machine that is too
busy for that the query begins again, from its checkpoint."""

BEGUN_IN_VAIN_MAX = 10

INITIALIZING = ("Initializing StreamExecution", "Initializing sources", "Initializing", "")
"""What Spark says of a query whose sources are not there yet."""


Begin = tuple[str, Callable[[], Any]]
"""A query's name, and what starts it: Spark's query."""


class PipelineFailed(BolideError):
    """A query ended with an error; the others were stopped in order."""


class Stop:
    """How a run is told to end.  Safe to call from a signal's handler."""

    def __init__(self) -> None:
        self._asked, self._at_once = threading.Event(), threading.Event()

    def ask(self) -> None:
        """The first time: when the batches in hand are done.  The second time: now."""
        if self._asked.is_set():
            self._at_once.set()
        self._asked.set()

    @property
    def is_asked(self) -> bool:
        return self._asked.is_set()

    @property
    def is_at_once(self) -> bool:
        return self._at_once.is_set()

    def wait(self, seconds: float) -> bool:
        """Whether it was asked for by then."""
        return self._asked.wait(seconds)

    def wait_at_once(self, seconds: float) -> bool:
        return self._at_once.wait(seconds)


@dataclass
class Watch:
    """Who looks on: both are called between batches, on the thread of the run."""

    started: Callable[[], None] = lambda: None
    progress: Callable[[Sequence[QueryProgress]], None] = lambda queries: None
    batch: Callable[[str, Mapping[str, Any]], None] = lambda query, report: None


@dataclass
class _Query:
    progress: QueryProgress
    begin: Callable[[], Any]
    spark: Any
    begun_in_vain: int = 0
    """How often in a row, since its last report."""
    stopping: str | None = field(default=None)
    """The time of the last report when the stop was asked for."""


def session_of(definition: Definition, master: str) -> AbstractContextManager["SparkSession"]:
    from bolide.pipeline.declared.build import needed_settings

    settings = {**for_messages(master), **needed_settings(definition)}
    return session_for(f"bolide {definition.name}", master=master, settings=settings)


def run(
    definition: Definition,
    spark: "SparkSession",
    checkpoint: Checkpoint,
    *,
    now_ms: Callable[[], int],
    once: bool = False,
    stop: Stop | None = None,
    watch: Watch | None = None,
) -> Sequence[QueryProgress]:
    """Runs until it is stopped, until all is read (`once`), or until a query fails: `PipelineFailed`."""
    from bolide.pipeline.declared.build import build, start

    def begins() -> Iterator[Begin]:
        built = build(spark, definition)
        keep(definition, checkpoint)
        for planned in built.queries:
            trigger = AVAILABLE_NOW if once else planned.sink.trigger or definition.trigger
            place = checkpoint.of_query(planned.name)
            yield planned.name, partial(start, definition, planned, checkpoint=place, trigger=trigger)

    named = {"name": definition.name, "file": str(definition.file)}
    return run_queries(begins, checkpoint, named, now_ms=now_ms, stop=stop, watch=watch)


def run_queries(
    begins: Callable[[], Iterable[Begin]],
    checkpoint: Checkpoint,
    named: Mapping[str, str],
    *,
    now_ms: Callable[[], int],
    stop: Stop | None = None,
    watch: Watch | None = None,
) -> Sequence[QueryProgress]:
    """Begins queries one after the other and follows them to their ends; `named` is what `state.json` says of them."""
    stop, watch = stop or Stop(), watch or Watch()
    with checkpoint.held():
        state = {**named, "started_ms": now_ms()}
        queries: list[_Query] = []
        ended: dict[str, Any] = {"state": "failed"}
        try:
            planned = list(begins())
            checkpoint.write_state(**state, state="running")
            for name, begin in planned if not stop.is_asked else ():
                queries.append(_Query(QueryProgress(name), begin, begin()))
                _wait_for_sources(queries[-1], stop)
            watch.started()
            _follow(queries, stop, watch)
            ended = {"state": "stopped" if stop.is_asked else "finished"}
        except BaseException as error:
            ended = {"state": "failed", "error": str(error)}
            raise
        finally:
            _end(queries, stop, watch)
            checkpoint.write_state(**state, **ended, ended_ms=now_ms())
    return [query.progress for query in queries]


def _wait_for_sources(query: _Query, stop: Stop) -> None:
    """Queries begin one after the other: each starts Pythons, which have ten seconds to come up."""
    while query.spark.isActive and query.spark.status["message"] in INITIALIZING:
        if stop.wait(LOOK_STOPPING_S):
            return


def _follow(queries: Sequence[_Query], stop: Stop, watch: Watch) -> None:
    while sum(_look(query, watch) for query in queries):
        watch.progress([query.progress for query in queries])
        if stop.wait(LOOK_S):
            return
    watch.progress([query.progress for query in queries])


def _look(query: _Query, watch: Watch) -> bool:
    """Whether it goes on; its error is ours."""
    is_active = bool(query.spark.isActive)  # before the reports, so that the last one is among them
    _count(query, watch)
    query.progress.is_active = is_active
    if not is_active and (error := query.spark.exception()) is not None:
        if NO_WORKER in str(error) and query.begun_in_vain < BEGUN_IN_VAIN_MAX:
            query.begun_in_vain += 1
            query.spark = query.begin()
            return True
        raise PipelineFailed(f"{query.progress.name}: {first_words(error)}") from error
    return is_active


def _count(query: _Query, watch: Watch) -> None:
    """Spark keeps the last hundred reports, more than come between two looks."""
    if _last_report(query) > query.progress.seen:
        query.begun_in_vain = 0
        reports = [json.loads(report.json) for report in query.spark.recentProgress]
        for report in query.progress.count(reports):
            watch.batch(query.progress.name, report)


def _end(queries: Sequence[_Query], stop: Stop, watch: Watch) -> None:
    """Each query as soon as its batch is done, all of them at once when a second signal says so."""
    left = [query for query in queries if query.spark.isActive]
    for query in left:
        query.stopping = _last_report(query)
    while left:
        for query in [one for one in left if stop.is_at_once or _is_between_batches(one)]:
            query.spark.stop()
            left.remove(query)
        if left:
            stop.wait_at_once(LOOK_STOPPING_S)
    for query in queries:
        _count(query, watch)
        query.progress.is_active = False
    watch.progress([query.progress for query in queries])


def _is_between_batches(query: _Query) -> bool:
    """It waits, or has begun another batch since it was to stop."""
    return (
        not query.spark.isActive
        or not query.spark.status["isTriggerActive"]
        or _last_report(query) != query.stopping
    )


def _last_report(query: _Query) -> str:
    last = query.spark.lastProgress
    return "" if last is None else str(last.timestamp)
