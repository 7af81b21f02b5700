"""Bodies, packed and unpacked, in RocketMQ's three ways.

The way is in a record's sysFlag: bit 0 says that the body is packed, bits 8 to 10 how (`SysFlag.COMPRESSION_*`;
nothing there means zlib, as old clients write it).  What is unpacked is bounded, so that a small message cannot
become a large memory.
"""

import zlib

import lz4.frame
import zstandard

from bolide.model.errors import MalformedRecord
from bolide.model.limits import BODY_UNPACKED_BYTES_MAX
from bolide.model.message import COMPRESSION_MASK, SysFlag

ZLIB_LEVEL = 5

ZLIB_RATIO = 1032
LZ4_RATIO = 255
ZSTD_RATIO = 32_768
"""A byte unpacks to so many at most: a block of zstd that repeats one byte takes four bytes for 128 KiB."""

LZ4_MAGIC = b"\x04\x22\x4d\x18"


def pack_body(body: bytes, kind: int = SysFlag.COMPRESSION_ZLIB) -> bytes:
    """The body packed in one of the three ways."""
    if kind == SysFlag.COMPRESSION_ZLIB:
        return zlib.compress(body, ZLIB_LEVEL)
    if kind == SysFlag.COMPRESSION_LZ4:
        return bytes(lz4.frame.compress(body))
    if kind == SysFlag.COMPRESSION_ZSTD:
        return zstandard.ZstdCompressor().compress(body)
    raise ValueError(f"unknown compression {kind:#x}")


def unpack_body(body: bytes, sys_flag: int, size_bytes_max: int = BODY_UNPACKED_BYTES_MAX) -> bytes:
    """The body as it was sent; unchanged when the flag says that it is not packed."""
    if not sys_flag & SysFlag.COMPRESSED:
        return body
    kind = sys_flag & COMPRESSION_MASK
    try:
        if kind in (0, SysFlag.COMPRESSION_ZLIB):
            plain, complete = _unzlib(body, size_bytes_max)
        elif kind == SysFlag.COMPRESSION_LZ4:
            plain, complete = _unlz4(body, size_bytes_max)
        elif kind == SysFlag.COMPRESSION_ZSTD:
            plain, complete = _unzstd(body, size_bytes_max)
        else:
            raise MalformedRecord(f"the body is packed in an unknown way ({kind:#x})")
    except (zlib.error, RuntimeError, EOFError, zstandard.ZstdError) as error:
        raise MalformedRecord(f"the body does not unpack: {error}") from error
    if len(plain) > size_bytes_max:
        raise MalformedRecord(f"the body unpacks to more than {size_bytes_max} bytes")
    if not complete:
        raise MalformedRecord("the packed body is cut off")
    return plain


def unpacked_at_most(body: bytes, sys_flag: int, size_bytes_max: int = BODY_UNPACKED_BYTES_MAX) -> int:
    """How many bytes `unpack_body` may have made of a body that does not unpack, before it found that.

    So that whoever reads many of them can stop in time: such work leaves nothing behind that could be counted.
    """
    kind = sys_flag & COMPRESSION_MASK
    most = 0
    if kind in (0, SysFlag.COMPRESSION_ZLIB):
        looks_like_it = len(body) > 1 and body[0] & 15 == zlib.DEFLATED and (body[0] << 8 | body[1]) % 31 == 0
        most = ZLIB_RATIO * len(body) if looks_like_it else 0
    elif kind == SysFlag.COMPRESSION_LZ4:
        most = LZ4_RATIO * len(body) if body.startswith(LZ4_MAGIC) else 0
    elif kind == SysFlag.COMPRESSION_ZSTD:
        try:
            size = zstandard.frame_content_size(body)
        except zstandard.ZstdError:
            return 0
        most = ZSTD_RATIO * len(body)
        if size >= 0:
            most = (
                min(most, size) if size <= size_bytes_max else 0
            )  # what says that it is too large is not tried
    return min(most, size_bytes_max)


# Each returns at most one byte more than the limit, and whether the packed stream came to its end.


def _unzlib(body: bytes, limit: int) -> tuple[bytes, bool]:
    stream = zlib.decompressobj()
    plain = stream.decompress(body, limit + 1)
    return plain, stream.eof


def _unlz4(body: bytes, limit: int) -> tuple[bytes, bool]:
    stream = lz4.frame.LZ4FrameDecompressor()
    plain = bytes(stream.decompress(body, limit + 1))
    return plain, bool(stream.eof)


def _unzstd(body: bytes, limit: int) -> tuple[bytes, bool]:
    size = zstandard.frame_content_size(body)
    if size > limit:
        raise MalformedRecord(f"the body unpacks to more than {limit} bytes")
    if size >= 0:
        plain = zstandard.ZstdDecompressor().decompress(body, max_output_size=size)
        return plain, len(plain) == size
    with zstandard.ZstdDecompressor().stream_reader(body) as reader:  # the size is not written down
        plain = reader.read(limit + 1)
    if len(plain) > limit:
        return plain, True
    stream = zstandard.ZstdDecompressor().decompressobj()  # only this one tells whether the frame ended
    return stream.decompress(body), stream.eof
