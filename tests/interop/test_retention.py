"""A store that ours has deleted from, opened by the original: the same first offsets, the same messages, and back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide import Message, MessageQueue, Producer, PullConsumer
from tests.peers import frames, java
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import PATIENCE_MS, PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.needs("java", "mvn")

TOPIC = "short-lived"
QUEUES = 4
SIZES = {
    "mappedFileSizeCommitLog": str(256 * 1024),
    "mappedFileSizeConsumeQueue": "2000",
    "cleanFileForciblyEnable": "false",  # on a well filled disk both would delete small segments at once
}
EXPIRING = {
    "fileReservedTime": "0",
    "deleteWhen": ";".join(f"{hour:02d}" for hour in range(24)),
    "cleanResourceInterval": "20",
    "flushIntervalCommitLog": "10",
}


@pytest.fixture
def nameserver(tmp_path: Path) -> Iterator[NameServer]:
    nameserver = NameServer(Bolide(), tmp_path / "nameserver").start()
    yield nameserver
    nameserver.stop()


class Shelf:
    """One store directory, and what a reader finds in it."""

    def __init__(self, home: Path, nameserver: NameServer) -> None:
        self.home = home
        self.nameserver = nameserver

    def broker(self, kind: ServerKind, **settings: str) -> Broker:
        return Broker(kind, self.home, "broker-a", [self.nameserver], {**SIZES, **settings})

    def segments(self) -> list[int]:
        return sorted(int(path.name) for path in (self.home / "store" / "commitlog").iterdir())

    def send(self, broker: Broker, count: int) -> None:
        """Send, and wait until readers see it: the original acknowledges a moment before."""
        before = frames.readable(broker.address, TOPIC, QUEUES)
        with Producer(self.nameserver.address, group="writers", timeout_ms=PATIENCE_MS) as producer:
            for number in range(count):
                producer.send(Message(TOPIC, b"%05d " % number * 300))
        wait_until(
            lambda: frames.readable(broker.address, TOPIC, QUEUES) == before + count,
            PATIENCE_SECONDS,
            "not all messages can be read",
        )

    def seen(self) -> dict[MessageQueue, tuple[int, list[bytes]]]:
        """Of each queue its first offset and the bodies from there on."""
        found: dict[MessageQueue, tuple[int, list[bytes]]] = {}
        with PullConsumer(self.nameserver.address, group="readers") as consumer:
            for queue in consumer.queues(TOPIC):
                first, end = int(consumer.min_offset(queue)), int(consumer.max_offset(queue))
                bodies: list[bytes] = []
                while first + len(bodies) < end:
                    pulled = consumer.pull(queue, first + len(bodies)).messages
                    assert pulled, (queue, first, len(bodies), end)
                    bodies += [message.body for message in pulled]
                found[queue] = (first, bodies)
                if first > 0:
                    assert consumer.pull(queue, 0).next_offset == first
        return found


@pytest.mark.parametrize("version", java.VERSIONS)
def test_the_original_goes_on_with_a_store_that_ours_has_deleted_from_and_ours_after_it(
    version: str, nameserver: NameServer, tmp_path: Path
) -> None:
    shelf = Shelf(tmp_path / "broker", nameserver)
    ours = shelf.broker(Bolide(), **EXPIRING).start()
    try:
        shelf.send(ours, 1500)
        wait_until(lambda: len(shelf.segments()) == 1, PATIENCE_SECONDS, "expired segments to be deleted")
    finally:
        ours.stop()
    assert shelf.segments()[0] > 0

    ours = shelf.broker(Bolide()).start()
    try:
        before = shelf.seen()
        assert all(first > 0 and bodies for first, bodies in before.values())
    finally:
        ours.stop()

    theirs = shelf.broker(Apache(version)).start()
    try:
        assert shelf.seen() == before
        shelf.send(theirs, 300)
        after = shelf.seen()
        assert {queue: first for queue, (first, _) in after.items()} == {
            queue: first for queue, (first, _) in before.items()
        }
    finally:
        theirs.stop()

    ours = shelf.broker(Bolide()).start()
    try:
        assert shelf.seen() == after
    finally:
        ours.stop()
