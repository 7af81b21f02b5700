"""Messages that were consumed and are sent on with all their properties, whatever way they had come."""

import threading
from collections.abc import Iterator

import pytest

from bolide import Message, Producer, PushConsumer, StoredMessage, Transaction, TransactionProducer
from bolide.testing import EmbeddedServer
from tests.peers.waiting import wait_until

SOURCE, TARGET = "forwarded-from", "forwarded-to"
BODIES = {b"plain", b"by a level", b"by a time", b"in a transaction", b"failed once"}


@pytest.fixture
def producer(bolide_module_server: EmbeddedServer) -> Iterator[TransactionProducer]:
    with TransactionProducer(
        bolide_module_server.nameserver, group="forwarders", check=lambda message: Transaction.UNKNOWN
    ) as producer:
        yield producer


def send_every_kind(producer: TransactionProducer) -> None:
    producer.send(Message(SOURCE, b"plain", tags="a", keys=["k", "l"], sharding_key="s"))
    producer.send(Message(SOURCE, b"by a level", tags="a", delay_level=1))
    producer.send(Message(SOURCE, b"by a time", tags="a", delay=1))
    producer.send(Message(SOURCE, b"failed once", tags="a"))
    producer.send_in_transaction(
        Message(SOURCE, b"in a transaction", tags="a"), lambda message: Transaction.COMMIT
    )


def forward(producer: Producer, message: StoredMessage) -> None:
    on = Message(TARGET, message.body, message.tags, message.keys, message.properties)
    if message.body == b"in a transaction":
        producer.send_batch([on])  # it waits for nothing, and may be one of many
    else:
        producer.send(on)


def test_messages_that_came_in_any_way_can_be_sent_on_with_their_properties(
    bolide_module_server: EmbeddedServer, producer: TransactionProducer
) -> None:
    """A message of a transaction that was committed still carries its mark; with it, it would wait for another end."""
    arrived: dict[bytes, StoredMessage] = {}
    said = threading.Lock()

    def handle(messages: list[StoredMessage]) -> None:
        for message in messages:
            if message.body == b"failed once" and message.topic == SOURCE and not message.reconsume_times:
                raise RuntimeError("the first attempt")
            if message.topic == SOURCE:
                forward(producer, message)
            else:
                with said:
                    arrived[message.body] = message

    consumer = PushConsumer(
        bolide_module_server.nameserver, group="forwarders", listener=handle, start_from="first"
    )
    consumer.subscribe(SOURCE)
    consumer.subscribe(TARGET)
    send_every_kind(producer)
    with consumer:
        wait_until(lambda: arrived.keys() == BODIES, 60, lambda: f"arrived: {sorted(arrived)}")
    assert {message.tags for message in arrived.values()} == {"a"}
    assert "TRAN_MSG" not in arrived[b"in a transaction"].properties
    assert arrived[b"plain"].properties["__SHARDINGKEY"] == "s"


def test_a_message_of_a_transaction_can_be_sent_on_in_another(
    bolide_module_server: EmbeddedServer, producer: TransactionProducer
) -> None:
    source, target = "forwarded-half-from", "forwarded-half-to"
    arrived: list[StoredMessage] = []

    def handle(messages: list[StoredMessage]) -> None:
        for message in messages:
            if message.topic == source:
                on = Message(target, message.body, message.tags, message.keys, message.properties)
                producer.send_in_transaction(on, lambda half: Transaction.COMMIT)
            else:
                arrived.append(message)

    consumer = PushConsumer(
        bolide_module_server.nameserver, group="half-forwarders", listener=handle, start_from="first"
    )
    consumer.subscribe(source)
    consumer.subscribe(target)
    producer.send_in_transaction(Message(source, b"x"), lambda message: Transaction.COMMIT)
    with consumer:
        wait_until(lambda: bool(arrived), 30, lambda: "it has not arrived")
    assert arrived[0].properties["TRAN_MSG"] == "true"
