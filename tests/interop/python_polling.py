"""What a consumer of ours that polls must do on any server: share a group with one of Java's."""

from bolide import Message, Producer
from tests.interop.python_clients import polling
from tests.interop.stage import Stage
from tests.peers.clients import received
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness


def shares_with_java(server: Together, witness: Witness, producer: Producer, topic: str, group: str) -> None:
    """The Java member ends when it has half of the messages, and the other one goes on."""
    producer.send(Message(topic, b"warm-0"))
    stage = Stage(witness, server.nameserver)
    name = stage.name("litepull")
    seen: list[str] = []
    try:
        with polling(server, topic, group) as consumer:
            wait_until(lambda: len(consumer.queues) == 4, PATIENCE_SECONDS, "all queues")
            options = {"nameserver": server.nameserver, "topic": topic, "group": group, "count": 40}
            answer = witness.begin("litepull", name=name, **options)
            wait_until(lambda: len(consumer.queues) == 2, PATIENCE_SECONDS, lambda: f"two each, {answer}")
            sent = stage.produce(topic, 100).finish().bodies

            def all_have_come() -> bool:
                seen.extend(message.body.decode().partition("|")[0] for message in consumer.poll(100))
                return {*sent} <= {*seen, *(message.body for message in received(witness, name))}

            wait_until(all_have_come, PATIENCE_SECONDS, lambda: f"{len(seen)} of {len(sent)} came here")
            assert len({*seen} & {*sent}) >= 40
            assert answer.result(PATIENCE_SECONDS)["count"] >= 40
    finally:
        stage.close()
