"""From the records of a pull answer to messages.

Takes what the broker stored, byte for byte (`record/layout.py` has the fields): both versions, IPv4 and IPv6 hosts,
packed bodies.  Never guesses: bytes that are not whole records raise `MalformedRecord` with the place, and a body that
does not unpack comes as it is stored, with the reason.  The body's checksum is the store's business and is not
computed again here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bolide.model.errors import MalformedRecord
from bolide.model.limits import BODY_UNPACKED_BYTES_MAX, PULL_COST_BYTES_MAX
from bolide.model.message import SysFlag
from bolide.model.numbers import INT32_MAX
from bolide.record.compress import unpacked_at_most
from bolide.record.layout import open_record
from bolide.record.stored import StoredMessage, message_at, messages_in

_COMPRESSED = int(SysFlag.COMPRESSED)


def decode_messages(data: bytes | memoryview, broker_name: str) -> list[StoredMessage]:
    """All messages; together they unpack to no more than one alone may, and the bodies behind that stay packed.

    What was unpacked in vain counts.
    """
    messages: list[StoredMessage] = []
    left = int(BODY_UNPACKED_BYTES_MAX)
    data, at = bytes(data), 0
    while at < len(data):
        message, at = message_at(data, at, broker_name, left)
        if message.body_error is not None:
            left -= unpacked_at_most(message.body, message.sys_flag, left)
        elif message.sys_flag & _COMPRESSED:
            left -= len(message.body)
        messages.append(message)
    return messages


def each_message(data: bytes | memoryview, broker_name: str) -> Iterator[StoredMessage]:
    """The same one after the other, so that one at a time is in memory, and each may unpack to as much as it may."""
    data, at = bytes(data), 0
    while at < len(data):
        message, at = message_at(data, at, broker_name)
        yield message


@dataclass(frozen=True, slots=True)
class Decoded:
    """The first messages of an answer, and what kept the others from being among them."""

    messages: list[StoredMessage]
    next_offset: int | None = None
    """Of the first message that is left out; None when there is none, or it cannot be told."""
    broken: MalformedRecord | None = None
    """Why it cannot be read."""
    end_at: int = 0
    """Where its bytes begin; the end of the data when there is none."""
    cost_bytes: int = 0
    """About what the messages take in memory."""


def decode_some(
    data: bytes | memoryview,
    broker_name: str,
    cost_bytes_max: int = PULL_COST_BYTES_MAX,
    *,
    at: int = 0,
    count_max: int = INT32_MAX,
) -> Decoded:
    """The messages from the byte `at` on: as many as may be in memory at once, but one at least, and none behind bytes
    that are no record.
    """
    data = bytes(data)
    messages, end_at, cost_bytes = messages_in(data, broker_name, cost_bytes_max, at, count_max)
    if end_at == len(data):
        return Decoded(messages, end_at=end_at, cost_bytes=cost_bytes)
    try:
        next_offset = open_record(data, end_at, len(data)).queue_offset
    except MalformedRecord as error:
        behind = messages[-1].queue_offset + 1 if messages else None
        return Decoded(messages, behind, error, end_at, cost_bytes)
    return Decoded(messages, next_offset, end_at=end_at, cost_bytes=cost_bytes)
