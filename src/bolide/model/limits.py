"""Limits: how much of everything is taken, kept or made to wait.  One table, from which docs/limits.md is written.

Every number that keeps somebody else's input from costing without bound stands here, with what it bounds and what
happens beyond it.  A limit is an `int`, so that code compares with it; who looks for a reason finds it beside the number.
`make fix` writes the page again.
"""

from enum import Enum
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB


class Where(Enum):
    """Whose input a limit is about; a heading of the page."""

    CONNECTION = "On every connection, at broker and name server"
    BROKER = "At the broker"
    NAMESERVER = "At the name server"
    CLIENT = "In the Python clients and the Spark source"
    FILES = "In files"


class Limit(int):
    """A bound, with what it is for.

    >>> three = Limit(3, Where.BROKER, "wishes per fairy", "the fairy refuses")
    >>> three + 1, three.of
    (4, 'wishes per fairy')
    """

    where: Where
    of: str
    beyond: str
    setting: str

    def __new__(cls, value: int, where: Where, of: str, beyond: str, *, setting: str = "") -> "Limit":
        """`of`: what is counted; `beyond`: what happens to more; `setting`: what moves it, where anything does."""
        limit = super().__new__(cls, value)
        limit.where, limit.of, limit.beyond, limit.setting = where, of, beyond, setting
        return limit


def table() -> dict[str, Limit]:
    """Every limit by its name, in the order in which they stand here."""
    return {name: value for name, value in globals().items() if isinstance(value, Limit)}


# ---- connections -----------------------------------------------------------------------------------------------

# Because of it the first byte of a frame is 0 or 1: the scanners of the hot path rely on that.
FRAME_BYTES_MAX: Final = Limit(
    16 * MIB, Where.CONNECTION, "bytes of one frame", "the connection is closed, as by the original"
)
CONNECTIONS_MAX: Final = Limit(16_384, Where.CONNECTION, "open connections", "new ones are closed")

# ---- broker ----------------------------------------------------------------------------------------------------

TOPICS_MAX: Final = Limit(100_000, Where.BROKER, "topics", "no more are made")
GROUPS_MAX: Final = Limit(100_000, Where.BROKER, "consumer groups", "no more are made")

# ---- name server -----------------------------------------------------------------------------------------------

# ---- clients and Spark -----------------------------------------------------------------------------------------

SPARK_TASKS_MAX: Final = Limit(
    100_000, Where.CLIENT, "tasks of a Spark read", "the read is refused", setting="minPartitions"
)
SPARK_OFFSETS_TEXT_MAX: Final = Limit(
    16 * MIB, Where.CLIENT, "characters of offsets by queue, as an option of Spark", "the read is refused"
)
SPARK_PULL_BYTES_MAX: Final = Limit(
    8 * MIB,
    Where.CLIENT,
    "bytes that a Spark task asks a broker for at a time",
    "the read is refused",
    setting="maxBytesPerPull",
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

# ---- files -----------------------------------------------------------------------------------------------------
