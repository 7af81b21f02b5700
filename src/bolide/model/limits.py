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
# Each queue costs a folder once it is written to.
TOPIC_QUEUES_MAX: Final = Limit(16_384, Where.BROKER, "queues of one topic", "refused")
# More than the limit above, because others have other limits; larger numbers are no numbers of queues.
TOLD_QUEUES_MAX: Final = Limit(
    65_536, Where.CONNECTION, "queues of one topic of which somebody else tells", "that message is refused"
)
CONFIG_BYTES_MAX: Final = Limit(
    64 * KIB,
    Where.BROKER,
    "bytes of a group's settings; of a topic's attributes and unknown members",
    "refused",
)
SETTINGS_BYTES_MAX: Final = Limit(64 * KIB, Where.BROKER, "bytes of settings in one request", "refused")
PULL_BYTES_MAX: Final = Limit(
    8 * MIB, Where.BROKER, "bytes of messages in one pull, unless it is a single larger one", "the next pull has them",
    setting="maxTransferBytesOnMessageInMemory",
)  # fmt: skip
PULL_COUNT_MAX: Final = Limit(
    32_768, Where.BROKER, "messages in one pull", "the next pull has them",
    setting="maxTransferCountOnMessageInMemory",
)  # fmt: skip
# Clients give a pull up after 30 s, so it must be answered before, whatever it asks for.
HOLD_MS_MAX: Final = Limit(
    25_000, Where.BROKER, "a pull waits for messages", "it is answered that there are none",
    setting="shortPollingTimeMills",
)  # fmt: skip
JSON_DEPTH_MAX: Final = Limit(64, Where.CONNECTION, "levels of nested JSON, in files too", "refused")

# ---- name server -----------------------------------------------------------------------------------------------

# ---- clients and Spark -----------------------------------------------------------------------------------------

# ---- files -----------------------------------------------------------------------------------------------------
