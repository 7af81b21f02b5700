"""Options of a read: what they mean, and which combinations make no sense.

Names and meanings follow Spark's Kafka source (`option_table.py` has the names), the form of offsets follows
RocketMQ-Spark.  Everything that is wrong is said at once.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from bolide.arrow.columns_twin import BAD_BODIES
from bolide.client import checks
from bolide.model.errors import ConfigError
from bolide.model.limits.spark import SPARK_KEYS_MAX, SPARK_PULL_BYTES_MAX, SPARK_TASKS_MAX
from bolide.model.names import check_group
from bolide.model.numbers import INT64_MAX
from bolide.model.topic import Subscription
from bolide.pipeline.access import ClusterAccess, read_cluster
from bolide.pipeline.bounds import EARLIEST, LATEST, Bound, check_order, read_bound
from bolide.pipeline.option_table import OptionTexts, Use, named, quoted, say_all
from bolide.pipeline.topics import Topics, read_topics

log = logging.getLogger(__name__)

PULL_BYTES_DEFAULT = 4 * 1024 * 1024
GROUP_DEFAULT = "spark-reader"
TRIGGER_DELAY_DEFAULT_MS = 15 * 60 * 1000
NATIVE, KAFKA = "native", "kafka"
OF_TRIGGERS = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", "maxBytesPerTrigger")


@dataclass(frozen=True)
class Admission:
    """How much of what is there one batch of a stream takes; None is no limit."""

    offsets_max: int | None = None
    offsets_min: int | None = None
    bytes_max: int | None = None
    delay_max_ms: int = TRIGGER_DELAY_DEFAULT_MS


@dataclass(frozen=True)
class Cutting:
    """How ranges become tasks."""

    partitions_min: int = 1
    records_max: int | None = None
    bytes_max: int | None = None


@dataclass(frozen=True)
class Wanted:
    """Which messages of a queue are rows.  Tags and SQL are the broker's to judge, keys ours."""

    tags: str = "*"
    sql: str | None = None
    keys: frozenset[str] = frozenset()

    def subscription(self, topic: str) -> Subscription:
        return checks.subscription(topic, self.tags, self.sql)

    @property
    def leaves_out(self) -> bool:
        """Whether a broker may give less than it has."""
        return self.sql is not None or self.tags != "*"


@dataclass(frozen=True)
class ReadOptions:
    """Options of a read, checked."""

    cluster: ClusterAccess
    topics: Topics
    start: Bound
    end: Bound
    start_without_match: str = "error"
    fail_on_data_loss: bool = True
    bad_bodies: str = BAD_BODIES[0]
    cutting: Cutting = Cutting()
    admission: Admission = Admission()
    wanted: Wanted = Wanted()
    group: str = GROUP_DEFAULT
    commits: bool = False
    """Whether a stream tells the brokers how far its group has come."""
    pull_bytes_max: int = PULL_BYTES_DEFAULT
    layout: str = NATIVE
    include_headers: bool = False
    columns: tuple[str, ...] = ()
    """Those that are made; none named makes all."""
    pushes_filters: bool = False
    """Whether a batch takes Spark's filters, for a frame that is used once (`filtering_reader.py`)."""


def parse_options(given: Mapping[str, str], use: Use = Use.BATCH) -> ReadOptions:
    """The options of a batch read or of a stream; `ConfigError` says everything that is wrong with them."""
    texts = OptionTexts(given, use)
    found = _parse(texts, use)
    texts.say()
    if use is Use.BATCH and (unused := [name for name in OF_TRIGGERS if name in texts]):
        log.warning("a batch read has no triggers and takes everything: %s is ignored", ", ".join(unused))
    return found


def check_options(given: Mapping[str, str]) -> ReadOptions:
    """What is known at `load()`, when nobody knows yet whether it will be a batch or a stream.

    Only what is wrong for both is said; the rest when the read begins.
    """
    batch, stream = OptionTexts(given, Use.BATCH), OptionTexts(given, Use.STREAM)
    found = _parse(batch, Use.BATCH)
    _parse(stream, Use.STREAM)
    say_all([text for text in batch.complaints if text in stream.complaints])
    return found


