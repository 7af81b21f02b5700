"""Options of a read of store files.  Those that `rocketmq` has too have its names and meanings."""

from collections.abc import Mapping
from dataclasses import dataclass

from bolide.arrow.columns_twin import BAD_BODIES, BROKER_NAME_BYTES_MAX, TIME_MS_END
from bolide.model.errors import ConfigError
from bolide.model.limits.spark import SPARK_PART_BYTES_MAX, SPARK_TASKS_MAX
from bolide.model.names import is_system_topic
from bolide.model.topic import Subscription
from bolide.pipeline.bounds import EARLIEST, LATEST, Bound, check_order, read_bound
from bolide.pipeline.option_table import OptionTexts, Use, quoted
from bolide.pipeline.options import Wanted, read_columns, read_wanted
from bolide.pipeline.topics import Topics, read_topics

PART_BYTES_DEFAULT = 128 * 1024 * 1024
PART_BYTES_MIN = 4096


@dataclass(frozen=True)
class StoreOptions:
    """Checked.  Neither topics nor a pattern: all topics but those of the broker itself."""

    path: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    includes_system_topics: bool = False
    since_ms: int = 0
    until_ms: int = TIME_MS_END
    tags: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    columns: tuple[str, ...] = ()
    bad_bodies: str = BAD_BODIES[0]
    fail_on_data_loss: bool = True
    broker_name: str = ""
    min_partitions: int = 1
    part_bytes_max: int = PART_BYTES_DEFAULT


def parse_store_options(given: Mapping[str, str]) -> StoreOptions:
    """`ConfigError` says everything that is wrong with them."""
    texts = OptionTexts(given, Use.STORE)
    hear = texts.hear
    topics = hear(Topics(), _topics, texts)
    start = hear(Bound("", EARLIEST), read_bound, texts, "starting", Use.STORE)
    end = hear(Bound("", LATEST), read_bound, texts, "ending", Use.STORE)
    hear(None, check_order, start, end)
    wanted = hear(Wanted(), read_wanted, texts)
    found = StoreOptions(
        path=hear("", texts.required, "path", "/data/rocketmq/store"),
        topics=topics.names,
        pattern=topics.pattern,
        includes_system_topics=hear(False, _includes_system_topics, texts, topics.names),
        since_ms=start.timestamp_ms or 0,
        until_ms=TIME_MS_END if end.timestamp_ms is None else end.timestamp_ms,
        tags=frozenset(Subscription.parse("", wanted.tags).tags),
        keys=wanted.keys,
        columns=hear((), read_columns, texts),
        bad_bodies=hear("", texts.choice, "badBodies", BAD_BODIES),
        fail_on_data_loss=hear(True, lambda: texts.flag("failOnDataLoss", default=True)),
        broker_name=hear("", _broker_name, texts),
        min_partitions=hear(1, texts.number, "minPartitions", 1, SPARK_TASKS_MAX, 1),
        part_bytes_max=hear(
            1,
            texts.number,
            "maxBytesPerPartition",
            PART_BYTES_MIN,
            SPARK_PART_BYTES_MAX,
            PART_BYTES_DEFAULT,
        ),
    )
    texts.say()
    return found


def _topics(texts: OptionTexts) -> Topics:
    ways = ("subscribe", "topic", "subscribePattern")
    return read_topics(texts) if any(way in texts for way in ways) else Topics()


def _includes_system_topics(texts: OptionTexts, topics: tuple[str, ...]) -> bool:
    included = texts.flag("includeSystemTopics", default=False)
    if not included and (named := [topic for topic in topics if is_system_topic(topic)]):
        raise ConfigError(
            f"{named[0]} is a topic of the broker's own: say includeSystemTopics=true to read it"
        )
    return included


def _broker_name(texts: OptionTexts) -> str:
    name = texts.get("brokerName") or ""
    if len(name.encode()) > BROKER_NAME_BYTES_MAX:
        raise ConfigError(f"brokerName: {quoted(name)} is longer than {BROKER_NAME_BYTES_MAX} bytes")
    return name
