"""Messages as rocketmq-client-python has them: made by setters, and received with bytes for texts."""

from typing import Any

import bolide
from bolide.compat.rocketmq.consts import MessageProperty
from bolide.compat.rocketmq.exceptions import NotSupported, RocketMQException
from bolide.model.message import Property
from bolide.model.numbers import INT32_MAX

Text = str | bytes


def text_of(what: str, value: Text) -> str:
    """Both kinds were taken there; bytes are UTF-8."""
    found: object = value
    if isinstance(found, bytes):
        try:
            return found.decode()
        except UnicodeDecodeError as error:
            raise RocketMQException(f"{what} is a text in UTF-8, not {value!r:.64}: {error}") from None
    if not isinstance(found, str):
        raise RocketMQException(f"{what} is a text or bytes, not {type(value).__name__} {value!r:.64}")
    return found


class Message:
    """A message to send.

    Args:
        topic: where it goes.
    """

    def __init__(self, topic: Text) -> None:
        self._made = bolide.Message(text_of("topic", topic), b"")
        self._properties: dict[str, str] = {}

    def set_keys(self, keys: Text) -> None:
        """Words that it can be found by, with blanks between them."""
        self._made.keys = text_of("keys", keys).split()

    def set_tags(self, tags: Text) -> None:
        """One word that consumers can choose by."""
        self._made.tags = text_of("tags", tags)

    def set_body(self, body: Text) -> None:
        """What it says; a text becomes UTF-8.  Bytes are sent as they are, zeros too."""
        self._made.body = body if isinstance(body, bytes) else text_of("body", body).encode()

    def set_property(self, key: Text, value: Text) -> None:
        """A pair of texts of the application's own."""
        self._properties[text_of("the name of a property", key)] = text_of("the value of a property", value)

    def set_delay_time_level(self, delay_time_level: int) -> None:
        """Which of the broker's delay levels it waits for."""
        self._made.delay_level = delay_time_level

    def made(self, **properties: str) -> bolide.Message:
        """The same for bolide's own clients, with more properties."""
        self._made.properties = {**self._properties, **properties}
        return self._made


class ReceivedMessage:
    """A message that came: texts are bytes, but for its topic and its id."""

    def __init__(self, stored: bolide.StoredMessage) -> None:
        self._stored = stored

    @property
    def topic(self) -> str:
        """Where it was sent to."""
        return self._stored.topic

    @property
    def tags(self) -> bytes:
        """Empty when it has none."""
        return self.get_property(Property.TAGS)

    @property
    def keys(self) -> bytes:
        """Empty when it has none."""
        return self.get_property(Property.KEYS)

    @property
    def body(self) -> bytes:
        """What it says."""
        return self._stored.body

    @property
    def id(self) -> str:
        """The id that its producer gave it."""
        return self._stored.message_id

    @property
    def delay_time_level(self) -> int:
        """The delay level that it has waited for; 0 for none."""
        level = self._stored.properties.get(Property.DELAY, "0")
        return min(int(level), INT32_MAX) if level.isdecimal() else 0

    @property
    def queue_id(self) -> int:
        """The number of its queue."""
        return self._stored.queue_id

    @property
    def reconsume_times(self) -> int:
        """How often it has failed before."""
        return self._stored.reconsume_times

    @property
    def store_size(self) -> int:
        """Not known here."""
        raise NotSupported(
            "store_size is not known to this client: len(message.body) is the size of the body"
        )

    @property
    def born_timestamp(self) -> int:
        """When it was sent, in milliseconds since 1970."""
        return self._stored.born_timestamp_ms

    @property
    def store_timestamp(self) -> int:
        """When it was stored, in milliseconds since 1970."""
        return self._stored.store_timestamp_ms

    @property
    def queue_offset(self) -> int:
        """Its place in its queue."""
        return self._stored.queue_offset

    @property
    def commit_log_offset(self) -> int:
        """Its place in the broker's log."""
        return self._stored.log_offset

    @property
    def prepared_transaction_offset(self) -> int:
        """Not known here."""
        raise NotSupported(
            "prepared_transaction_offset is not known to this client, and brokers do not need it"
        )

    def get_property(self, prop: Text | MessageProperty) -> bytes:
        """A property by its name; empty when it has none of this name."""
        name = prop.value if isinstance(prop, MessageProperty) else text_of("the name of a property", prop)
        return self._stored.properties.get(name, "").encode()

    def __getitem__(self, key: Text | MessageProperty) -> bytes:
        return self.get_property(key)

    def __str__(self) -> str:
        return self.body.decode()

    def __bytes__(self) -> bytes:
        return self.body

    def __repr__(self) -> str:
        return f"<ReceivedMessage topic={self.topic!r} id={self.id!r} body={self.body!r}>"


def half_message(message: bolide.Message) -> ReceivedMessage:
    """A message whose transaction is open, for a function that expects a received one.  Its id is not known yet."""
    unknown: dict[str, Any] = dict.fromkeys(
        ("born_host", "store_host", "message_id", "offset_message_id"), ""
    )
    zeros: dict[str, Any] = dict.fromkeys(
        (
            *("queue_id", "queue_offset", "log_offset", "sys_flag", "flag"),
            *("born_timestamp_ms", "store_timestamp_ms", "reconsume_times"),
        ),
        0,
    )
    properties = {**message.properties, Property.KEYS: " ".join(message.keys)}
    if message.tags:
        properties[Property.TAGS] = message.tags
    return ReceivedMessage(
        bolide.StoredMessage(
            topic=message.topic, body=message.body, properties=properties, broker_name="", **zeros, **unknown
        )
    )
