"""Limits: how much of everything is taken, kept or made to wait.  One table, from which docs/limits.md is written.

Every number that keeps somebody else's input from costing without bound stands here, with what it bounds and what
happens beyond it.  A limit is an `int`, so that code compares with it.  `make fix` writes the page again.
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
# Every legal request fits: a message's 32,767 bytes of properties may be written as six bytes each (\u0001), and so may
# the 32,768 characters of a subscription.
HEADER_BYTES_MAX: Final = Limit(
    256 * KIB,
    Where.CONNECTION,
    "bytes of a request's header, its remark included",
    "the connection is closed",
)
HEADER_FIELDS_MAX: Final = Limit(
    128, Where.CONNECTION, "fields of a header; real clients send 20", "the connection is closed"
)
DIALECT_BYTES_MAX: Final = Limit(
    64 * KIB,
    Where.CONNECTION,
    "bytes of a request's body in Java's dialect of JSON (map keys without quotes), which is read slowly",
    "the request is refused; standard JSON may fill its frame",
)
KEPT_BYTES_MAX: Final = Limit(
    128 * MIB,
    Where.CONNECTION,
    "bytes kept for all connections together: beginnings of frames, answers that nobody reads, waiting requests",
    "those that bring nothing and have most are closed",
)
LARGE_FRAMES_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.CONNECTION,
    "bytes of frames above 256 KiB that are being received at the same time",
    "further ones wait; meanwhile who brings fewer than 64 KiB a second is closed",
)
IN_FLIGHT_MAX: Final = Limit(
    100_000,
    Where.CONNECTION,
    "requests that wait for something, of all connections",
    "they are refused as busy",
)
IN_FLIGHT_OF_ONE_MAX: Final = Limit(
    1024,
    Where.CONNECTION,
    "requests of one connection that wait for something",
    "it is not read from meanwhile",
)
LARGE_ANSWERS_MAX: Final = Limit(
    16, Where.CONNECTION, "large answers in the making for one connection", "further ones are refused as busy"
)
UNREAD_BYTES_MAX: Final = Limit(
    4 * MIB,
    Where.CONNECTION,
    "bytes of answers that a connection has not read",
    "it is not read from meanwhile",
)
TURN_MS_MAX: Final = Limit(
    3,
    Where.CONNECTION,
    "milliseconds that a connection's requests take in one go",
    "others have their turn; those that had theirs share as much time among them",
)
REQUESTS_PER_TURN_MAX: Final = Limit(
    64,
    Where.CONNECTION,
    "requests of a connection in one go, runs of plain sends aside",
    "others have their turn",
)
IDLE_MS_MAX: Final = Limit(
    120_000,
    Where.CONNECTION,
    "milliseconds in which a connection has brought no whole frame, or has read none of what waits for it",
    "it is closed, whatever is pending",
)
CALLS_MAX: Final = Limit(
    65_536, Where.CONNECTION, "calls of ours that wait for an answer on one connection", "a further one fails"
)
CONNECTIONS_MAX: Final = Limit(16_384, Where.CONNECTION, "open connections", "new ones are closed")

# ---- broker ----------------------------------------------------------------------------------------------------

TOPICS_MAX: Final = Limit(100_000, Where.BROKER, "topics", "no more are made")
GROUPS_MAX: Final = Limit(100_000, Where.BROKER, "consumer groups", "no more are made")

# ---- name server -----------------------------------------------------------------------------------------------

# ---- clients and Spark -----------------------------------------------------------------------------------------

# Routes in it are as large as a cluster: the original's name server writes broker ids without quotes.
ANSWER_DIALECT_BYTES_MAX: Final = Limit(
    1 * MIB, Where.CLIENT, "bytes of an answer in Java's dialect of JSON", "the answer counts as malformed"
)

# ---- files -----------------------------------------------------------------------------------------------------
