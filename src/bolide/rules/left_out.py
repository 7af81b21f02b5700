"""Properties that give way: a failed message must come again, or be buried, also where a retry has no room to write.

    BOLIDE_LEFT_OUT    headers 31200; note 420

Pure.  A property is left out whole, for half a value would be another one; the message says then which, with the bytes
of their values, in a text that is short and bounded: it ends with how many it does not name, as in `(12 more)`.
Whoever sends the message on hands that text on as if it were the application's, because the copy lacks the same.

The application's own give way first and those that mean something to a broker or a client last, the longest first.
"""

import re

from bolide.model.message import Property
from bolide.model.properties import RULES

LEFT_OUT_BYTES_MAX = 256

NAME_LENGTH_MAX = 64

_BETWEEN = "; "
_MORE_MAX = 99_999
_MORE_BYTES = len(f"; ({_MORE_MAX} more)")
_MORE = re.compile(r"\((\d{1,5}) more\)")
_PAIR_END = b"\x02"
_NAME_END = b"\x01"
_MARK = Property.LEFT_OUT.encode()
_MEANS_SOMETHING = frozenset(rule.name.encode() for rule in RULES if not rule.is_family) | {
    Property.SHARDING_KEY.encode()
}


def fitting(properties: bytes, bytes_max: int) -> tuple[bytes, str]:
    """Stored properties as they are, or without as many as do not fit; and what is said of those, if there are some.

    What says nothing, a pair without name or value or one that a later one replaces, goes without a word.  There is
    always room in the end, if it is for more than the names that mean something, each with a short value.
    """
    if len(properties) <= bytes_max:
        return properties, ""
    kept: dict[bytes, bytes] = {}  # by name: the last one counts
    for pair in properties.split(_PAIR_END):
        name, _, value = pair.partition(_NAME_END)
        if name and value:
            kept[name] = value
    size = sum(len(name) + len(value) + 2 for name, value in kept.items())
    if size <= bytes_max:
        return _joined(kept), ""
    before = kept.pop(_MARK, b"").decode("utf-8", "replace")
    size = sum(len(name) + len(value) + 2 for name, value in kept.items())
    room = bytes_max - len(_MARK) - LEFT_OUT_BYTES_MAX - 2
    told, more = _said(before)
    for name in sorted(kept, key=lambda name: (name in _MEANS_SOMETHING, -len(name) - len(kept[name]))):
        if size <= room:
            break
        value = kept.pop(name)
        size -= len(name) + len(value) + 2
        told.append(f"{name.decode('utf-8', 'replace')[:NAME_LENGTH_MAX]} {len(value)}")
    left_out = _short(told, more)
    kept[_MARK] = left_out.encode()
    return _joined(kept), left_out


def _joined(pairs: dict[bytes, bytes]) -> bytes:
    return b"".join(b"%b\x01%b\x02" % pair for pair in pairs.items())


def _said(text: str) -> tuple[list[str], int]:
    """What an earlier such text names, and how many it does not."""
    told = text.split(_BETWEEN) if text else []
    if told and (more := _MORE.fullmatch(told[-1])):
        return told[:-1], int(more[1])
    return told, 0


def _short(told: list[str], more: int) -> str:
    room = LEFT_OUT_BYTES_MAX - _MORE_BYTES
    for count, one in enumerate(told):
        room -= len(one.encode()) + len(_BETWEEN)
        if room < 0:
            told, more = told[:count], more + len(told) - count
            break
    return _BETWEEN.join([*told, f"({min(more, _MORE_MAX)} more)"] if more else told)
