"""What the members of a JSON object, or the columns of a row, say about a message.

CSV has texts alone, JSON and Parquet have kinds: numbers may come as text, `properties` as an object, as a text that is
one in JSON, or as pairs.  An empty text says nothing.
"""

import base64
import binascii
from collections.abc import Collection, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson

from bolide.model.errors import MessageIllegal
from bolide.model.message import Property
from bolide.model.moments import MILLISECONDS_FROM
from bolide.model.properties import is_written_by_others

BODIES = ("body", "body_base64", "body_error", "bodyError")

OF_MESSAGES = frozenset(
    (*BODIES, "tag", "tags", "key", "keys", "properties", "delay_level", "deliver_at", "sharding_key")
)
"""What a message can be told."""

OF_STORED = frozenset(
    (
        *(
            "topic",
            "broker",
            "queue",
            "offset",
            "id",
            "offset_id",
            "stored",
            "stored_ms",
            "born_ms",
            "retries",
        ),
        *("brokerName", "queueId", "queueOffset", "msgId", "offsetMsgId", "bornTimestamp", "storeTimestamp"),
        *("bornHost", "storeHost", "reconsumeTimes", "flag", "sysFlag", "logOffset"),
    )
)
"""What `bolide tail --json`, `bolide store export` and Spark tell of a message that is stored: a copy gets its own."""


def has_body(names: Collection[str]) -> bool:
    return any(name in names for name in BODIES)


def stranger(names: Collection[str]) -> str | None:
    """One that a message has no place for, None when there is none."""
    return next((name for name in names if name not in OF_MESSAGES and name not in OF_STORED), None)


def body_of(members: Mapping[str, Any]) -> bytes:
    error = members.get("body_error", members.get("bodyError"))
    if error:  # it would be sent without the mark that says how it is packed
        raise MessageIllegal(f"the body of this message did not unpack: {str(error)[:255]}")
    packed = members.get("body_base64")
    if packed is None:
        body = members.get("body")
        if body is None:
            raise MessageIllegal("no 'body' in this JSON object")
        return as_body(body)
    try:
        return base64.b64decode(packed, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise MessageIllegal(f"body_base64 is not base64: {error}") from error


def as_body(value: object) -> bytes:
    """Texts and bytes as they are, everything else as JSON."""
    if value is None or value in ("", b""):
        raise MessageIllegal("a message cannot have an empty body")
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    return value if isinstance(value, bytes) else as_json(value)


def as_json(value: object) -> bytes:
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except (orjson.JSONEncodeError, UnicodeError) as error:
        raise MessageIllegal(f"it cannot be written as JSON: {error}") from error


def _plain(value: object) -> str:
    """Kinds that Parquet has and JSON has not."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"a {type(value).__name__}")


def as_word(value: object) -> str | None:
    """What a column says as a key or a tag: texts, and numbers as they are written."""
    if value is None or value == "":
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return value if isinstance(value, str) else as_json(value).decode()


def text_of(members: Mapping[str, Any], name: str) -> str | None:
    value = members.get(name)
    if value is not None and not isinstance(value, str):
        raise MessageIllegal(f"{name!r} is not text")
    return value or None


def keys_of(members: Mapping[str, Any]) -> list[str]:
    value = members.get("keys", members.get("key"))
    if not value:
        return []
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(key, str) for key in listed):
        raise MessageIllegal("'keys' is neither text nor a list of texts")
    return listed


def properties_of(members: Mapping[str, Any]) -> dict[str, str]:
    value = members.get("properties") or {}
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise MessageIllegal(f"'properties' is no JSON object: {error}") from error
    if isinstance(value, list) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        value = dict(value)  # a map, as Arrow gives it
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise MessageIllegal("'properties' is not an object of texts")
    gone = {Property.DELAY} if Property.REAL_TOPIC in value else set()  # it has waited already
    return {name: text for name, text in value.items() if name not in gone and not is_written_by_others(name)}


def delay_level_of(members: Mapping[str, Any]) -> int:
    value = members.get("delay_level")
    if value is None or value == "":
        return 0
    try:
        if isinstance(value, bool | float):
            raise ValueError
        return int(value)
    except (TypeError, ValueError):
        raise MessageIllegal(f"'delay_level' is the number of a level, not {str(value)[:64]!r}") from None


def deliver_at_of(members: Mapping[str, Any]) -> datetime | int | None:
    value = members.get("deliver_at")
    if value is None or value == "":
        return None
    if isinstance(value, datetime):
        return value
    try:
        if isinstance(value, bool | float):
            raise ValueError
        if isinstance(value, str) and not value.isdigit():
            return datetime.fromisoformat(value)
        moment_ms = int(value)
        if moment_ms < MILLISECONDS_FROM:
            raise ValueError
    except (TypeError, ValueError):
        raise MessageIllegal(
            f"'deliver_at' is milliseconds since 1970 or an ISO time, not {str(value)[:64]!r}"
        ) from None
    return moment_ms
