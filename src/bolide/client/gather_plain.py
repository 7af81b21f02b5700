"""Which messages can be part of a batch as they are, and their properties then: a part of `gather_twin.py`.

What is not plain is looked at elsewhere, where there are words for what is wrong with it.
"""

from typing import Any

from bolide.model.message import Message, Property, format_properties
from bolide.model.pairs import NAME_END, PAIR_END
from bolide.model.properties import RULES

MEANING = frozenset(rule.name for rule in RULES if not rule.is_family) | {Property.SHARDING_KEY}
MEANING_FAMILIES = tuple(rule.name for rule in RULES if rule.is_family)
"""Properties that are not simply the application's: a message that gives such a one goes the long way."""

FLAG_MIN, FLAG_MAX = -(1 << 31), (1 << 31) - 1
PROPERTIES_BYTES_MAX = 0x7FFF

ID_PAIR_BYTES_MAX = 80
"""The pair of the unique id: more than it has with an address of either kind."""


def plain_pairs(message: Message, topic: str, *, has_queue: bool) -> bytes | None:
    """The properties of a message to `topic` as a batch carries them, without its id; None when it is no plain one.

    `has_queue`: whether somebody has looked at its sharding key.
    """
    if message.topic != topic:
        return None
    if message.delay_level or message.deliver_at is not None or message.delay is not None:
        return None
    if message.sharding_key is not None and not has_queue:
        return None
    if type(message.flag) is not int or not FLAG_MIN <= message.flag <= FLAG_MAX:
        return None
    properties: dict[str, str] = {}
    takes_key = has_queue and message.sharding_key is None
    if not _add_own(properties, message.properties, takes_key=takes_key):
        return None
    for name, text in (
        (Property.TAGS, message.tags),
        (Property.KEYS, _joined(message.keys)),
        (Property.SHARDING_KEY, message.sharding_key),
    ):
        if text is None or text == "":
            continue
        if type(text) is not str or not _is_word(text, blanks=name is not Property.TAGS):
            return None
        properties[name] = text
    try:
        pairs = format_properties(properties).encode()
    except UnicodeEncodeError:
        return None
    return pairs if len(pairs) + ID_PAIR_BYTES_MAX <= PROPERTIES_BYTES_MAX else None


def _add_own(properties: dict[str, str], given: object, *, takes_key: bool) -> bool:
    """`takes_key`: whether a sharding key may be among them."""
    if type(given) is not dict:
        return False
    for name, value in given.items():
        if type(name) is not str or type(value) is not str or not name or name.isspace():
            return False
        if name in MEANING and not (takes_key and name == Property.SHARDING_KEY):
            return False
        if name.startswith(MEANING_FAMILIES) or any(end in name + value for end in (NAME_END, PAIR_END)):
            return False
        properties[name] = value
    return True


def _joined(keys: object) -> Any:
    """One text; what is no list of single words comes back as something that is no text."""
    if type(keys) is str:
        return keys
    if type(keys) not in (list, tuple):
        return keys
    if not all(type(key) is str and _is_word(key, blanks=False) for key in keys):  # type: ignore[attr-defined]
        return keys
    return " ".join(keys)  # type: ignore[arg-type]


def _is_word(text: str, *, blanks: bool) -> bool:
    """Printable ASCII without bars and, but for keys, without blanks; everything else is looked at elsewhere."""
    lowest = 0x20 if blanks else 0x21
    return text.isascii() and all(lowest <= ord(one) < 0x7F and one != "|" for one in text) and text != "*"
