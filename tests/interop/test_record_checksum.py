"""Records with a checksum of the whole (enabledAppendPropCRC), written by one side and verified by the other.

The original verifies them in its recovery, and only with forceVerifyPropCRC, which lets it take no record without one.
So each side is killed, and what the other finds, every record has passed that check.
"""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.interop import ledger
from tests.interop.stage import Stage
from tests.peers import frames, java
from tests.peers.apache import Apache
from tests.peers.bolide import Bolide
from tests.peers.server import Broker, NameServer, ServerKind
from tests.peers.waiting import PATIENCE_SECONDS, wait_until
from tests.peers.witness import Witness

pytestmark = pytest.mark.needs("java", "mvn")

SETTINGS = {
    "enabledAppendPropCRC": "true",
    "forceVerifyPropCRC": "true",
    "mappedFileSizeCommitLog": str(64 * 1024),
    "cleanFileForciblyEnable": "false",  # on a well filled disk both would delete small segments at once
}
RECORD = (0xDAA320A7, 0xDAA320AB)
FLAG_AT = 19
QUEUES = 4


@pytest.fixture
def nameserver(tmp_path: Path) -> Iterator[NameServer]:
    nameserver = NameServer(Bolide(), tmp_path / "nameserver").start()
    yield nameserver
    nameserver.stop()


@pytest.fixture
def stage(witnesses: Callable[[str], Witness], nameserver: NameServer) -> Iterator[Stage]:
    stage = Stage(witnesses(java.LATEST), nameserver.address)
    yield stage
    stage.close()


def test_each_side_verifies_what_the_other_wrote(
    stage: Stage, nameserver: NameServer, tmp_path: Path
) -> None:
    sent: list[str] = []
    topic = ""
    for kind in (Bolide(), Apache(), Bolide()):
        broker = started(kind, nameserver, tmp_path)
        try:
            topic = topic or stage.topic(QUEUES)
            wait_for_route(stage, topic)
            ledger.assert_each_once(sent, bodies(stage, topic))
            sent += stage.produce(topic, 20, tags=["red"], keys=True).finish().bodies
            sent += stage.produce(topic, 32, mode="batch", batch=16).finish().bodies
            wait_for_readers(broker, topic, len(sent))
            ledger.assert_each_once(sent, bodies(stage, topic))
        finally:
            broker.kill()
    records = records_of(tmp_path / "broker" / "store" / "commitlog")
    assert len(records) >= len(sent)
    assert all(record[-20:-11] == b"__CRC32#\x01" for _, record in records)


def test_a_damaged_message_of_the_original_is_not_delivered_and_the_others_are(
    stage: Stage, nameserver: NameServer, tmp_path: Path
) -> None:
    """After a clean stop nobody walks older segments: only whoever reads the message can find out."""
    broker = started(Apache(), nameserver, tmp_path)
    try:
        topic = stage.topic(QUEUES)
        sent = stage.produce(topic, 40, size=3_000).finish().bodies
    finally:
        broker.stop()
    log = tmp_path / "broker" / "store" / "commitlog"
    at, record = next((at, one) for at, one in records_of(log) if f"{sent[5]}|".encode() in one)
    with (log / f"{0:020d}").open("r+b") as file:
        file.seek(at + FLAG_AT)
        file.write(bytes((record[FLAG_AT] ^ 1,)))
    broker = started(Bolide(), nameserver, tmp_path)
    try:
        wait_for_route(stage, topic)
        ledger.assert_each_once([body for body in sent if body != sent[5]], bodies(stage, topic))
    finally:
        broker.stop()


def started(kind: ServerKind, nameserver: NameServer, home: Path) -> Broker:
    return Broker(kind, home / "broker", "broker-a", [nameserver], SETTINGS).start()


def wait_for_route(stage: Stage, topic: str) -> None:
    wait_until(lambda: bool(stage.route_numbers(topic)), PATIENCE_SECONDS, f"{topic} has no route")


def wait_for_readers(broker: Broker, topic: str, count: int) -> None:
    """The original shows a message to readers a moment after it has acknowledged it."""
    wait_until(
        lambda: frames.readable(broker.address, topic, QUEUES) == count,
        PATIENCE_SECONDS,
        lambda: f"{frames.readable(broker.address, topic, QUEUES)} of {count} messages can be read",
    )


def bodies(stage: Stage, topic: str) -> list[str]:
    messages, _ = stage.read("pull", topic, stage.name("readers"))
    ledger.assert_intact(messages)
    return [message.body for message in messages]


def records_of(folder: Path) -> list[tuple[int, bytes]]:
    """Every record of the first segment and its place, by a walk that shares nothing with what is tested."""
    data, at = (folder / f"{0:020d}").read_bytes(), 0
    records: list[tuple[int, bytes]] = []
    while True:
        size, magic = struct.unpack_from(">iI", data, at)
        if magic not in RECORD:
            return records
        records.append((at, data[at : at + size]))
        at += size
