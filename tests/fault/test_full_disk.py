"""A real file system that fills up: a small tmpfs in a mount namespace of its own, under a real `bolide up`."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from bolide import Message, Producer, PullConsumer
from bolide.model.errors import RemoteError
from bolide.model.offsets import MessageQueue
from bolide.model.response_code import ResponseCode
from tests.peers.ports import free_broker_port, free_port
from tests.peers.waiting import wait_until

pytestmark = pytest.mark.timeout(1200)

SECONDS_MAX = 120
"""Nothing here takes so long on a machine that works; only a failure waits for it."""
MIB = 1024 * 1024
SEGMENT_BYTES = 8 * MIB
BOLIDE = Path(sys.executable).with_name("bolide")
SMALL_INDEX = {"maxHashSlotNum": "1000", "maxIndexNum": "20000"}
BY_ROOM_ONLY = {"diskSpaceWarningLevelRatio": "100", "cleanFileForciblyEnable": "false"}


def can_mount() -> bool:
    """Whether this user may make a mount namespace, as root or by a user namespace."""
    if shutil.which("unshare") is None:
        return False
    probe = ["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


@dataclass(frozen=True)
class SmallDisk:
    """A server on a disk of its own."""

    nameserver: str
    pid: int
    folder: Path
    log: Path

    @property
    def inside(self) -> Path:
        """The disk, as seen from here."""
        return Path(f"/proc/{self.pid}/root{self.folder}")

    def fill_to(self, percent: int) -> None:
        """Somebody else writes to the disk."""
        stat = os.statvfs(self.inside)
        used = stat.f_blocks - stat.f_bfree
        size = (stat.f_blocks * percent // 100 - used) * stat.f_frsize
        (self.inside / "ballast").write_bytes(bytes(max(0, size)))

    def empty(self) -> None:
        (self.inside / "ballast").unlink()

    def grow_to(self, mib: int) -> None:
        options = f"remount,size={mib}m"
        enter = ["nsenter", "--target", str(self.pid), "--mount", "--user"]
        subprocess.run([*enter, "mount", "-o", options, str(self.folder)], check=True)

    def segments(self) -> list[int]:
        return sorted(int(path.name) for path in self.inside.glob("**/commitlog/*"))


@contextlib.contextmanager
def server_on(tmp_path: Path, mib: int, settings: Mapping[str, str]) -> Iterator[SmallDisk]:
    if not can_mount():
        pytest.skip("needs a mount namespace (unshare --mount): run as root or allow user namespaces")
    folder, log = tmp_path / "disk", tmp_path / "log"
    folder.mkdir()
    nameserver_port, broker_port = free_port(), free_broker_port()
    command = (
        f"mount -t tmpfs -o size={mib}m tmpfs {folder} && exec {BOLIDE} up --data {folder} --host 127.0.0.1"
        f" --nameserver-port {nameserver_port} --broker-port {broker_port} "
    )
    command += " ".join(f"--set {key}={value}" for key, value in {**SMALL_INDEX, **settings}.items())
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["unshare", "--mount", "--map-root-user", "sh", "-c", command], stdout=out, stderr=out
        )
    try:
        wait_until(
            lambda: b"serves" in log.read_bytes(), SECONDS_MAX, lambda: f"the server: {log.read_text()}"
        )
        yield SmallDisk(f"127.0.0.1:{nameserver_port}", process.pid, folder, log)
        assert process.poll() is None, log.read_text()
    finally:
        process.terminate()
        process.wait(SECONDS_MAX)


def test_a_full_disk_refuses_sends_serves_reads_and_recovers_when_space_returns(tmp_path: Path) -> None:
    """Goal: no bus error and no lost message.  Method: fill two segments, see the refusal, read all, free, send."""
    settings = {"mappedFileSizeCommitLog": str(SEGMENT_BYTES), **BY_ROOM_ONLY}
    with server_on(tmp_path, 19, settings) as disk:
        ledger = Ledger(disk.nameserver)
        with ledger:
            ledger.send(b"first")
            (disk.inside / "ballast").write_bytes(bytes(MIB))
            remark = ledger.send_until_refused(60_000)
            assert "segment" in remark or "consume queue" in remark
            ledger.check_all_is_there()
            assert len(disk.segments()) == 2

            disk.empty()
            disk.grow_to(40)
            wait_until(lambda: ledger.sends(60_000), SECONDS_MAX, "sends to be taken again")
            for _ in range(50):
                ledger.send(os.urandom(1000))
            ledger.check_all_is_there()


def test_a_disk_above_the_warning_level_refuses_sends_and_takes_them_again_by_itself(tmp_path: Path) -> None:
    """RT-02 with real numbers: above 90 % nothing is taken, below it is, within seconds and without a restart."""
    settings = {"mappedFileSizeCommitLog": str(MIB), "cleanFileForciblyEnable": "false"}
    with server_on(tmp_path, 40, settings) as disk:
        ledger = Ledger(disk.nameserver)
        with ledger:
            for _ in range(3):
                for _ in range(20):
                    ledger.send(os.urandom(1000))
                disk.fill_to(93)
                wait_until(lambda: not ledger.sends(1000), SECONDS_MAX, "sends to be refused")
                assert "full, above diskSpaceWarningLevelRatio (90 %)" in ledger.refusal
                ledger.check_all_is_there()
                disk.empty()
                wait_until(lambda: ledger.sends(1000), SECONDS_MAX, "sends to be taken again")
            ledger.check_all_is_there()
        text = disk.log.read_text()
        assert "or lower fileReservedTime" in text  # the warning came first
        assert text.count("messages are taken again") == 3


def test_forced_cleaning_keeps_a_small_disk_going(tmp_path: Path) -> None:
    """Goal: a producer never stops for want of space while there is something old to delete.  Method: send four times
    what the disk holds; the newest messages are all there, and the oldest offset moves."""
    settings = {
        "mappedFileSizeCommitLog": str(MIB),
        "cleanResourceInterval": "50",
        "deleteCommitLogFilesInterval": "0",
        "flushIntervalCommitLog": "20",
    }
    with server_on(tmp_path, 40, settings) as disk:
        ledger = Ledger(disk.nameserver)
        with ledger:
            for _ in range(4 * 40 * MIB // 60_000):
                wait_until(lambda: ledger.sends(60_000), SECONDS_MAX, lambda: ledger.refusal)
            wait_until(lambda: used_percent(disk) <= 85, SECONDS_MAX, "the disk to be cleaned")
            first = ledger.check_all_is_there()
            assert first > 0
            assert disk.segments()[0] > 0
        assert "whatever its age" in disk.log.read_text()


def used_percent(disk: SmallDisk) -> float:
    stat = os.statvfs(disk.inside)
    return 100 * (stat.f_blocks - stat.f_bfree) / stat.f_blocks


class Ledger:
    """Sends to one queue and remembers what was acknowledged."""

    def __init__(self, nameserver: str) -> None:
        self._producer = Producer(nameserver, group="filler", timeout_ms=1000 * SECONDS_MAX)
        self._reader = PullConsumer(nameserver, group="reader")
        self._queue: MessageQueue | None = None
        self._stack = contextlib.ExitStack()
        self.acknowledged: list[bytes] = []
        self.refusal = ""

    def __enter__(self) -> None:
        self._stack.enter_context(self._producer)
        self._stack.enter_context(self._reader)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def send(self, body: bytes) -> None:
        receipt = self._producer.send(Message("full", body), queue=self._queue)
        self._queue = receipt.queue
        assert receipt.queue_offset == len(self.acknowledged)
        self.acknowledged.append(body)

    def sends(self, size: int) -> bool:
        """Whether a message is taken; what comes as a refusal must be the original's code."""
        refused: RemoteError | None = None
        try:
            self.send(os.urandom(size))  # does not compress
        except RemoteError as error:
            refused = error
        if refused is not None:
            assert refused.response_code == ResponseCode.SERVICE_NOT_AVAILABLE
            self.refusal = refused.remark
        return refused is None

    def send_until_refused(self, size: int) -> str:
        for _ in range(10 * SEGMENT_BYTES // size):
            if not self.sends(size):
                return self.refusal
        raise AssertionError("the disk never became full")

    def check_all_is_there(self) -> int:
        """Every acknowledged message from the queue's first offset on, each at its offset; returns that offset."""
        assert self._queue is not None
        first = offset = int(self._reader.min_offset(self._queue))
        assert self._reader.max_offset(self._queue) == len(self.acknowledged)
        while offset < len(self.acknowledged):
            messages = self._reader.pull(self._queue, offset).messages
            assert messages, offset
            for message in messages:
                assert message.queue_offset == offset
                assert message.body == self.acknowledged[offset]
                offset += 1
        return first
