"""What was acknowledged and committed is there after a stop, and after a kill, of a real `bolide up`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide import Message, MessageQueue, Producer, PullConsumer
from bolide.admin.topics import delete_topic
from bolide.cli.ask import ask
from bolide.model.errors import BolideError
from tests.peers.bolide import Bolide
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until

TOPIC, GROUP = "kept", "readers"
COUNT = 200


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Together]:
    server = Together(Bolide(), tmp_path).start()
    yield server
    server.stop()


def test_messages_and_offsets_survive_a_clean_restart(server: Together) -> None:
    sent = _send(server)
    with PullConsumer(server.nameserver, group=GROUP) as consumer:
        queues = consumer.queues(TOPIC)
        for queue in queues:
            consumer.pull(queue, 0)  # a broker makes a group for its first reader
            consumer.commit(queue, 7 + queue.queue_id)
    server.stop()
    server.start()
    assert _read(server) == sent
    with PullConsumer(server.nameserver, group=GROUP) as consumer:
        assert {queue: consumer.committed_offset(queue) for queue in queues} == {
            queue: 7 + queue.queue_id for queue in queues
        }


def test_queues_go_on_where_they_ended(server: Together) -> None:
    before = _send(server)
    server.stop()
    server.start()
    after = _send(server)
    assert not before.keys() & after.keys()
    assert _read(server) == before | after


def test_messages_survive_a_kill_of_the_process_also_of_a_topic_made_a_moment_before(
    server: Together,
) -> None:
    """The operating system keeps what the process has written, and nothing is acknowledged before its topic is."""
    sent = _send(server)
    server.kill()
    server.start()
    assert _read(server) == sent


def test_the_very_first_message_of_a_topic_survives_a_kill(server: Together) -> None:
    with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
        receipt = producer.send(Message(TOPIC, b"first"))
        server.kill()
    server.start()
    assert _read(server) == {(receipt.queue, int(receipt.queue_offset)): b"first"}


@pytest.mark.parametrize("others", ["alone", "beside another topic"])
def test_a_topic_stays_deleted_by_a_kill_right_behind_the_answer(server: Together, others: str) -> None:
    """No checkpoint has come yet, and the log has all of its messages."""
    if others != "alone":
        _send(server, "another")
    _send(server)
    _delete(server, TOPIC)
    server.kill()
    server.start()
    again = _send(server)
    assert {offset for _, offset in again} == set(range(COUNT // len({queue for queue, _ in again})))
    assert _read(server) == again
    server.kill()
    server.start()
    assert _read(server) == again


def test_a_running_client_goes_on_by_itself(server: Together) -> None:
    with Producer(server.nameserver, group="tests") as producer:
        producer.send(Message(TOPIC, b"before"))
        server.stop()
        server.start()
        wait_until(lambda: _try_send(producer, b"after"), PATIENCE_SECONDS, "the producer does not come back")
    assert sorted(_read(server).values())[-1] == b"before"


def _delete(server: Together, topic: str) -> None:
    ask(server.nameserver, lambda servers: delete_topic(servers, topic))


def _send(server: Together, topic: str = TOPIC) -> dict[tuple[MessageQueue, int], bytes]:
    """Place to body of every acknowledged message."""
    with Producer(server.nameserver, group="tests", timeout_ms=PATIENCE_MS) as producer:
        receipts = [(producer.send(Message(topic, body)), body) for body in map(_body, range(COUNT))]
    return {(receipt.queue, int(receipt.queue_offset)): body for receipt, body in receipts}


def _body(number: int) -> bytes:
    return f"message {number} ".encode() * (1 + number % 5)


def _try_send(producer: Producer, body: bytes) -> bool:
    try:
        producer.send(Message(TOPIC, body))
    except BolideError:
        return False
    return True


def _read(server: Together) -> dict[tuple[MessageQueue, int], bytes]:
    found: dict[tuple[MessageQueue, int], bytes] = {}
    with PullConsumer(server.nameserver, group="checkers") as consumer:
        for queue in consumer.queues(TOPIC):
            at: int = consumer.min_offset(queue)
            while at < consumer.max_offset(queue):
                result = consumer.pull(queue, at)
                found |= {(queue, int(message.queue_offset)): message.body for message in result.messages}
                assert result.next_offset > at
                at = result.next_offset
    return found
