"""The limits of reads by Spark: a part of the table in `limits.py` that nobody but the pipeline needs."""

from typing import Final

from bolide.model.limit import MIB, Limit, Where

SPARK_TASKS_MAX: Final = Limit(
    100_000, Where.CLIENT, "tasks of a Spark read", "the read is refused", bounds=("minPartitions",)
)
SPARK_OFFSETS_TEXT_MAX: Final = Limit(
    16 * MIB, Where.CLIENT, "characters of offsets by queue, as an option of Spark", "the read is refused"
)
SPARK_PULL_BYTES_MAX: Final = Limit(
    8 * MIB,
    Where.CLIENT,
    "bytes that a Spark task asks a broker for at a time",
    "the read is refused",
    bounds=("maxBytesPerPull",),
)
SPARK_PULLS_AHEAD_MAX: Final = Limit(
    16, Where.CLIENT, "pulls of a Spark task under way at once", "the next one waits for the task"
)
SPARK_AHEAD_BYTES_MAX: Final = Limit(
    8 * MIB,
    Where.CLIENT,
    "bytes that a Spark task holds before its turn comes to read them",
    "pulls that are under way end, one answer each; no others are made",
)
SPARK_BATCH_ROWS_MAX: Final = Limit(
    65_536, Where.CLIENT, "rows of a batch given to Spark", "a new batch begins"
)
# Checked before every message, so a batch has at most this and one body, unpacked.
SPARK_BATCH_BYTES_MAX: Final = Limit(
    8 * MIB,
    Where.CLIENT,
    "bytes of a batch given to Spark, its bodies unpacked, before its last message",
    "a new batch begins",
)
