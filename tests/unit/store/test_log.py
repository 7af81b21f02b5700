"""The commit log as bytes: what is appended, and what is not yet."""

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from bolide.store.disk_os import OsDisk
from bolide.store.log import AHEAD_BYTES, CommitLog

SEGMENT_BYTES = 16 * AHEAD_BYTES + 1000


@pytest.fixture
def log(tmp_path: Path) -> Iterator[CommitLog]:
    log = opened(tmp_path)
    yield log
    log.close()


def opened(folder: Path, position: int = 0, *, ahead: bool = True) -> CommitLog:
    log = CommitLog(OsDisk(), str(folder), SEGMENT_BYTES, ahead=ahead)
    log.open()
    log.position = position
    return log


def content(log: CommitLog) -> bytes:
    return log.current.file.read(0, SEGMENT_BYTES)


def sizes(seed: int) -> Iterator[int]:
    """Mostly small, sometimes over a part or two, sometimes just to the end of a part."""
    rng = random.Random(seed)
    position = 0
    while True:
        to_part_end = AHEAD_BYTES - position % AHEAD_BYTES
        size = rng.choice([1, 91, 300, rng.randrange(9_000, 12_000), AHEAD_BYTES * 2 + 7, to_part_end])
        if position + size > SEGMENT_BYTES:
            return
        position += size
        yield size


@pytest.mark.parametrize("seed", range(20))
def test_the_log_holds_what_was_appended_and_zeros_behind_it(log: CommitLog, seed: int) -> None:
    expected = b""
    for number, size in enumerate(sizes(seed)):
        records = bytes([number % 255 + 1]) * size
        log.write(records)
        expected += records
        assert content(log)[: len(expected)] == expected
    assert log.position == len(expected)
    assert content(log)[len(expected) :] == bytes(SEGMENT_BYTES - len(expected))


def test_a_log_opened_again_goes_on_behind_its_end(tmp_path: Path) -> None:
    for seed in range(10):
        expected = b""
        folder = tmp_path / str(seed)
        for size in itertools.islice(sizes(seed), 40):
            log = opened(folder, len(expected))
            log.write(b"x" * size)
            log.close()
            expected += b"x" * size
        log = opened(folder)
        assert content(log) == expected + bytes(SEGMENT_BYTES - len(expected))
        log.close()


@pytest.mark.parametrize("ahead", [True, False])
def test_zeros_are_written_ahead_once_for_each_part_where_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: bool
) -> None:
    log = opened(tmp_path, ahead=ahead)
    file = log.current.file
    zeros: list[int] = []
    write = file.write

    def watched(at: int, data: bytes | memoryview) -> None:
        if bytes(data) == bytes(len(data)):
            zeros.append(at)
        write(at, data)

    monkeypatch.setattr(file, "write", watched)
    while log.position + 1000 <= SEGMENT_BYTES:
        log.write(b"x" * 1000)
    assert zeros == (list(range(0, SEGMENT_BYTES, AHEAD_BYTES)) if ahead else [])
    log.close()
