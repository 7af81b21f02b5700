"""Messages that expire under a real `bolide up`, while it is used, stopped and killed."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide import Message, MessageQueue, Producer, PullConsumer
from tests.peers.bolide import Bolide
from tests.peers.server import Together
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until

TOPIC = "short-lived"
SETTINGS = {
    "mappedFileSizeCommitLog": str(64 * 1024),
    "mappedFileSizeConsumeQueue": "2000",
    "maxHashSlotNum": "1000",
    "maxIndexNum": "5000",
    "fileReservedTime": "0",
    "deleteWhen": ";".join(f"{hour:02d}" for hour in range(24)),
    "cleanResourceInterval": "20",
    "deleteCommitLogFilesInterval": "0",
    "deleteConsumeQueueFilesInterval": "0",
    "flushIntervalCommitLog": "10",
    "diskSpaceWarningLevelRatio": "100",
    "cleanFileForciblyEnable": "false",
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Together]:
    server = Together(Bolide(), tmp_path, SETTINGS).start()
    yield server
    server.stop()


@pytest.mark.parametrize("end", [Together.stop, Together.kill])
def test_what_expires_goes_and_the_rest_stays_over_restarts(server: Together, end: object) -> None:
    """Goal: deletion under load never takes or moves a message that it should not.  Method: send with known bodies,
    end the server in the middle, and compare everything from the first offset on, round after round."""
    assert callable(end)
    sent: dict[tuple[MessageQueue, int], bytes] = {}
    first: dict[MessageQueue, int] = {}
    folder = server.home / "data"
    for number in range(4):
        with Producer(server.nameserver, group="writers", timeout_ms=PATIENCE_MS) as producer:
            for count in range(300):
                body = b"%d-%d " % (number, count) * 100
                receipt = producer.send(Message(TOPIC, body))
                sent[receipt.queue, receipt.queue_offset] = body
            wait_until(
                lambda: len(segments_of(folder)) <= 4, PATIENCE_SECONDS, "expired segments to be deleted"
            )
        end(server)
        server.start()
        with PullConsumer(server.nameserver, group="readers") as consumer:
            for queue in consumer.queues(TOPIC):
                first[queue] = check(consumer, queue, sent, first.get(queue, 0))
    assert all(offset > 0 for offset in first.values())
    assert segments_of(folder)[0] > 0
    wait_until(
        lambda: len(list(folder.glob(f"**/consumequeue/{TOPIC}/*/*"))) <= 3 * len(first),
        PATIENCE_SECONDS,
        "expired queue files to be deleted",
    )


def check(
    consumer: PullConsumer, queue: MessageQueue, sent: dict[tuple[MessageQueue, int], bytes], before: int
) -> int:
    """Every offset from the first one on holds what was sent there; the first one never goes back."""
    first = offset = int(consumer.min_offset(queue))
    end = 1 + max(at for where, at in sent if where == queue)
    assert before <= first <= end == consumer.max_offset(queue)
    while offset < end:
        messages = consumer.pull(queue, offset).messages
        if not messages:  # expired meanwhile
            offset = max(offset + 1, int(consumer.min_offset(queue)))
            continue
        for message in messages:
            assert message.body == sent[queue, message.queue_offset]
        offset = messages[-1].queue_offset + 1
    return first


def segments_of(folder: Path) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(int(path.name) for path in folder.glob("**/commitlog/*"))
    return []
