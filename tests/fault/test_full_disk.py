"""A real file system that fills up: a small tmpfs in a mount namespace of its own, under a real `bolide up`."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide import Message, Producer, PullConsumer
from bolide.model.errors import RemoteError
from bolide.model.response_code import ResponseCode
from tests.peers.ports import free_broker_port, free_port
from tests.peers.waiting import wait_until

MIB = 1024 * 1024
SEGMENT_BYTES = 8 * MIB
BOLIDE = Path(sys.executable).with_name("bolide")


def can_mount() -> bool:
    """Whether this user may make a mount namespace, as root or by a user namespace."""
    if shutil.which("unshare") is None:
        return False
    probe = ["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, int, Path]]:
    """(name server, pid, folder) of a server whose disk has room for two segments and little else."""
    if not can_mount():
        pytest.skip("needs a mount namespace (unshare --mount): run as root or allow user namespaces")
    folder = tmp_path / "disk"
    folder.mkdir()
    nameserver_port, broker_port = free_port(), free_broker_port()
    command = (
        f"mount -t tmpfs -o size=19m tmpfs {folder} && exec {BOLIDE} up --data {folder} --host 127.0.0.1"
        f" --nameserver-port {nameserver_port} --broker-port {broker_port}"
        f" --set mappedFileSizeCommitLog={SEGMENT_BYTES}"
    )
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", command], stdout=log, stderr=log
    )
    try:
        nameserver = f"127.0.0.1:{nameserver_port}"
        wait_until(lambda: b"serves" in (tmp_path / "log").read_bytes(), 20, "the server to start")
        yield nameserver, process.pid, folder
        assert process.poll() is None, (tmp_path / "log").read_text()
    finally:
        process.terminate()
        process.wait(20)
        log.close()


def test_a_full_disk_refuses_sends_serves_reads_and_recovers_when_space_returns(
    server: tuple[str, int, Path],
) -> None:
    """Goal: no bus error and no lost message.  Method: fill two segments, see the refusal, read all, free, send."""
    nameserver, pid, folder = server
    inside = Path(f"/proc/{pid}/root{folder}")
    ballast = inside / "ballast"
    body = os.urandom(60_000)  # does not compress
    with Producer(nameserver, group="filler") as producer, PullConsumer(nameserver, group="reader") as reader:
        first = producer.send(Message("full", b"first"))
        ballast.write_bytes(bytes(1 * MIB))
        acknowledged = 1 + fill(producer, Message("full", body))
        with pytest.raises(RemoteError) as refused:
            producer.send(Message("full", body), queue=first.queue)
        assert refused.value.response_code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "segment" in refused.value.remark or "consume queue" in refused.value.remark
        assert stored(reader) == acknowledged
        assert reader.pull(first.queue, first.queue_offset).messages[0].body == b"first"

        release(inside, ballast)
        wait_until(lambda: sends(producer, Message("full", body)), 20, "sends to be taken again")


def fill(producer: Producer, message: Message) -> int:
    """Send until the broker refuses; returns how many were acknowledged."""
    for count in range(10 * SEGMENT_BYTES // len(message.body)):
        try:
            producer.send(message)
        except RemoteError:
            return count
    raise AssertionError("the disk never became full")


def sends(producer: Producer, message: Message) -> bool:
    with contextlib.suppress(RemoteError):
        producer.send(message)
        return True
    return False


def stored(reader: PullConsumer) -> int:
    return sum(reader.max_offset(queue) - reader.min_offset(queue) for queue in reader.queues("full"))


def release(inside: Path, ballast: Path) -> None:
    """Give room for one more segment: the ballast goes and the file system grows."""
    ballast.unlink()
    os.sync()
    target = str(inside).split("/root", 1)[1]
    pid = str(inside).split("/")[2]
    subprocess.run(
        ["nsenter", "--target", pid, "--mount", "--user", "mount", "-o", "remount,size=40m", target],
        check=True,
    )
