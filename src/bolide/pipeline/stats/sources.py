"""What a report is made of: topics of a cluster, a store directory or an archive, as a frame, and their queues.

Queues are asked for besides the messages: one that nothing was sent to is seen nowhere else, and is what makes a topic
skewed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bolide.admin.many import of_each
from bolide.admin.topics import topic_route
from bolide.model.errors import NothingFound
from bolide.offline.files import StoreFiles
from bolide.offline.table_files import read_tables
from bolide.pipeline.access import ClusterAccess
from bolide.pipeline.archive.place import open_place
from bolide.store.disk_os import OsDisk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = (
    "topic",
    "brokerName",
    "queueId",
    "body",
    "bodyError",
    "tags",
    "keys",
    "bornTimestamp",
    "storeTimestamp",
    "reconsumeTimes",
    "sysFlag",
)
"""All that is read of a message; the body for its length alone."""

_OPTIONS = {"columns": ",".join(COLUMNS), "failOnDataLoss": "false"}
"""What retention deletes while it is counted is no reason to have no report."""

QueueKey = tuple[str, int]
"""A broker's name and the number of its queue."""

Queues = Mapping[str, Sequence[QueueKey]]
"""By topic."""


@dataclass(frozen=True)
class Span:
    """Stored at or after `since_ms` and before `until_ms`; None is no bound."""

    since_ms: int | None = None
    until_ms: int | None = None

    def options(self) -> dict[str, str]:
        bounds = {"startingTimestamp": self.since_ms, "endingTimestamp": self.until_ms}
        return {name: str(bound) for name, bound in bounds.items() if bound is not None}


class Source(Protocol):
    """Where messages come from; its text says it in words."""

    @property
    def topics(self) -> Sequence[str]:
        """Those that the report has in any case; none are named where it has all that are there."""
        ...

    async def queues(self) -> Queues:
        """The queues that the topics have, with messages or without; an error where a topic is not there."""
        ...

    def frame(self, spark: "SparkSession", span: Span) -> "DataFrame":
        """Messages with `COLUMNS`."""
        ...


@dataclass(frozen=True)
class ClusterSource:
    """Topics as the brokers of a cluster give them."""

    cluster: ClusterAccess
    topics: Sequence[str]

    def __str__(self) -> str:
        return f"the brokers of {self.cluster.nameserver}"

    async def queues(self) -> Queues:
        """`RouteNotFound` for a topic that no broker has."""
        async with self.cluster.admin() as servers:
            routes = await of_each(self.topics, lambda topic: topic_route(servers, topic))
        return {
            topic: [
                (queue.broker_name, number) for queue in route.queues for number in range(queue.write_queues)
            ]
            for topic, route in zip(self.topics, routes, strict=True)
        }

    def frame(self, spark: "SparkSession", span: Span) -> "DataFrame":
        return spark.read.format("rocketmq").options(**self.options(span)).load()

    def options(self, span: Span) -> dict[str, str]:
        """A queue with nothing at or after the beginning of the span is idle, and no error."""
        return {
            **self.cluster.options(),
            "subscribe": ",".join(self.topics),
            "startingOffsetsByTimestampStrategy": "latest",
            **_OPTIONS,
            **span.options(),
        }


@dataclass(frozen=True)
class StoreSource:
    """Topics as they lie in a broker's directory; without names, all but the broker's own."""

    path: str
    topics: Sequence[str] = ()

    def __str__(self) -> str:
        return f"the store {self.path}"

    async def queues(self) -> Queues:
        """`NothingFound` for a topic that the store does not have, `NotAStore` for a directory that is none."""
        store = StoreFiles(OsDisk(), self.path)
        try:
            tables = read_tables(store.disk, store.config_paths())
            found: dict[str, set[QueueKey]] = {}
            for topic, config in (tables.topics or {}).items():
                found[topic] = {(tables.broker_name, number) for number in range(config.write_queues)}
            for topic, number in store.queues:
                found.setdefault(topic, set()).add((tables.broker_name, number))
        finally:
            store.close()
        if missing := sorted(set(self.topics) - found.keys()):
            raise NothingFound(
                f"the store {self.path} has no topic {', '.join(missing)};"
                f" `bolide store inspect {self.path}` names all"
            )
        return {topic: sorted(queues) for topic, queues in found.items()}

    def frame(self, spark: "SparkSession", span: Span) -> "DataFrame":
        return spark.read.format("rocketmq-store").options(**self.options(span)).load(self.path)

    def options(self, span: Span) -> dict[str, str]:
        """A topic of the broker's own is read when it is named."""
        named = {"subscribe": ",".join(self.topics), "includeSystemTopics": "true"} if self.topics else {}
        return {**named, **_OPTIONS, **span.options()}


@dataclass(frozen=True)
class ArchiveSource:
    """Topics as an archive of ours keeps them; without names, all of it.  Its queues are those with messages."""

    path: str
    topics: Sequence[str] = ()

    def __str__(self) -> str:
        return f"the archive {self.path}"

    async def queues(self) -> Queues:
        """`NothingFound` for a topic that the archive does not have, and for a folder that is none."""
        place = open_place(self.path)
        from bolide.pipeline.archive.read import committed  # it needs PySpark, which other sources do not yet

        found: dict[str, list[QueueKey]] = {}
        for queue in sorted(committed(place).ranges):
            found.setdefault(queue.topic, []).append((queue.broker_name, queue.queue_id))
        if missing := sorted(set(self.topics) - found.keys()):
            raise NothingFound(
                f"the archive {self.path} has no topic {', '.join(missing)}; it has {', '.join(found) or 'none'}"
            )
        return found

    def frame(self, spark: "SparkSession", span: Span) -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

        from bolide.pipeline.archive.read import archived

        rows = archived(spark, self.path, self.topics or None).select(*COLUMNS)
        stored = F.unix_millis("storeTimestamp")
        if span.since_ms is not None:
            rows = rows.where(stored >= span.since_ms)
        return rows if span.until_ms is None else rows.where(stored < span.until_ms)
