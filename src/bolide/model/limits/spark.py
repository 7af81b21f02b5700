"""What reads by Spark may ask for."""

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
SPARK_LOG_BYTES_MAX: Final = Limit(
    4 * MIB, Where.CLIENT, "bytes that a Spark task reads from a store's log at a time", "the rest comes next"
)
SPARK_RECORD_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.CLIENT,
    "bytes of a record that a Spark task reads from a store's log",
    "it goes to quarantine",
)
SPARK_QUARANTINE_BYTES_MAX: Final = Limit(
    1 * MIB,
    Where.CLIENT,
    "bytes of a damaged part of a log in one row of Spark",
    "the rest of it is in rows of its own",
)
SPARK_PART_BYTES_MAX: Final = Limit(
    1024 * MIB,
    Where.CLIENT,
    "bytes of a log that one Spark task reads",
    "the read is refused",
)
PIPELINE_FILE_BYTES_MAX: Final = Limit(
    1 * MIB, Where.CLIENT, "characters of a pipeline's definition in YAML", "the definition is refused"
)
PIPELINE_NODES_MAX: Final = Limit(
    50_000,
    Where.CLIENT,
    "keys and values of a pipeline's definition, aliases of YAML counted each time",
    "the definition is refused",
)
SPARK_KEYS_MAX: Final = Limit(1_000, Where.CLIENT, "keys that a Spark read may name", "the read is refused")
SPARK_WRITE_ROWS_MAX: Final = Limit(
    16_777_216, Where.CLIENT, "rows that a Spark task writes of one batch of a stream", "the task fails"
)
SPARK_WRITE_FRAME_BYTES_MAX: Final = Limit(
    128 * 1024,
    Where.CLIENT,
    "bytes of a request of a Spark task that writes, before its last message",
    "another request begins",
)
SPARK_WRITE_FRAME_ROWS_MAX: Final = Limit(
    1024, Where.CLIENT, "messages of a request of a Spark task that writes", "another request begins"
)
SPARK_WRITE_AHEAD_BYTES_MAX: Final = Limit(
    16 * MIB,
    Where.CLIENT,
    "bytes that a Spark task has sent and that are not acknowledged",
    "the task waits for an acknowledgement",
)
SPARK_WRITE_AHEAD_MAX: Final = Limit(
    64,
    Where.CLIENT,
    "requests of a Spark task that are not acknowledged",
    "the task waits for an acknowledgement",
)
SPARK_WRITE_TOPICS_MAX: Final = Limit(
    64,
    Where.CLIENT,
    "topics that a Spark task writes to",
    "the task fails: sort by topic, or use the option topic",
)
SPARK_WRITE_RATE_MAX: Final = Limit(
    1_000_000,
    Where.CLIENT,
    "messages a second that a Spark task may be told to keep to",
    "the write is refused",
    bounds=("maxMessagesPerSecond",),
)
REPLAY_SLICE_MESSAGES_MAX: Final = Limit(
    100_000,
    Where.CLIENT,
    "messages of a replay that are sent before it takes note of how far it has come",
    "the rest is a slice of its own; of an archive, a minute is never cut",
)
REPLAY_SLICES_MAX: Final = Limit(
    100_000, Where.CLIENT, "slices of a replay", "slices are larger, or the replay is refused"
)
REPLAY_FILE_BYTES_MAX: Final = Limit(
    64 * MIB, Where.CLIENT, "bytes of a file that a replay or a plan of a redrive is kept in", "it is refused"
)
REDRIVE_MESSAGES_MAX: Final = Limit(
    100_000, Where.CLIENT, "dead letters of one plan of a redrive", "the oldest are planned, and it is said"
)
DEAD_LETTER_CAUSES_MAX: Final = Limit(
    1_000,
    Where.CLIENT,
    "causes in a report on dead letters",
    "the largest are told, and how many more there are",
)
ARCHIVE_ENTRY_BYTES_MAX: Final = Limit(
    256 * MIB, Where.CLIENT, "characters of an entry in the manifest of an archive", "the archive is refused"
)
ARCHIVE_SPANS_MAX: Final = Limit(
    100_000,
    Where.CLIENT,
    "separate spans of offsets that are listed of a batch or of an audit",
    "the batch, or the audit, fails",
)
STATS_WINDOWS_MAX: Final = Limit(
    1_000,
    Where.CLIENT,
    "windows of a report of `bolide pipeline stats`",
    "the windows are made wider, and the report says so",
)
STATS_TOPICS_MAX: Final = Limit(
    100,
    Where.CLIENT,
    "topics of a report of `bolide pipeline stats`",
    "those with the fewest messages are left out, and the report says so",
)
STATS_NAMES_MAX: Final = Limit(
    1_000,
    Where.CLIENT,
    "keys, and tags, of a topic in a report of `bolide pipeline stats`",
    "the option is refused",
)
STATS_HISTORY_BYTES_MAX: Final = Limit(
    16 * MIB,
    Where.CLIENT,
    "bytes of a history of lag that a report of `bolide pipeline stats` reads",
    "the newest are read; the file is left as it is",
)