def _parse(texts: OptionTexts, use: Use) -> ReadOptions:
    hear = texts.hear
    topics = hear(Topics(), read_topics, texts)
    start = hear(Bound("", EARLIEST), read_bound, texts, "starting", use)
    end = hear(Bound("", LATEST), read_bound, texts, "ending", use)
    hear(None, check_order, start, end)
    for bound in (start, end):
        hear(None, topics.check_named, bound.name, bound.named or ())
    layout = hear(NATIVE, texts.choice, "schema", (NATIVE, KAFKA))
    return ReadOptions(
        cluster=read_cluster(texts),
        topics=topics,
        start=start,
        end=end,
        start_without_match=hear("", texts.choice, "startingOffsetsByTimestampStrategy", ("error", "latest")),
        fail_on_data_loss=hear(True, _flag, texts, "failOnDataLoss", True),
        bad_bodies=hear("", texts.choice, "badBodies", BAD_BODIES),
        cutting=Cutting(
            partitions_min=hear(1, texts.number, "minPartitions", 1, SPARK_TASKS_MAX, 1),
            records_max=hear(None, texts.number, "maxRecordsPerPartition", 1, INT64_MAX, None),
            bytes_max=hear(None, texts.number, "maxBytesPerPartition", 1, INT64_MAX, None),
        ),
        admission=hear(Admission(), _admission, texts),
        wanted=hear(Wanted(), read_wanted, texts),
        group=hear("", named, "consumerGroup", check_group, texts.get("consumerGroup") or GROUP_DEFAULT),
        commits=bool(texts.get("consumerGroup")),
        pull_bytes_max=hear(0, texts.number, "maxBytesPerPull", 1, SPARK_PULL_BYTES_MAX, PULL_BYTES_DEFAULT),
        layout=layout,
        include_headers=hear(False, _headers, texts, layout),
        columns=hear((), read_columns, texts),
        pushes_filters=hear(False, _flag, texts, "pushFilters", False),
    )


def _flag(texts: OptionTexts, name: str, default: bool) -> bool:
    return texts.flag(name, default=default)


def _headers(texts: OptionTexts, layout: str) -> bool:
    wanted = texts.flag("includeHeaders", default=False)
    if wanted and layout == NATIVE:
        raise ConfigError(
            "includeHeaders goes with schema=kafka; without it the column properties has them all"
        )
    return wanted


def read_columns(texts: OptionTexts) -> tuple[str, ...]:
    """Names as the user wrote them; which there are is known to the schema."""
    names = [name.strip() for name in (texts.get("columns") or "").split(",") if name.strip()]
    if "columns" in texts and not names:
        raise ConfigError("columns names no column: leave it out to have all of them")
    return tuple(names)


def read_wanted(texts: OptionTexts) -> Wanted:
    sql = texts.get("sql")
    if sql is not None and "tags" in texts:
        raise ConfigError("tags and sql contradict each other: say TAGS = 'paid' in the SQL expression")
    name = "tags" if sql is None else "sql"
    found = named(name, checks.subscription, "", texts.get("tags") or "*", sql)
    tags = found.expression if sql is None else "*"
    keys = frozenset(key.strip() for key in (texts.get("keys") or "").split(",") if key.strip())
    if len(keys) > SPARK_KEYS_MAX:
        raise ConfigError(
            f"keys names {len(keys)} keys; {SPARK_KEYS_MAX} are possible: join with a table of them"
        )
    if spaced := next((key for key in sorted(keys) if " " in key), None):
        raise ConfigError(f"keys: {quoted(spaced)} has a space, which no key has; several are joined by ','")
    return Wanted(tags, sql, keys)


def _admission(texts: OptionTexts) -> Admission:
    most = texts.number("maxOffsetsPerTrigger", 1, INT64_MAX, None)
    least = texts.number("minOffsetsPerTrigger", 1, INT64_MAX, None)
    if most is not None and least is not None and least > most:
        raise ConfigError(f"minOffsetsPerTrigger ({least}) is more than maxOffsetsPerTrigger ({most})")
    if "maxTriggerDelay" in texts and least is None:
        raise ConfigError(
            "maxTriggerDelay goes with minOffsetsPerTrigger: without a minimum nothing is delayed"
        )
    return Admission(
        offsets_max=most,
        offsets_min=least,
        bytes_max=texts.number("maxBytesPerTrigger", 1, INT64_MAX, None),
        delay_max_ms=texts.duration_ms("maxTriggerDelay", TRIGGER_DELAY_DEFAULT_MS),
    )
