"""What a push consumer of ours must do on any server: bring failed messages again, keep an order, tell everybody."""

import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bolide import Later, Message, Producer, PullConsumer, PushConsumer, StoredMessage, Suspend
from bolide.client.offsets import decode_offsets, encode_offsets
from tests.interop import ledger
from tests.interop.python_clients import Seen, everything, subscribed
from tests.interop.stage import Stage
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_SECONDS, wait_until

LONG = {"mine": "kept", "long": "x" * 32_560}
"""A message that has these can be sent, and leaves no room for what a retry writes into it."""


def fails_comes_again_and_is_dead(
    server: Together, producer: Producer, reader: PullConsumer, topic: str, group: str
) -> None:
    """With levels of a second, so that nobody waits for minutes; one has properties that Apache's brokers do not take
    back.
    """
    seen, tries = Seen(), list[int]()

    def listener(messages: list[StoredMessage]) -> Later | None:
        (message,) = messages
        if message.body in (b"3", b"4"):
            assert message.topic == topic
            tries.append(message.reconsume_times)
            if message.body == b"3" or message.reconsume_times == 0:
                return Later(delay_level=1)
        seen(messages)
        return None

    sent = [
        producer.send(Message(topic, b"%d" % number, properties=LONG if number == 3 else {}))
        for number in range(10)
    ]
    with subscribed(server, topic, group, listener, start_from="first", attempts_max=2):
        seen.wait(9)
        wait_until(lambda: sorted(tries) == [0, 0, 1, 1, 2], PATIENCE_SECONDS, lambda: f"tries {tries}")
        letters = f"%DLQ%{group}"
        (letter,) = [message for message in everything(reader, letters) if message.body == b"3"]
    ledger.assert_each_once([str(number) for number in range(10) if number != 3], seen.bodies)
    assert (letter.properties["RETRY_TOPIC"], letter.message_id) == (topic, sent[3].message_id)
    assert (letter.properties["mine"], letter.properties["BOLIDE_LEFT_OUT"]) == ("kept", "long 32560")
    with PullConsumer(server.nameserver, group=group) as check:
        for queue in check.queues(topic):
            assert int(check.committed_offset(queue) or 0) == int(check.max_offset(queue))


def keeps_the_order(
    server: Together, producer: Producer, reader: PullConsumer, topic: str, group: str
) -> None:
    """Failures are repeated in place, and with a limit they end as dead letters; one member comes and goes."""
    queues = producer.queues(topic)
    seen: list[StoredMessage] = []

    def send(first: int, end: int) -> None:
        for number in range(first, end):
            properties = LONG if number == 6 else {}
            message = Message(topic, b"%d" % number, properties=properties)
            producer.send(message, queue=queues[number % len(queues)])

    def listener(messages: list[StoredMessage]) -> Suspend | None:
        (message,) = messages
        if message.body == b"6" or (message.body == b"9" and message.reconsume_times == 0):
            return Suspend(10)
        seen.append(message)
        return None

    def member() -> PushConsumer:
        options: dict[str, Any] = {"orderly": True, "attempts_max": 1, "start_from": "first"}
        return subscribed(server, topic, group, listener, **options)

    def numbers() -> set[int]:
        return {int(message.body) for message in seen}

    send(0, 20)
    with member() as one:
        wait_until(lambda: len(numbers()) == 19, PATIENCE_SECONDS, lambda: f"{sorted(numbers())}")
        with member() as two:
            wait_until(
                lambda: len([queue for queue in two.queues if queue.topic == topic]) == 2,
                PATIENCE_SECONDS,
                lambda: f"two queues, with their locks, not {two.queues}; the other has {one.queues}",
            )
            send(20, 60)
            wait_until(lambda: len(numbers()) == 59, PATIENCE_SECONDS, lambda: f"{sorted(numbers())}")
        send(60, 80)
        wait_until(lambda: len(numbers()) == 79, PATIENCE_SECONDS, lambda: f"{sorted(numbers())}")
        wait_until(
            lambda: [one.body for one in everything(reader, f"%DLQ%{group}")] == [b"6"],
            PATIENCE_SECONDS,
            "what has failed twice is dead",
        )
    for queue in queues:
        of_queue = [int(message.body) for message in seen if message.queue_id == queue.queue_id]
        assert of_queue == sorted(of_queue)


def gives_everything_to_everybody(
    server: Together, producer: Producer, tmp_path: Path, topic: str, group: str
) -> None:
    """In broadcasting, from start to start; the broker keeps no offset."""
    queue = producer.queues(topic)[0]
    for number in range(10):
        producer.send(Message(topic, b"%d" % number), queue=queue)
    members = {name: Seen() for name in ("one", "two")}
    with ExitStack() as stack:
        for name, seen in members.items():
            options: dict[str, Any] = {"broadcasting": True, "offsets_dir": tmp_path, "instance_name": name}
            stack.enter_context(subscribed(server, topic, group, seen, start_from="first", **options))
        for seen in members.values():
            seen.wait(10)
    producer.send(Message(topic, b"10"), queue=queue)
    again = Seen()
    options = {"broadcasting": True, "offsets_dir": tmp_path, "instance_name": "one"}
    with subscribed(server, topic, group, again, start_from="first", **options):
        again.wait(1)
    assert again.bodies == ["10"], "it goes on where its file says"
    with PullConsumer(server.nameserver, group=group) as check:
        assert check.committed_offset(queue) in (None, 0)  # 4.x says 0 for a young queue


def goes_on_where_java_was(
    stage: Stage, server: Together, producer: Producer, tmp_path: Path, topic: str, group: str
) -> None:
    """A file of a Java consumer in broadcasting means the same to us, and has the form of ours."""
    queue = producer.queues(topic)[0]
    for number in range(10):
        producer.send(Message(topic, b"%d" % number), queue=queue)
    member = stage.consume(topic, group, model="broadcasting")
    home = stage.witness.process.log.parent
    path = home / ".rocketmq_offsets" / member.client_id / group / "offsets.json"
    member.wait_received(10)
    member.stop()
    written = "".join(path.read_text().split())
    offsets = decode_offsets(path.read_bytes())
    assert offsets[queue] == 10
    for one, offset in offsets.items():
        assert (
            "".join(encode_offsets({one: offset}).decode().split())[len('{"offsetTable":{') : -2] in written
        )
    ours = tmp_path / "127.0.0.1@DEFAULT" / group / "offsets.json"
    ours.parent.mkdir(parents=True)
    shutil.copy(path, ours)
    producer.send(Message(topic, b"10"), queue=queue)
    seen = Seen()
    with subscribed(server, topic, group, seen, start_from="first", broadcasting=True, offsets_dir=tmp_path):
        seen.wait(1)
    assert seen.bodies == ["10"]
