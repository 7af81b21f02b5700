"""Properties as text and as pairs: the readable twin of `_pairs.pyx`.

`name 0x01 value 0x02` for every pair; the last separator may be missing.  Both modules read whatever is stored, and
write whatever they are given: who takes pairs from an application checks them first (`message.format_properties`).
"""

import re
from collections.abc import Mapping

NAME_END = "\x01"
PAIR_END = "\x02"


def parse_properties(text: str) -> dict[str, str]:
    """The pairs of a property string; skips what Java skips: pairs without a name or without a value."""
    properties: dict[str, str] = {}
    for pair in text.split(PAIR_END):
        name, separator, value = pair.partition(NAME_END)
        if separator and name and value:
            properties[name] = value
    return properties


def join_properties(properties: Mapping[str, str]) -> str:
    """Pairs as text; those without a name or a value are left out, as Java leaves them out."""
    parts: list[str] = []
    for name, value in properties.items():
        if name and value:
            parts += (name, NAME_END, value, PAIR_END)
    return "".join(parts)


def with_pairs(properties: bytes, pairs: dict[str, str | None]) -> bytes:
    """Stored properties with these pairs, written last; None takes one away."""
    names = b"|".join(re.escape(name.encode()) for name in pairs)
    if names:
        properties = re.sub(rb"(?:^|(?<=\x02))(?:" + names + rb")\x01[^\x02]*(?:\x02|$)", b"", properties)
    if properties and not properties.endswith(b"\x02"):
        properties += b"\x02"
    return (
        properties
        + join_properties({name: text for name, text in pairs.items() if text is not None}).encode()
    )
