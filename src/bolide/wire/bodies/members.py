"""Reading parsed JSON with suspicion: each function gives a value of the right kind or says which member is wrong.

What is missing or null takes the default, because fastjson leaves null members out.
"""

from collections.abc import Mapping
from typing import Any

from bolide.model import java_json
from bolide.model.errors import InvalidRequest
from bolide.model.limits import ANSWER_DIALECT_BYTES_MAX, DIALECT_BYTES_MAX
from bolide.model.numbers import is_int32, is_int64, parse_whole


def parse_answer(body: bytes, what: str) -> dict[str, Any]:
    """The JSON object of an answer, which the original writes in its dialect, however large the cluster is."""
    return parse_object(body, what, dialect_bytes_max=ANSWER_DIALECT_BYTES_MAX)


def parse_object(
    body: bytes, what: str, *, dialect_bytes_max: int | None = DIALECT_BYTES_MAX
) -> dict[str, Any]:
    """The JSON object of a body."""
    value = java_json.loads(body, dialect_length_max=dialect_bytes_max)
    if not isinstance(value, dict):
        raise InvalidRequest(f"{what} is not a JSON object")
    return value


def text(members: Mapping[str, Any], name: str, default: str = "") -> str:
    value = members.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} is not text")
    return value


def number(members: Mapping[str, Any], name: str, default: int = 0) -> int:
    """A number of 64 bits, also where it comes as text."""
    value = members.get(name)
    if value is None:
        return default
    return as_number(value, name)


def small_number(members: Mapping[str, Any], name: str, default: int = 0) -> int:
    """A number of 32 bits: what Java keeps as an int is refused by its readers when it is larger."""
    value = number(members, name, default)
    if not is_int32(value):
        raise InvalidRequest(f"{name} is not a 32-bit number")
    return value


def flag(members: Mapping[str, Any], name: str) -> bool:
    value = members.get(name)
    if value is not None and not isinstance(value, bool):
        raise InvalidRequest(f"{name} is neither true nor false")
    return bool(value)


def table(members: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = members.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidRequest(f"{name} is not a JSON object")
    return value


def rows(members: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """A list of objects."""
    value = members.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InvalidRequest(f"{name} is not a list of JSON objects")
    return value


def texts(members: Mapping[str, Any], name: str) -> list[str]:
    """A list of texts."""
    value = members.get(name)
    if value is None:
        return []
    return as_texts(value, name)


def as_texts(value: object, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidRequest(f"{name} is not a list of texts")
    return value


def as_number(value: object, name: str) -> int:
    if isinstance(value, str):
        value = parse_whole(value)
    if not is_int64(value):
        raise InvalidRequest(f"{name} is not a 64-bit number")
    return value
