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

ROUTE_BYTES_MAX: Final = Limit(4 * MIB, Where.CLIENT, "bytes of a route", "the route is refused")
ROUTE_BROKERS_MAX: Final = Limit(1024, Where.CLIENT, "brokers in a route", "the route is refused")
ROUTE_QUEUES_MAX: Final = Limit(
    65_536, Where.CLIENT, "queues in a route, of all its brokers", "the route is refused"
)
BROKER_ADDRESSES_MAX: Final = Limit(
    16, Where.CLIENT, "addresses of one broker in a route", "the broker is left out, and a warning says so"
)
GROUP_MEMBERS_MAX: Final = Limit(
    16_384, Where.CLIENT, "members of a group", "the answer is refused; a consumer keeps the queues it has"
)
REMARK_LENGTH_MAX: Final = Limit(
    4096, Where.CLIENT, "characters of the reason that a server gives", "the rest is cut off"
)
BODY_UNPACKED_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.CLIENT,
    "bytes that one body unpacks to",
    "it stays packed, and is marked as a body that is bad",
)
# A pull always brings one message, however large: else a consumer would stop there.
PULL_COST_BYTES_MAX: Final = Limit(
    16 * MIB,
    Where.CLIENT,
    "bytes that the messages of one pull take, unpacked",
    "the next pull brings the rest",
)
QUEUE_CACHE_BYTES_MAX: Final = Limit(
    100 * MIB, Where.CLIENT, "bytes that messages of one queue take while they wait for the listener",
    "the queue is not pulled from",
)  # fmt: skip
QUEUE_CACHE_MESSAGES_MAX: Final = Limit(
    1000, Where.CLIENT, "messages of one queue that wait for the listener", "the queue is not pulled from"
)
QUEUE_SPAN_MAX: Final = Limit(
    2000,
    Where.CLIENT,
    "offsets between the oldest message that waits and the next pull",
    "the queue is not pulled from",
)
CONSUMER_CACHE_BYTES_MAX: Final = Limit(
    256 * MIB, Where.CLIENT, "bytes that messages of all queues take while they wait for the listener",
    "no queue is pulled from, and answers on their way are dropped and asked for again",
)  # fmt: skip
CONSUMER_QUEUES_MAX: Final = Limit(
    16_384, Where.CLIENT, "queues that one push consumer reads", "it takes no more, and a warning says so"
)

# ---- files -----------------------------------------------------------------------------------------------------
