"""Consumption: how much a consumer pulls and handles of each topic, and how long that takes, for operators.

The figures are the original's (RocketMQ: ConsumerStatsManager), of the last minute but for failures, which are of the
last hour.
"""

from bolide.machines.statistics import Figure, Statistics
from bolide.model.clock import Clock
from bolide.wire.bodies.running import TopicFigures

ITEMS_MAX = 5 * 4096
"""Five counts for each of so many topics; what comes above that is not counted."""

ITEMS_PER_STEP = 1024

_HANDLED = "CONSUME_OK_TPS"
_FAILED = "CONSUME_FAILED_TPS"
_CALL_TOOK = "CONSUME_RT"
_PULLED = "PULL_TPS"
_PULL_TOOK = "PULL_RT"

_MINUTE, _HOUR = 0, 1


class Consumption:
    """Counts of one group, by topic."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._statistics = Statistics(ITEMS_MAX)

    def handled(self, topic: str, *, good: int, bad: int, took_ms: int) -> None:
        """A call of the listener has ended."""
        self._add(_CALL_TOOK, topic, took_ms)
        if good:
            self._add(_HANDLED, topic, good)
        if bad:
            self._add(_FAILED, topic, bad)

    def pulled(self, topic: str, count: int, took_ms: int) -> None:
        """A pull has brought something."""
        self._add(_PULL_TOOK, topic, took_ms)
        self._add(_PULLED, topic, count)

    async def sample(self) -> None:
        """To be called every `SAMPLE_MS` (`machines/statistics.py`)."""
        for _ in self._statistics.sampling(self._clock.monotonic_ms, ITEMS_PER_STEP):
            pass

    def of(self, topic: str) -> TopicFigures:
        call_took = self._figure(_CALL_TOOK, topic, _MINUTE)
        if not call_took.total:
            call_took = self._figure(_CALL_TOOK, topic, _HOUR)
        return TopicFigures(
            pull_ms=self._figure(_PULL_TOOK, topic, _MINUTE).per_time,
            pulled_per_second=self._figure(_PULLED, topic, _MINUTE).per_second,
            call_ms=call_took.per_time,
            handled_per_second=self._figure(_HANDLED, topic, _MINUTE).per_second,
            failed_per_second=self._figure(_FAILED, topic, _MINUTE).per_second,
            failed_in_an_hour=self._figure(_FAILED, topic, _HOUR).total,
        )

    def _add(self, name: str, topic: str, amount: int) -> None:
        self._statistics.count(name, topic, self._clock.monotonic_ms()).add(amount)

    def _figure(self, name: str, topic: str, span: int) -> Figure:
        figures = self._statistics.figures(name, topic, self._clock.monotonic_ms())
        return Figure() if figures is None else figures[span]
