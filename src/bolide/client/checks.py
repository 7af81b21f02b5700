"""What applications hand to the clients, checked where it comes in.

Each error names the argument, says what is expected there and shows what came.  Types are checked too: whoever runs no
type checker would learn of a mistake deep inside, or never.
"""

import inspect
import math
import operator
import os
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from bolide.model.addresses import parse_address, parse_addresses
from bolide.model.errors import (
    BolideError,
    ConfigError,
    InvalidRequest,
    MessageIllegal,
    SubscriptionMalformed,
)
from bolide.model.moments import looks_like_seconds
from bolide.model.names import check_group, check_topic
from bolide.model.numbers import INT32_MAX, INT64_MAX
from bolide.model.offsets import GroupOffset, MessageQueue
from bolide.model.printable import is_text, printable_part
from bolide.model.topic import Subscription
from bolide.rules.allocate import Shares, Strategy
from bolide.rules.allocate import strategy as chosen_strategy
from bolide.rules.filters import SQL, filter_of

DAY_MS = 24 * 60 * 60 * 1000
WAIT_MS_MAX = 10 * 60 * 1000
SPAN_S_MAX = 10 * 365 * 24 * 60 * 60

DELIVER = "deliver"
SKIP = "skip"

_SHOWN_LENGTH = 64
_SQL_EXAMPLE = "price > 3 AND colour = 'red'"
_BLANK = re.compile(r"\s")
_NEVER_MATCHED = re.compile(r"\s|\|\|")
_NO_TAG = re.compile(r"[\s|,<>=()'\"*\0\ud800-\udfff]")


def described(value: object) -> str:
    """A value for the end of a sentence that begins with what was expected."""
    return f"{type(value).__name__} {printable_part(repr(value), _SHOWN_LENGTH)}"


def number(what: str, value: object, least: int, most: int, error: type[BolideError] = ConfigError) -> int:
    """A whole number of any kind (numpy has its own), within its bounds."""
    if type(value) is int and least <= value <= most:  # as nearly always
        return value
    try:
        if isinstance(value, bool):
            raise TypeError
        found = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        found = None
    if found is None or not least <= found <= most:
        raise error(f"{what} is a whole number from {least} to {most}, not {described(value)}")
    return found


def timeout(value: object) -> int:
    return number("timeout_ms", value, 1, DAY_MS)


def text(what: str, value: object, error: type[BolideError] = ConfigError, example: str = "") -> str:
    if not isinstance(value, str):
        like = f", as in {example!r}" if example else ""
        raise error(f"{what} is a text{like}, not {described(value)}")
    return value


def nameserver(value: object) -> str:
    found = text("nameserver", value, example="host:9876;host:9876")
    for address in parse_addresses(found):
        try:
            parse_address(address)[0].encode("idna")
        except UnicodeError:
            raise ConfigError(f"nameserver has a host that nobody can have: {described(address)}") from None
    return found


def group(value: object) -> str:
    return check_group(text("group", value, example="billing"))


def topic(value: object) -> str:
    return check_topic(text("topic", value, InvalidRequest, example="orders"))


def queue(value: object) -> MessageQueue:
    if not isinstance(value, MessageQueue):
        raise InvalidRequest(
            f"queue is a MessageQueue, such as those that queues(topic) gives, not {described(value)}"
        )
    topic(value.topic)
    text("broker_name of a queue", value.broker_name, InvalidRequest, example="broker-a")
    number("queue_id of a queue", value.queue_id, 0, INT32_MAX, InvalidRequest)
    return value


def queues(value: object) -> list[MessageQueue]:
    """Several of them, each once."""
    if isinstance(value, MessageQueue) or not isinstance(value, Iterable):
        raise InvalidRequest(f"queues is a list of MessageQueue, not {described(value)}")
    return sorted({queue(one) for one in value})


def column_names(value: object) -> tuple[str, ...]:
    """Those of a table; which ones there are is not known here."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidRequest(f"columns is a list of names, as in ['body'], not {described(value)}")
    names = tuple(text("columns", name, InvalidRequest, example="body") for name in value)
    if not names:
        raise InvalidRequest("columns names none; leave it out for all of them")
    return names


def flag(what: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{what} is True or False, not {described(value)}")
    return value


def offset(value: object) -> GroupOffset:
    return GroupOffset(number("offset", value, 0, INT64_MAX, InvalidRequest))


def moment_ms(what: str, value: object, error: type[BolideError] = InvalidRequest) -> int:
    """Milliseconds since the epoch; a datetime without a zone is local time."""
    if isinstance(value, datetime):
        try:
            return max(0, round(value.timestamp() * 1000))
        except (OverflowError, ValueError, OSError):  # the first and last days of the calendar, in some zones
            raise error(f"{what} is a moment that no clock can tell: {described(value)}") from None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= INT64_MAX:
        raise error(f"{what} is a datetime, or milliseconds since 1970, not {described(value)}")
    if looks_like_seconds(value):
        raise error(f"{what} is in milliseconds, and {value} looks like seconds: {value}000?")
    return value


def span_ms(what: str, value: object, error: type[BolideError] = InvalidRequest) -> int:
    """Milliseconds, never fewer than were asked for."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= SPAN_S_MAX:
        raise error(f"{what} is a timedelta, or seconds from 0 to {SPAN_S_MAX}, not {described(value)}")
    return math.ceil(seconds * 1000)


