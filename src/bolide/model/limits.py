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

# ---- files -----------------------------------------------------------------------------------------------------

DELETIONS_MAX: Final = Limit(
    100_000,
    Where.FILES,
    "deleted topics that still have messages in the log",
    "no more are deleted until these have expired",
)
SMALL_FILE_BYTES_MAX: Final = Limit(
    256 * MIB,
    Where.FILES,
    "bytes of a table, a checkpoint or another small file",
    "it is not read, and named",
)
STORE_FILE_BYTES_MAX: Final = Limit(
    2**31 - 1,
    Where.FILES,
    "bytes of a segment, a queue file or an index file",
    "it is not taken for one, and named",
)
SEGMENTS_MISSING_MAX: Final = Limit(
    1024,
    Where.FILES,
    "segments missing in a log, for the offline tools",
    "what lies behind is not of the same log",
)
QUEUE_FILES_MISSING_MAX: Final = Limit(
    16,
    Where.FILES,
    "files missing in a queue, for the offline tools",
    "what lies behind is not of the same queue",
)
