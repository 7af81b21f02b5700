"""Recall handles: what a producer needs to call a timed message back before it is due.

URL-safe base64 of `v1 topic broker time key`: the broker that keeps the message, the time of its slot, its unique
key.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import NamedTuple

from bolide.model.errors import InvalidRequest
from bolide.model.limits import RECALL_HANDLE_LENGTH_MAX
from bolide.model.message import Property
from bolide.model.names import RETRY_PREFIX
from bolide.model.numbers import parse_whole

_VERSION = "v1"


class RecallHandle(NamedTuple):
    topic: str
    broker_name: str
    time_ms: int
    unique_key: str

    @property
    def after_ms(self) -> int:
        """The message is due after this, within one step of its broker's timer (timerPrecisionMs, a second)."""
        return self.time_ms - 1

    def encode(self) -> str:
        text = f"{_before_key(self.topic, self.broker_name, self.time_ms)}{self.unique_key}"
        return base64.urlsafe_b64encode(text.encode()).decode()


def decode_handle(text: str) -> RecallHandle:
    """`InvalidRequest` for what is none."""
    try:
        if len(text) > RECALL_HANDLE_LENGTH_MAX:
            raise ValueError
        padded = text + "=" * (-len(text) % 4)
        version, topic, broker_name, time, unique_key = (
            base64.b64decode(padded, altchars=b"-_", validate=True).decode().split(" ")
        )
    except (binascii.Error, ValueError):
        raise InvalidRequest(
            f"{text[:64]!r} is no recall handle: it comes with the answer to a send"
        ) from None
    if version != _VERSION:
        raise InvalidRequest(f"a recall handle of the version {version[:16]!r} is not known here")
    time_ms = parse_whole(time)
    if time_ms is None:
        raise InvalidRequest(f"the recall handle is not sound: {time[:32]!r} is no time")
    if not unique_key:
        raise InvalidRequest("the recall handle is not sound: it names no message")
    return RecallHandle(topic, broker_name, time_ms, unique_key)


def handle_of(waiting: Mapping[str, str], broker_name: str) -> str | None:
    """The handle of a message that waits with these properties; None when it is not one that can be recalled."""
    text, key = handle_before_key(waiting, broker_name), waiting.get(Property.UNIQUE_KEY)
    if text is None or key is None:
        return None
    return base64.urlsafe_b64encode(f"{text}{key}".encode()).decode()


def handle_before_key(waiting: Mapping[str, str], broker_name: str) -> str | None:
    """What a handle is made of, up to the unique key: the same for all that go to one topic and are due at one time."""
    out_ms, topic = waiting.get(Property.TIMER_OUT_MS), waiting.get(Property.REAL_TOPIC)
    if out_ms is None or topic is None or topic.startswith(RETRY_PREFIX):
        return None
    return _before_key(topic, broker_name, int(out_ms) + 1)


def _before_key(topic: str, broker_name: str, time_ms: int) -> str:
    return f"{_VERSION} {topic} {broker_name} {time_ms} "