def path(what: str, value: object, kind: str, instead: str = "") -> str:
    """Where a file or a folder is, or will be."""
    found = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(found, str) or not found or not _can_be_path(found):
        raise ConfigError(f"{what} is the {kind}, not {described(value)}{instead}")
    return found


def _can_be_path(value: str) -> bool:
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def bad_bodies(value: object) -> bool:
    """Whether they are skipped."""
    if value not in (DELIVER, SKIP):
        raise ConfigError(f'bad_bodies is "{DELIVER}" or "{SKIP}", not {described(value)}')
    return value == SKIP


def function(what: str, value: Any, takes: str, error: type[BolideError] = ConfigError) -> Callable[..., Any]:
    """Something that can be called, and does its work when it is."""
    if not callable(value):
        raise error(f"{what} is a function that takes {takes}, not {described(value)}")
    if inspect.isgeneratorfunction(value) or inspect.isasyncgenfunction(value):
        raise error(f"{what} is a generator: it contains `yield`, so a call of it would do nothing")
    return value  # type: ignore[no-any-return]


def can_take(
    what: str, value: Callable[..., Any], count: int, takes: str, error: type[BolideError] = ConfigError
) -> None:
    """Refuse a function that cannot be called with so many values.  One that does not tell, as some compiled ones, is
    believed.
    """
    try:
        own = inspect.signature(value)
    except (TypeError, ValueError):
        return
    try:
        own.bind(*[None] * count)
    except TypeError:
        shown = printable_part(str(own), _SHOWN_LENGTH)
        raise error(f"{what} is a function that takes {takes}, and this one takes {shown}") from None


def strategy(value: str | Strategy) -> Shares:
    """How a group shares queues: a name, or a function."""
    found = chosen_strategy(value)
    if callable(value):
        can_take("strategy", value, 3, "the queues, the members and the own id")
    return found


def tag(value: object) -> str:
    """The tag of a message to send: one that a subscription can ask for."""
    found = text("tags", value, MessageIllegal, example="paid")
    if found == "*" or _NEVER_MATCHED.search(found):
        raise MessageIllegal(
            f"tags is one word, as in 'paid', not {described(found)}: no consumer could ask for a tag that is *, or has"
            " a blank or || in it"
        )
    return found


def key(value: object) -> str:
    """One of several keys of a message to send.  They are stored with blanks between them."""
    found = text("each of keys", value, MessageIllegal, example="42")
    if _BLANK.search(found):
        raise MessageIllegal(
            f"each of keys is one word, as in '42', not {described(found)}: it has a blank in it"
        )
    return found


def sharding_key(value: object) -> str:
    found = text("sharding_key", value, MessageIllegal, example="order-42")
    if not found:
        raise MessageIllegal("sharding_key is a text, as in 'order-42', or None, and not an empty one")
    return found


def subscription(topic_name: str, tags: object, sql: object = None, version: int = 0) -> Subscription:
    """What an expression of tags wants, or one of SQL.  Another one would match nothing, and nobody would know."""
    if sql is not None:
        return _sql_subscription(topic_name, tags, sql, version)
    words = text("tags", tags, SubscriptionMalformed, example="paid || refunded")
    found = Subscription.parse(topic_name, words, version)
    for tag in sorted(found.tags):
        if _NO_TAG.search(tag):
            raise SubscriptionMalformed(
                f"{tag[:_SHOWN_LENGTH]!r} is not a tag: tags is * or one tag, and several tags are joined by ||,"
                " as in 'paid || refunded'; if it is an SQL expression, give it as sql"
            )
    return found


def _sql_subscription(topic_name: str, tags: object, sql: object, version: int) -> Subscription:
    """Read here, so that a mistake is said where it is made, with its place."""
    if tags != "*":
        raise SubscriptionMalformed(
            "a subscription has tags or sql, not both: TAGS is a property in SQL, too"
        )
    words = text("sql", sql, SubscriptionMalformed, example=_SQL_EXAMPLE)
    if not words.strip():
        raise SubscriptionMalformed(
            f"sql is an expression over properties, as in {_SQL_EXAMPLE!r}, not an empty one"
        )
    if not is_text(words):
        raise SubscriptionMalformed(f"sql has surrogates in it, which are no text: {described(words)}")
    found = Subscription.parse(topic_name, words, version, SQL)
    filter_of(found)
    return found
