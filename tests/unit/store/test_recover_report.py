"""What a recovery tells: what it found and cut, and how far it is."""

import logging
from pathlib import Path

import pytest

from bolide.model.errors import RecoveryInterrupted
from bolide.store import recover as recovery
from bolide.store.disk_os import OsDisk
from bolide.store.progress import Interruptible, LoggedProgress
from bolide.store.store import MessageStore
from tests.unit.store.stage import SEGMENT_BYTES, HeldClock, bodies, killed, opened, options, put_many


def test_a_recovery_says_what_it_found_and_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = opened(tmp_path)
    appended = put_many(store, 120)
    put_many(store, 1, "Other")
    killed(store)
    bad = appended[50]
    at = int(bad.log_offset)
    path = tmp_path / "commitlog" / f"{at - at % SEGMENT_BYTES:020d}"
    data = bytearray(path.read_bytes())
    data[at % SEGMENT_BYTES + 88] ^= 0xFF
    path.write_bytes(data)
    opened(tmp_path)
    assert [record.getMessage() for record in caplog.records] == [
        f"the last stop was not clean; looked at the log from 0 to {at}, where it ends: 50 messages",
        f"cut the log at {at}: what lay behind was no sound message, and is erased",
        "deleted 2 segments behind the end of the log",
        "cut 2 consume queues that pointed behind the end of the log",
    ]
    caplog.clear()
    opened(tmp_path / "fresh").close()
    opened(tmp_path / "fresh")
    assert caplog.records == []


def test_a_long_recovery_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "STEP_BYTES", 1000)
    store = opened(tmp_path)
    put_many(store, 100)
    end = int(store.log.end)
    killed(store)
    told: list[tuple[int, int]] = []
    store = MessageStore(OsDisk(), options(tmp_path), HeldClock())
    store.open(lambda done, total: told.append((done, total)))
    assert told[-1] == (end, end)
    assert len(told) > 10
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert all(done <= total for done, total in told)


def test_a_recovery_logs_its_progress_every_few_seconds(caplog: pytest.LogCaptureFixture) -> None:
    clock = HeldClock()
    progress = LoggedProgress(clock)
    with caplog.at_level(logging.INFO):
        for done in range(0, 10 * 1024**3 + 1, 1024**3):
            clock.ms += 1000
            progress(done, 10 * 1024**3)
    assert [record.getMessage() for record in caplog.records] == [
        f"recovering: looked at {done} of at most 10240 MiB of the log, {done * 100 // 10240} %"
        for done in (2048, 5120, 8192)
    ]


def test_an_interrupted_recovery_gives_the_store_back_and_the_next_one_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "STEP_BYTES", 1000)
    store = opened(tmp_path)
    put_many(store, 100)
    killed(store)
    told: list[int] = []
    progress = Interruptible(lambda done, total: told.append(done))

    def interrupted_in_the_middle(done: int, total: int) -> None:
        if len(told) == 5:
            progress.interrupt()
        progress(done, total)

    with pytest.raises(RecoveryInterrupted):
        MessageStore(OsDisk(), options(tmp_path), HeldClock()).open(interrupted_in_the_middle)
    assert len(told) == 6
    assert (tmp_path / "abort").exists()
    assert bodies(opened(tmp_path)) == [b"%05d" % number for number in range(100)]
