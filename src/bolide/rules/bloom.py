"""Which bits of the original's bloom maps belong to a subscription.

Nobody here looks at such maps (docs/decisions/0017).  The positions stand in `consumerFilter.json` all the same: the
original takes none of the file when they are not the ones that it would compute.
"""

BITS = 112
"""For 32 groups at an error rate of 20 %: `expectConsumerNumUseFilter` and `maxErrorRateOfBloomFilter`."""
POSITIONS = 3

_64, _32, _SIGN = 2**64 - 1, 2**32 - 1, 2**31
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
_BLOCK = 16


def bit_positions(group: str, topic: str) -> list[int]:
    """The bits of this group's subscription to this topic.

    >>> bit_positions("billing", "OrderTopic")
    [35, 37, 78]
    """
    hashed = murmur3(f"{group}#{topic}".encode())
    first, second = hashed & _32, hashed >> 32
    sums = ((first + at * second) & _32 for at in range(1, POSITIONS + 1))
    return [(one ^ _32 if one & _SIGN else one) % BITS for one in sums]


def murmur3(data: bytes) -> int:
    """The first half of the 128-bit hash (MurmurHash3_x64_128) with the seed 0.

    >>> hex(murmur3(b"hello"))
    '0xcbd8a7b341bd9b02'
    """
    whole = len(data) - len(data) % _BLOCK
    h1 = h2 = 0
    for at in range(0, whole, _BLOCK):
        h1 ^= _mix(int.from_bytes(data[at : at + 8], "little"), _C1, 31, _C2)
        h1 = ((_rotate(h1, 27) + h2) * 5 + 0x52DCE729) & _64
        h2 ^= _mix(int.from_bytes(data[at + 8 : at + 16], "little"), _C2, 33, _C1)
        h2 = ((_rotate(h2, 31) + h1) * 5 + 0x38495AB5) & _64
    tail = data[whole:]
    h2 ^= _mix(int.from_bytes(tail[8:], "little"), _C2, 33, _C1)
    h1 ^= _mix(int.from_bytes(tail[:8], "little"), _C1, 31, _C2)
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & _64
    h2 = (h2 + h1) & _64
    return (_finish(h1) + _finish(h2)) & _64


def _mix(word: int, before: int, turn: int, after: int) -> int:
    return _rotate(word * before & _64, turn) * after & _64


def _rotate(word: int, turn: int) -> int:
    return (word << turn | word >> (64 - turn)) & _64


def _finish(word: int) -> int:
    word = (word ^ word >> 33) * 0xFF51AFD7ED558CCD & _64
    word = (word ^ word >> 33) * 0xC4CEB9FE1A85EC53 & _64
    return word ^ word >> 33
