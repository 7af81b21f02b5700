"""Java's `String.hashCode`, which RocketMQ stores for tags and index keys."""


def java_hash(text: str) -> int:
    """h = 31 * h + unit over UTF-16 code units, kept to 32 bits, signed."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value
