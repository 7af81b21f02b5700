"""What a message of a run asks for that is to wait, for `append_twin.py`; compiled code has it in `record/_codec.pyx`.

One pair asks, and all others are as plain as those of a message that goes where it says.  Whatever else there is, the
general path has to see it: two that ask, names that the broker writes into a message that waits, no key.
"""

from typing import NamedTuple

from bolide.model.message import TRANSACTION_MASK, Property
from bolide.model.properties import NOT_IN_A_BATCH, WRITTEN_BY_THE_BROKER, leaves_fast_path

ASKED_BYTES_MAX = 64
"""Of the pair that asks; a longer one says something else as well."""

HAS_GROUP = 1

_ASKING = frozenset(name.encode() for name in NOT_IN_A_BATCH)
_OF_BROKER = frozenset(name.encode() for name in WRITTEN_BY_THE_BROKER)
_GROUP = Property.PRODUCER_GROUP.encode()
_UNIQUE_KEY = Property.UNIQUE_KEY.encode()
_WAIT = Property.WAIT.encode()


class Asking(NamedTuple):
    key: bytes
    """What decides where it waits: of which part of a transaction it is, whether it names a group, the pair."""
    unique_key: bytes
    properties: bytes
    """As they came, without those that are not stored."""


def asking_of(text: bytes, sys_flag: int) -> Asking | None:
    """What these properties ask for; None when that is nothing, or not all."""
    kept: list[bytes] = []
    asked = unique_key = b""
    flags, waits = sys_flag & TRANSACTION_MASK, 0
    for pair in text.removesuffix(b"\x02").split(b"\x02"):
        name, _, value = pair.partition(b"\x01")
        if name in _OF_BROKER or (name == _WAIT and not value):
            return None
        if leaves_fast_path(name):
            if asked or not value or name not in _ASKING:
                return None
            asked = pair
        if name == _WAIT:
            waits += 1
            if value != b"true" or waits > 1:
                return None
            continue
        if name == _UNIQUE_KEY and value:
            unique_key = value
        if name == _GROUP and value:
            flags |= HAS_GROUP
        kept.append(pair + b"\x02")
    if not 0 < len(asked) <= ASKED_BYTES_MAX or not unique_key or b"\0" in text:
        return None
    if not all(0x20 <= c <= 0x7E and c not in b'"\\' for c in unique_key):
        return None
    try:
        text.decode()
    except UnicodeDecodeError:
        return None
    return Asking(bytes((flags,)) + asked, unique_key, b"".join(kept))
