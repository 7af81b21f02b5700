"""Dead letters counted: by cause, by age, and how many of each cause died when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from bolide.model.limits.spark import DEAD_LETTER_CAUSES_MAX
from bolide.pipeline.dead_letters.letters import ATTEMPTS, CAUSE, CAUSE_COLUMNS, HOST, ORIGIN, TAG, WHY

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
AGES: Mapping[str, int] = {"< 1 h": HOUR_MS, "< 1 d": DAY_MS, "< 7 d": 7 * DAY_MS}
OLDER = ">= 7 d"
BINS = 24
"""So many hours or days of a trend are told, the last ones."""


@dataclass(frozen=True)
class Cause:
    """Letters that died of the same, as far as that is known."""

    cause: str
    """A short name that is the same in every report."""
    topic: str
    tag: str
    last_host: str
    attempts: int | None
    why: str | None
    letters: int
    first_ms: int
    last_ms: int
    ages: Mapping[str, int]
    example: str
    """The id of one of them."""
    trend: Sequence[int] = ()


@dataclass(frozen=True)
class Report:
    letters: int
    causes: Sequence[Cause]
    more_causes: int
    """How many are not told."""
    bin_ms: int
    """An hour, or a day: what each number of a trend is about."""
    trend_from_ms: int | None
    trend: Sequence[int]
    """Of all causes together."""


def report(letters: DataFrame, now_ms: int) -> Report:
    """Of a frame of `letters.py`."""
    stored = F.unix_millis("storeTimestamp")
    told = letters.select(CAUSE, *CAUSE_COLUMNS, F.coalesce(stored, F.lit(0)).alias("died"), "msgId")
    age = F.lit(now_ms) - F.col("died")
    ages, younger = [], F.lit(False)
    for name, limit_ms in AGES.items():
        ages.append(F.count_if((age < limit_ms) & ~younger).alias(name))
        younger = age < limit_ms
    ages.append(F.count_if(~younger).alias(OLDER))
    counted = told.groupBy(CAUSE, *CAUSE_COLUMNS).agg(
        F.count(F.lit(1)).alias("letters"),
        F.min("died").alias("first"),
        F.max("died").alias("last"),
        F.max_by("msgId", "died").alias("example"),
        *ages,
    )
    rows = counted.orderBy(F.desc("letters"), CAUSE).limit(DEAD_LETTER_CAUSES_MAX).collect()
    if not rows:
        return Report(0, [], 0, HOUR_MS, None, [])
    all_causes = counted.count() if len(rows) == DEAD_LETTER_CAUSES_MAX else len(rows)
    last_ms = max(row["last"] for row in rows)
    bin_ms = bin_of(min(row["first"] for row in rows), last_ms)
    from_ms = last_ms // bin_ms * bin_ms - (BINS - 1) * bin_ms
    trends = _trends(told, from_ms, bin_ms, [row[CAUSE] for row in rows])
    causes = [_cause(row, trends.get(row[CAUSE], [0] * BINS)) for row in rows]
    whole = [sum(numbers) for numbers in zip(*trends.values(), strict=True)] or [0] * BINS
    letters_in_all = sum(one.letters for one in causes) if all_causes == len(causes) else told.count()
    return Report(letters_in_all, causes, all_causes - len(causes), bin_ms, from_ms, whole)


def _cause(row: Row, trend: Sequence[int]) -> Cause:
    return Cause(
        cause=row[CAUSE],
        topic=row[ORIGIN],
        tag=row[TAG],
        last_host=row[HOST],
        attempts=row[ATTEMPTS],
        why=row[WHY],
        letters=row["letters"],
        first_ms=row["first"],
        last_ms=row["last"],
        ages={name: row[name] for name in (*AGES, OLDER)},
        example=row["example"],
        trend=trend,
    )


def bin_of(first_ms: int, last_ms: int) -> int:
    """Hours, as long as they show most of it.

    >>> bin_of(0, 2 * DAY_MS) == HOUR_MS, bin_of(0, 3 * DAY_MS) == DAY_MS
    (True, True)
    """
    return HOUR_MS if last_ms - first_ms <= 2 * DAY_MS else DAY_MS


def _trends(told: DataFrame, from_ms: int, bin_ms: int, causes: Sequence[str]) -> dict[str, list[int]]:
    """Of these causes, and under an empty name of all others together: who sends with random tags makes many."""
    place = F.floor((F.col("died") - from_ms) / bin_ms).cast("int").alias("place")
    cause = F.when(F.col(CAUSE).isin(list(causes)), F.col(CAUSE)).otherwise(F.lit("")).alias(CAUSE)
    rows = told.where(F.col("died") >= from_ms).groupBy(cause, place).count().collect()
    trends: dict[str, list[int]] = {}
    for row in rows:
        trends.setdefault(row[CAUSE], [0] * BINS)[min(row["place"], BINS - 1)] += row["count"]
    return trends
