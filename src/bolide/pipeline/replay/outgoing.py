"""From messages that were read to messages that are sent: what they keep, and how they say where they come from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from bolide.model.message import Property
from bolide.pipeline.refused import refused, without
from bolide.pipeline.replay.plan import NAMED_MAX, Replay
from bolide.pipeline.replay.source import IS_SENDABLE

REPLAY_ID = "REPLAY_ID"
"""The property that names the replay."""

REPLAY_OF = "REPLAY_OF"
"""The message id of what was replayed."""

REPLAY_FROM = "REPLAY_FROM"
"""Its place: topic, broker, queue and offset, with blanks between them; a topic that is made again has them anew."""

PLACE = ("topic", "brokerName", "queueId", "queueOffset")


def outgoing(frame: DataFrame, replay: Replay) -> DataFrame:
    """The copies that are to be written, each always in the same one of the replay's tasks."""
    frame = frame.where(IS_SENDABLE)
    if replay.asked.keep_order:
        frame = frame.repartition(replay.tasks, _shard()).sortWithinPartitions(*PLACE)
    else:
        frame = frame.repartition(replay.tasks, *PLACE).sortWithinPartitions("storeTimestamp", "queueOffset")
    return frame.select(*copied(replay))


def copied(replay: Replay) -> list[Column]:
    """The columns of a copy, as a write takes them."""
    said = {REPLAY_ID: F.lit(replay.id), REPLAY_OF: F.col("msgId"), REPLAY_FROM: F.concat_ws(" ", *PLACE)}
    columns = [F.col("body"), F.col("tags"), F.col("keys"), _properties(said)]
    if replay.asked.keep_order:
        columns.append(_shard().alias("sharding_key"))
    return columns


@dataclass
class Sieve:
    """Lets through the copies that a write takes: it would end at any other."""

    refused: int = 0
    named: list[str] = field(default_factory=list)
    """The first of those, by their originals."""

    def sift(self, batches: Iterator[pa.RecordBatch], topic: str) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = refused(batch, topic)
            self.refused += len(found)
            for row, why in list(found.items())[: NAMED_MAX - len(self.named)]:
                said = dict(batch.column("properties")[row].as_py())
                self.named.append(f"{said[REPLAY_OF]} ({said[REPLAY_FROM]}): {why}")
            yield without(batch, found)


def _shard() -> Column:
    return F.coalesce(F.col("properties")[Property.SHARDING_KEY], F.concat_ws(" ", *PLACE[:3]))


def _properties(said: Mapping[str, Column]) -> Column:
    """Those of the message, and what is said of it now.

    What brokers and clients write themselves the write leaves out.
    """

    def stays(name: Column, value: Column) -> Column:
        return ~name.isin(list(said))

    pairs = [column for name, value in said.items() for column in (F.lit(name), value)]
    return F.map_concat(F.map_filter("properties", stays), F.create_map(*pairs)).alias("properties")
