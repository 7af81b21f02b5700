"""Messages that fail for good, on a real broker: they end as dead letters, and their queue goes on."""

from typing import Any

import pytest

from bolide import Message, Producer, PullConsumer, PushConsumer, RouteNotFound, StoredMessage
from bolide.testing import EmbeddedServer
from tests.peers.waiting import PATIENCE_SECONDS, wait_until


@pytest.mark.parametrize(
    ("options", "tries"), [({"attempts_max": 0}, 1), ({"orderly": True, "attempts_max": 1}, 2)]
)
def test_after_the_last_attempt_a_message_is_a_dead_letter(
    bolide_module_server: EmbeddedServer, options: dict[str, Any], tries: int
) -> None:
    """RY-03, OR-05."""
    nameserver, name = bolide_module_server.nameserver, f"doomed-{tries}"
    calls: list[bytes] = []

    def listener(messages: list[StoredMessage]) -> None:
        calls.extend(message.body for message in messages)
        if messages[0].body == b"bad":
            raise RuntimeError("never")

    with Producer(nameserver) as producer:
        producer.send(Message(name, b"first"))
        queue = producer.queues(name)[0]
        for body in (b"bad", b"good"):
            producer.send(Message(name, body), queue=queue)
    consumer = PushConsumer(nameserver, group=name, listener=listener, start_from="first", **options)
    consumer.subscribe(name)
    with consumer, PullConsumer(nameserver) as reader:

        def letters() -> list[bytes]:
            try:
                (dead,) = reader.queues(f"%DLQ%{name}")
            except RouteNotFound:
                return []
            return [message.body for message in reader.pull(dead, 0).messages]

        wait_until(lambda: letters() == [b"bad"], PATIENCE_SECONDS, "the dead letter")
        wait_until(lambda: b"good" in calls, PATIENCE_SECONDS, "what lies behind it")
    assert calls.count(b"bad") == tries
