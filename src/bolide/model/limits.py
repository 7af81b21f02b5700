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

# Java clients split what they send at one to four MiB; the smallest message that they make has 75 bytes.
BATCH_MESSAGES_MAX: Final = Limit(16_384, Where.BROKER, "messages of one batch", "the batch is refused whole")
BATCH_ODD_MESSAGES_MAX: Final = Limit(
    1024,
    Where.BROKER,
    "messages of one batch in which one needs a decision, having no unique key for example",
    "the batch is refused whole",
)

# A pull of usual length counts for one and a half KiB: a connection can wait at all queues of the widest topic.
HELD_BYTES_MAX: Final = Limit(
    128 * MIB,
    Where.BROKER,
    "bytes of pulls that wait for messages",
    "whoever waits with most is answered early, or the new pull is answered at once",
)
HELD_CONNECTION_BYTES_MAX: Final = Limit(
    24 * MIB,
    Where.BROKER,
    "bytes of pulls of one connection that wait for messages",
    "its next pull is answered at once",
)
HOLD_MS_MAX: Final = Limit(25_000, Where.BROKER, "time that a pull waits", "it is answered then")
PULL_BULK_MESSAGES_MAX: Final = Limit(
    32_768, Where.BROKER, "messages that a pull for a whole topic brings", "the next pull brings them"
)
PULL_BULK_BYTES_MAX: Final = Limit(
    4 * MIB, Where.BROKER, "bytes that a pull for a whole topic brings", "the next pull brings them"
)
PLANS_BYTES_MAX: Final = Limit(
    64 * MIB,
    Where.BROKER,
    "bytes of what is remembered of pulls that are repeated",
    "the one not used for longest is forgotten, and checked again when it comes back",
)
PLAN_SHAPE_BYTES_MAX: Final = Limit(
    2 * KIB, Where.BROKER, "bytes of a pull that is remembered", "it is checked each time"
)

ID_LENGTH_MAX: Final = Limit(
    255, Where.BROKER, "characters of a client id or a producer group", "the request is refused"
)
EXPRESSION_LENGTH_MAX: Final = Limit(
    32_768, Where.BROKER, "characters of a tag expression", "the request is refused"
)
CLIENT_BODY_BYTES_MAX: Final = Limit(
    2 * MIB, Where.BROKER, "bytes of a heartbeat, a client check or a lock request", "the request is refused"
)
HEARTBEAT_SUBSCRIPTIONS_MAX: Final = Limit(
    4096, Where.BROKER, "subscriptions of one heartbeat", "the request is refused"
)
HEARTBEAT_TAGS_MAX: Final = Limit(
    32_768, Where.BROKER, "tags and tag codes of one heartbeat", "the request is refused"
)
HEARTBEAT_NEW_GROUPS_MAX: Final = Limit(
    64, Where.BROKER, "consumer groups that one heartbeat brings into being", "the next heartbeat brings more"
)
CONNECTION_GROUPS_MAX: Final = Limit(
    1024, Where.BROKER, "groups of consumers and producers of one connection", "it is not in the others"
)
CONNECTION_CLIENT_BYTES_MAX: Final = Limit(
    4 * MIB, Where.BROKER, "bytes of groups and subscriptions of one connection", "it is not in the others"
)
CLIENTS_BYTES_MAX: Final = Limit(
    96 * MIB,
    Where.BROKER,
    "bytes of groups and subscriptions of all connections",
    "whoever has most loses one, or the newcomer gets none",
)
LOCKS_MAX: Final = Limit(131_072, Where.BROKER, "queues locked for ordered consumption", "no more are locked")
LOCK_QUEUES_MAX: Final = Limit(4096, Where.BROKER, "queues of one lock request", "the request is refused")

TOPICS_ASKED_MAX: Final = Limit(
    4096, Where.BROKER, "topics named in one request for a group's progress", "the request is refused"
)
# RocketMQ: maxMsgsNumBatch; and clients close a connection that brings a frame of more than 16 MiB.
QUERY_MESSAGES_MAX: Final = Limit(64, Where.BROKER, "messages found by a key", "the newest are given")
QUERY_BYTES_MAX: Final = Limit(
    8 * MIB, Where.BROKER, "bytes of messages found by a key", "the newest are given"
)
UNSAFE_ANSWERS_MAX: Final = Limit(
    65_536, Where.BROKER, "answers that wait for the disk", "messages are refused until there are fewer"
)

# ---- name server -----------------------------------------------------------------------------------------------

# ---- clients and Spark -----------------------------------------------------------------------------------------

# ---- files -----------------------------------------------------------------------------------------------------
