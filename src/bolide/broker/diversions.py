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
from bolide.store.new_message import NewMessage


class Divert(Protocol):
    def __call__(
        self, message: NewMessage, properties: Mapping[str, str], *, is_taken: bool
    ) -> NewMessage | None:
        """The message as it waits, or None when it is none of this kind; told its properties.

        `RequestError` refuses it.  Of one that is taken its sender was told so before: it is refused only where it
        cannot be kept now, and not by what a sender may ask for.
        """


class Diversions:
    """The rules of the parts, in the order of the parts: the first that wants a message has it."""

    def __init__(self) -> None:
        self._rules: list[Divert] = []

    def add(self, divert: Divert) -> None:
        self._rules.append(divert)

    def of(self, message: NewMessage, properties: Mapping[str, str], *, is_taken: bool = False) -> NewMessage:
        """The message as it is to be stored now."""
        for divert in self._rules:
            if (waiting := divert(message, properties, is_taken=is_taken)) is not None:
                return waiting
        return message


def set_aside(message: NewMessage, topic: str, queue_id: int, **pairs: str | None) -> NewMessage:
    """The message in another queue, with its own in properties, and with these pairs."""
    pairs[Property.REAL_TOPIC] = message.topic
    pairs[Property.REAL_QUEUE_ID] = str(message.queue_id)
    aside = message.moved(topic, queue_id, pairs)
    check_room(aside.properties, of="the message's topic and queue among them")
    return aside
