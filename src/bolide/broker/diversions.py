"""Diversions: messages that are not for their readers yet wait elsewhere in the log.

A half message waits for its transaction, a delayed one for its time.  Each is stored in a topic of the broker's own,
with its own topic and queue in properties, and the part that keeps such messages stores it again when it is due.
Whoever stores a message for a client, or sends one back, asks here first where it goes.  Whoever delivers one that has
waited does not ask again.
"""

from collections.abc import Mapping
from typing import Protocol

from bolide.broker.property_room import check_room
from bolide.model.message import Property
from bolide.model.pairs import join_properties
from bolide.store.new_message import NewMessage


class Divert(Protocol):
    def __call__(
        self, message: NewMessage, properties: Mapping[str, str], *, is_taken: bool
    ) -> NewMessage | None:
        """The message as it waits, or None when it is none of this kind; told its properties.

        `RequestError` refuses it.  Of one that is taken its sender was told so before: it is refused only where it
        cannot be kept now, and not by what a sender may ask for.

        One that is asked about an example (`broker/detours.py`) is told only the pair that asks, a key and a group: of
        two messages that are the same in these, it may tell apart only those that have no room.
        """


class Diversions:
    """The rules of the parts, in the order of the parts: the first that wants a message has it."""

    def __init__(self) -> None:
        self._rules: list[tuple[Divert, bool]] = []

    def add(self, divert: Divert, *, holds: bool = False) -> None:
        """One that holds says the same of the same words until a setting or a topic changes."""
        self._rules.append((divert, holds))

    def of(self, message: NewMessage, properties: Mapping[str, str], *, is_taken: bool = False) -> NewMessage:
        """The message as it is to be stored now."""
        return self.decided(message, properties, is_taken=is_taken)[0]

    def decided(
        self, message: NewMessage, properties: Mapping[str, str], *, is_taken: bool = False
    ) -> tuple[NewMessage, bool]:
        """The same, and whether that holds."""
        for divert, holds in self._rules:
            if (waiting := divert(message, properties, is_taken=is_taken)) is not None:
                return waiting, holds
        return message, False


def set_aside(message: NewMessage, topic: str, queue_id: int, **pairs: str | None) -> NewMessage:
    """The message in another queue, with its own in properties, and with these pairs."""
    pairs[Property.REAL_TOPIC] = message.topic
    pairs[Property.REAL_QUEUE_ID] = str(message.queue_id)
    aside = message.moved(topic, queue_id, pairs)
    check_room(aside.properties, of="the message's topic and queue among them")
    return aside


def aside_bytes(topic: str, queue_id: int) -> int:
    """How many bytes `set_aside` writes into the properties of a message that has neither of the two yet."""
    pairs = {Property.REAL_TOPIC: topic, Property.REAL_QUEUE_ID: str(queue_id)}
    return len(join_properties(pairs).encode())
