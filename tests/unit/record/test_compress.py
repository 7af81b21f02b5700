"""Packed bodies: all three ways, and nothing grows without bound."""

import io

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bolide.model.errors import MalformedRecord
from bolide.model.message import SysFlag
from bolide.record.compress import pack_body, unpack_body, unpacked_at_most

KINDS = [SysFlag.COMPRESSION_ZLIB, SysFlag.COMPRESSION_LZ4, SysFlag.COMPRESSION_ZSTD]


@pytest.mark.parametrize("kind", KINDS)
@given(body=st.binary(max_size=4096))
def test_what_was_packed_unpacks_to_itself(kind: int, body: bytes) -> None:
    assert unpack_body(pack_body(body, kind), SysFlag.COMPRESSED | kind) == body


def test_a_body_without_the_flag_is_left_alone() -> None:
    assert unpack_body(b"plain", SysFlag.COMPRESSION_LZ4) == b"plain"


def test_no_kind_at_all_means_zlib_as_old_clients_write_it() -> None:
    assert unpack_body(pack_body(b"old"), SysFlag.COMPRESSED) == b"old"


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_that_unpacks_to_too_much_is_refused(kind: int) -> None:
    packed = pack_body(bytes(1_000_001), kind)
    assert len(unpack_body(packed, SysFlag.COMPRESSED | kind, 1_000_001)) == 1_000_001
    with pytest.raises(MalformedRecord, match="more than 1000000 bytes"):
        unpack_body(packed, SysFlag.COMPRESSED | kind, 1_000_000)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_or_foreign_body_is_refused(kind: int) -> None:
    packed = pack_body(b"something to say" * 100, kind)
    for bad in (packed[:-5], packed[: len(packed) // 2], b"not packed at all", b""):
        with pytest.raises(MalformedRecord):
            unpack_body(bad, SysFlag.COMPRESSED | kind)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(MalformedRecord, match="unknown way"):
        unpack_body(b"x", SysFlag.COMPRESSED | 0x500)


def test_streams_that_do_not_say_their_size_unpack_within_the_bound() -> None:
    """Java writes zstd and lz4 through streams, which do not know the size when they begin."""
    target = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(target, closefd=False) as writer:
        writer.write(b"a" * 5000)
    packed, flag = target.getvalue(), SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZSTD
    assert unpack_body(packed, flag) == b"a" * 5000
    with pytest.raises(MalformedRecord, match="more than 4999"):
        unpack_body(packed, flag, 4999)
    with pytest.raises(MalformedRecord):
        unpack_body(packed[:-1], flag)
    packed = lz4.frame.compress(b"a" * 5000, store_size=False)
    assert unpack_body(packed, SysFlag.COMPRESSED | SysFlag.COMPRESSION_LZ4) == b"a" * 5000


def _zstd_without_size(body: bytes) -> bytes:
    stream = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(stream, closefd=False) as writer:
        writer.write(body)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("body", "kind", "most"),
    [
        (pack_body(bytes(100_000)), SysFlag.COMPRESSION_ZLIB, 100_000),
        (pack_body(bytes(100_000)), 0, 100_000),
        (pack_body(bytes(100_000), SysFlag.COMPRESSION_LZ4), SysFlag.COMPRESSION_LZ4, 100_000),
        (_zstd_without_size(bytes(100_000)), SysFlag.COMPRESSION_ZSTD, 100_000),
        (pack_body(bytes(90_000), SysFlag.COMPRESSION_ZSTD), SysFlag.COMPRESSION_ZSTD, 90_000),
    ],
)
def test_what_a_bad_body_may_have_cost_is_never_less_than_what_it_unpacks_to(
    body: bytes, kind: int, most: int
) -> None:
    assert most <= unpacked_at_most(body, SysFlag.COMPRESSED | kind)
    assert unpacked_at_most(body, SysFlag.COMPRESSED | kind, 95_000) <= 95_000


@pytest.mark.parametrize("kind", [*KINDS, 0, 0x500])
def test_a_body_that_was_never_packed_that_way_costs_nothing(kind: int) -> None:
    for body in (b"not packed at all" * 1000, b"", b"x"):
        assert unpacked_at_most(body, SysFlag.COMPRESSED | kind) == 0


def test_a_body_that_says_itself_that_it_is_too_large_is_not_unpacked_and_costs_nothing() -> None:
    body = pack_body(bytes(100_000), SysFlag.COMPRESSION_ZSTD)
    assert unpacked_at_most(body, SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZSTD, 99_999) == 0
