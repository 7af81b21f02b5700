"""From messages that were read to messages that are sent: what they keep, and how they say where they come from."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

from bolide.model.message import Property
from bolide.pipeline.replay.plan import Replay
from bolide.pipeline.replay.source import IS_SENDABLE

REPLAY_ID = "REPLAY_ID"
"""The property that names the replay."""

REPLAY_OF = "REPLAY_OF"
"""The message id of what was replayed."""

REPLAY_FROM = "REPLAY_FROM"
"""Its place: topic, broker, queue and offset, with blanks between them; a topic that is made again has them anew."""

PLACE = ("topic", "brokerName", "queueId", "queueOffset")


def outgoing(frame: DataFrame, replay: Replay) -> DataFrame:
    """The rows that a write takes, each always in the same one of the replay's tasks."""
    frame = frame.where(IS_SENDABLE)
    shard = F.coalesce(F.col("properties")[Property.SHARDING_KEY], F.concat_ws(" ", *PLACE[:3]))
    if replay.asked.keep_order:
        frame = frame.repartition(replay.tasks, shard).sortWithinPartitions(*PLACE)
    else:
        frame = frame.repartition(replay.tasks, *PLACE).sortWithinPartitions("storeTimestamp", "queueOffset")
    said = {REPLAY_ID: F.lit(replay.id), REPLAY_OF: F.col("msgId"), REPLAY_FROM: F.concat_ws(" ", *PLACE)}
    columns = [F.col("body"), F.col("tags"), F.col("keys"), _properties(said)]
    if replay.asked.keep_order:
        columns.append(shard.alias("sharding_key"))
    return frame.select(*columns)


def _properties(said: Mapping[str, Column]) -> Column:
    """Those of the message, and what is said of it now.

    What brokers and clients write themselves the write leaves out.
    """

    def stays(name: Column, value: Column) -> Column:
        return ~name.isin(list(said))

    pairs = [column for name, value in said.items() for column in (F.lit(name), value)]
    return F.map_concat(F.map_filter("properties", stays), F.create_map(*pairs)).alias("properties")
