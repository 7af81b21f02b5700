"""Java's `String.hashCode`, which RocketMQ stores for tags and index keys."""

import sys

_UTF_16 = (
    f"utf-16-{'le' if sys.byteorder == 'little' else 'be'}"  # whose units this machine reads as they are
)


def java_hash(text: str) -> int:
    """h = 31 * h + unit over UTF-16 code units, kept to 32 bits, signed."""
    value = 0
    for unit in memoryview(text.encode(_UTF_16, "surrogatepass")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value
