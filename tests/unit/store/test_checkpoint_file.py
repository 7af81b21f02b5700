"""The checkpoint file: what stands in it, whose it is, and what damage does to it."""

import struct

import pytest

from bolide.store.checkpoint import FILE_BYTES, MARK_AT, MARK_END, Checkpoint, Mark, is_foreign


def test_a_checkpoint_survives_its_file() -> None:
    for mark in (None, Mark(5_000_000_000, 4_999_999_000, 17), Mark(0, -1)):
        given = Checkpoint(3, 2, 1, -1, 99, mark)
        assert len(given.encode()) == FILE_BYTES
        assert Checkpoint.decode(given.encode()) == given


def test_the_original_finds_its_five_numbers_where_it_looks() -> None:
    data = Checkpoint(11, 12, 13, 14, 15, Mark(1, 2, 3)).encode()
    assert struct.unpack_from(">qqqqq", data) == (11, 12, 13, 14, 15)


@pytest.mark.parametrize("number", range(5))
def test_a_checkpoint_that_the_original_has_written_again_keeps_its_times_and_loses_its_mark(
    number: int,
) -> None:
    data = bytearray(Checkpoint(11, 12, 13, 14, 15, Mark(1, 2, 3)).encode())
    struct.pack_into(">q", data, number * 8, 4711)
    read = Checkpoint.decode(bytes(data))
    assert read.mark is None
    assert 4711 in (read.log_ms, read.queues_ms, read.index_ms, read.master_flushed, read.confirmed)


@pytest.mark.parametrize("at", [MARK_AT + 1, MARK_AT + 15, MARK_AT + 20, MARK_AT + 33, MARK_AT + 43])
def test_a_damaged_mark_counts_no_more(at: int) -> None:
    data = bytearray(Checkpoint(11, 12, 13, 14, 15, Mark(1, 2, 3)).encode())
    data[at] ^= 1
    assert Checkpoint.decode(bytes(data)).mark is None


@pytest.mark.parametrize("number", range(5))
def test_what_the_original_has_written_is_known_for_its_own(number: int) -> None:
    data = bytearray(Checkpoint(11, 12, 13, 14, 15, Mark(1, 2, 3)).encode())
    assert not is_foreign(bytes(data))
    struct.pack_into(">q", data, number * 8, 4711)
    assert is_foreign(bytes(data))
    assert is_foreign(Checkpoint(11, 12, 13, 14, 15).encode())  # it has no mark


def test_damage_is_not_taken_for_the_original_unless_it_hits_what_that_writes() -> None:
    sound = Checkpoint(11, 12, 13, 14, 15, Mark(1, 2, 3)).encode()
    for at in range(5 * 8, FILE_BYTES):
        assert not is_foreign(sound[:at] + bytes([sound[at] ^ 0x10]) + sound[at + 1 :]), at
    assert not is_foreign(b"\xff" + sound[1:])  # a negative time
    for size in (0, 39, 40, MARK_AT, MARK_END - 1):
        assert not is_foreign(sound[:size]), size


@pytest.mark.parametrize("data", [b"", b"short", bytes(40), bytes(FILE_BYTES), b"\xff" * FILE_BYTES])
def test_a_file_that_is_none_says_nothing(data: bytes) -> None:
    read = Checkpoint.decode(data)
    assert (read.mark, read.safe_ms) == (None, 0)


def test_times_are_used_with_three_seconds_of_caution() -> None:
    assert Checkpoint(log_ms=50_000, queues_ms=40_000).safe_ms == 37_000
    assert Checkpoint(log_ms=2_000, queues_ms=40_000).safe_ms == 0
