"""Properties that mean something: for each name who writes it, what is stored of it, and which way its message takes.

Everything that treats a property in a way of its own takes its names from this table: the client, the general path of
a send, and the fast path with its compiled scan.  A property that is not in it is the application's, and is stored
as it came.
"""

from dataclasses import dataclass
from enum import Enum

from bolide.model.message import Property


class Writer(Enum):
    """Whose word counts."""

    APPLICATION = "application"
    CLIENT = "client"  # the library, from what the application gave it
    BROKER = "broker"


class Stored(Enum):
    """What becomes of a pair that a client sends."""

    AS_IT_CAME = "as it came"
    REPLACED = "replaced"  # the broker writes its own behind the client's pairs
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Rule:
    """How a property is treated."""

    name: str
    writer: Writer
    stored: Stored = Stored.AS_IT_CAME
    is_plain: bool = True
    """Whether a message that has it may take the fast path."""
    schedules: bool = False
    """Whether it asks for a later delivery."""
    in_batch: bool = True
    """Whether a message that has it may be part of a batch."""
    is_family: bool = False
    """Whether it stands for all longer names that begin like it."""


RULES = (
    Rule(Property.KEYS, Writer.CLIENT),
    Rule(Property.TAGS, Writer.CLIENT),
    # A message without one gets it from the broker, on the general path.
    Rule(Property.UNIQUE_KEY, Writer.CLIENT),
    # Only `true` is plain.  `false` is written behind the client's pairs, as the original does.
    Rule(Property.WAIT, Writer.CLIENT, Stored.DROPPED),
    Rule(Property.PRODUCER_GROUP, Writer.CLIENT),
    Rule(Property.REPLY_TO_CLIENT, Writer.CLIENT),
    Rule(Property.PUSH_REPLY_TIME, Writer.BROKER),
    Rule(Property.TRANSACTION_PREPARED, Writer.CLIENT, is_plain=False, in_batch=False),
    Rule(Property.CHECK_IMMUNITY, Writer.APPLICATION),
    # Of a half message the broker's own count, whatever its sender says.
    Rule(Property.TRANSACTION_ID, Writer.BROKER),
    Rule(Property.TRANSACTION_CHECKS, Writer.BROKER),
    Rule(Property.PREPARED_QUEUE_OFFSET, Writer.BROKER),
    Rule(Property.DELAY, Writer.APPLICATION, is_plain=False, schedules=True, in_batch=False),
    Rule(Property.TIMER_DELAY_SEC, Writer.APPLICATION, is_plain=False, schedules=True, in_batch=False),
    Rule(Property.TIMER_DELAY_MS, Writer.APPLICATION, is_plain=False, schedules=True, in_batch=False),
    Rule(Property.TIMER_DELIVER_MS, Writer.APPLICATION, is_plain=False, schedules=True, in_batch=False),
    Rule("TIMER_", Writer.BROKER, is_plain=False, is_family=True),
    Rule("INNER_", Writer.BROKER, is_plain=False, is_family=True),
    Rule(Property.RETRY_TOPIC, Writer.BROKER),
    Rule(Property.ORIGIN_MESSAGE_ID, Writer.BROKER),
    # `rules/attempts.py`.  Clients hand it on when they send a failed message themselves.
    Rule(Property.ATTEMPTS, Writer.BROKER),
    Rule(Property.REAL_TOPIC, Writer.BROKER),
    Rule(Property.REAL_QUEUE_ID, Writer.BROKER),
    Rule(Property.MSG_REGION, Writer.BROKER, Stored.REPLACED, is_plain=False),
    Rule(Property.TRACE_ON, Writer.BROKER, Stored.REPLACED, is_plain=False),
    Rule(Property.CLUSTER, Writer.BROKER, Stored.REPLACED, is_plain=False),
    Rule(Property.POP_CHECKPOINT, Writer.BROKER, Stored.DROPPED, is_plain=False),
    Rule(Property.RECORD_CHECKSUM, Writer.BROKER, Stored.DROPPED, is_plain=False),
)

NOT_PLAIN = frozenset(rule.name.encode() for rule in RULES if not rule.is_plain and not rule.is_family)
NOT_PLAIN_FAMILIES = tuple(rule.name.encode() for rule in RULES if not rule.is_plain and rule.is_family)

NOT_STORED = tuple(rule.name for rule in RULES if rule.stored is not Stored.AS_IT_CAME)
"""Pairs that are taken out of what a client sends."""

SCHEDULING = tuple(rule.name for rule in RULES if rule.schedules)

NOT_IN_A_BATCH = tuple(rule.name for rule in RULES if not rule.in_batch)

WRITTEN_BY_THE_BROKER = tuple(
    rule.name for rule in RULES if rule.writer is Writer.BROKER and not rule.is_family
)

WRITTEN_BY_OTHERS = frozenset(
    rule.name for rule in RULES if rule.writer is not Writer.APPLICATION and not rule.is_family
)
"""What the client or the broker writes: a message that is copied to another topic gets new ones."""

FAMILIES_OF_OTHERS = tuple(
    rule.name for rule in RULES if rule.writer is not Writer.APPLICATION and rule.is_family
)
"""So begin the names of more of these."""

_APPLICATIONS_OWN = frozenset(rule.name for rule in RULES if rule.writer is Writer.APPLICATION)


def is_written_by_others(name: str) -> bool:
    """Whether the client or the broker writes it, of a family too."""
    return name in WRITTEN_BY_OTHERS or (
        name.startswith(FAMILIES_OF_OTHERS) and name not in _APPLICATIONS_OWN
    )


def leaves_fast_path(name: bytes) -> bool:
    """Whether a property changes how the broker must treat the message, or is one that it would have to replace."""
    return name in NOT_PLAIN or (name.startswith(NOT_PLAIN_FAMILIES) and name not in NOT_PLAIN_FAMILIES)
