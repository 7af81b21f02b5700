"""The compiled twin of checksum_twin.py; its .pxd is what other compiled modules use."""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from bolide.model.big_endian cimport load32
from bolide.record.layout cimport (
    BODY_CRC_AT,
    CHECK_LENGTHS,
    CHECK_SEALED,
    CRC_MASK,
    FIXED_BYTES,
    PAIR_END,
    RECORD_CHECKSUM_BYTES,
    RECORD_CHECKSUM_DIGITS,
    RECORD_CHECKSUM_NAME_BYTES,
)
from bolide.record.layout import RECORD_CHECKSUM_NAME

ABSENT = CHECKSUM_ABSENT
SOUND = CHECKSUM_SOUND
DAMAGED = CHECKSUM_DAMAGED

cdef enum:
    NAME_BYTES_ALIKE = 6
    FOLD_BYTES_LEAST = 64

# ---- CRC-32, eight bytes at a time ----------------------------------------------------------------------------

cdef uint32_t POLYNOMIAL = 0xEDB88320U
cdef uint32_t CRC[8][256]


cdef void build_tables() noexcept nogil:
    cdef uint32_t value
    cdef int byte, bit, table
    for byte in range(256):
        value = byte
        for bit in range(8):
            value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0U)
        CRC[0][byte] = value
    for byte in range(256):
        for table in range(1, 8):
            CRC[table][byte] = (CRC[table - 1][byte] >> 8) ^ CRC[0][CRC[table - 1][byte] & 0xFF]


cdef uint32_t by_tables(uint32_t value, const unsigned char* data, Py_ssize_t length) noexcept nogil:
    cdef uint32_t low, high
    while length >= 8:
        # Little-endian words, whatever the machine: the table order follows the bytes.
        low = (data[0] | (<uint32_t>data[1] << 8) | (<uint32_t>data[2] << 16) | (<uint32_t>data[3] << 24)) ^ value
        high = data[4] | (<uint32_t>data[5] << 8) | (<uint32_t>data[6] << 16) | (<uint32_t>data[7] << 24)
        value = (
            CRC[7][low & 0xFF] ^ CRC[6][(low >> 8) & 0xFF] ^ CRC[5][(low >> 16) & 0xFF] ^ CRC[4][low >> 24]
            ^ CRC[3][high & 0xFF] ^ CRC[2][(high >> 8) & 0xFF] ^ CRC[1][(high >> 16) & 0xFF] ^ CRC[0][high >> 24]
        )
        data += 8
        length -= 8
    while length > 0:
        value = (value >> 8) ^ CRC[0][(value ^ data[0]) & 0xFF]
        data += 1
        length -= 1
    return value


# ---- CRC-32, sixty-four bytes at a time -----------------------------------------------------------------------
#
# A checksum is a remainder of polynomials without carries, and x86-64 multiplies those in one instruction.  Bytes far
# from the end are folded onto bytes nearer to it: multiplied by the remainder of x to the power of the distance, which
# leaves the remainder of the whole as it is.  The last sixteen bytes go through the tables.

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <immintrin.h>
    #define BOLIDE_CAN_FOLD() (__builtin_cpu_supports("pclmul") != 0)
    #define BOLIDE_FOLDS __attribute__((target("pclmul")))

    BOLIDE_FOLDS static inline __m128i bolide_forward(__m128i block, __m128i keys) {
        return _mm_xor_si128(_mm_clmulepi64_si128(block, keys, 0x00), _mm_clmulepi64_si128(block, keys, 0x11));
    }

    BOLIDE_FOLDS static inline __m128i bolide_block(const unsigned char *at) {
        return _mm_loadu_si128((const __m128i *)at);
    }

    BOLIDE_FOLDS static void bolide_fold(
        uint32_t value, const unsigned char *at, Py_ssize_t length, const uint64_t *keys, unsigned char *left
    ) {
        __m128i far = _mm_loadu_si128((const __m128i *)keys), near = _mm_loadu_si128((const __m128i *)(keys + 2));
        __m128i a = _mm_xor_si128(bolide_block(at), _mm_cvtsi32_si128((int)value));
        __m128i b = bolide_block(at + 16), c = bolide_block(at + 32), d = bolide_block(at + 48);
        for (at += 64, length -= 64; length >= 64; at += 64, length -= 64) {
            a = _mm_xor_si128(bolide_forward(a, far), bolide_block(at));
            b = _mm_xor_si128(bolide_forward(b, far), bolide_block(at + 16));
            c = _mm_xor_si128(bolide_forward(c, far), bolide_block(at + 32));
            d = _mm_xor_si128(bolide_forward(d, far), bolide_block(at + 48));
        }
        b = _mm_xor_si128(bolide_forward(a, near), b);
        c = _mm_xor_si128(bolide_forward(b, near), c);
        d = _mm_xor_si128(bolide_forward(c, near), d);
        for (; length >= 16; at += 16, length -= 16)
            d = _mm_xor_si128(bolide_forward(d, near), bolide_block(at));
        _mm_storeu_si128((__m128i *)left, d);
    }
    #else
    #define BOLIDE_CAN_FOLD() 0
    #define bolide_fold(value, at, length, keys, left) ((void)0)
    #endif
    """
    bint BOLIDE_CAN_FOLD() nogil
    void bolide_fold(
        uint32_t value, const unsigned char* at, Py_ssize_t length, const uint64_t* keys, unsigned char* left
    ) nogil

cdef uint64_t KEYS[4]  # for a distance of four blocks, then of one; the low half of a block has 64 bits further to go
cdef bint FOLDS = False


cdef uint64_t power_of_x(int exponent) noexcept nogil:
    """The remainder of x to this power, bits reversed, as the multiplication of reversed blocks needs it."""
    cdef uint32_t value = 0x80000000U
    cdef int number
    for number in range(exponent):
        value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0U)
    return <uint64_t>value << 1


cdef void build() noexcept nogil:
    global FOLDS
    build_tables()
    KEYS[0] = power_of_x(4 * 128 + 32)
    KEYS[1] = power_of_x(4 * 128 - 32)
    KEYS[2] = power_of_x(128 + 32)
    KEYS[3] = power_of_x(128 - 32)
    FOLDS = BOLIDE_CAN_FOLD()


build()


cdef uint32_t crc32_of(const unsigned char* data, Py_ssize_t length) noexcept nogil:
    """The masked checksum that records carry."""
    cdef uint32_t value = 0xFFFFFFFFU
    cdef unsigned char left[16]
    cdef Py_ssize_t folded
    if FOLDS and length >= FOLD_BYTES_LEAST:
        folded = length & ~<Py_ssize_t>15
        bolide_fold(value, data, folded, KEYS, left)
        value = by_tables(0, left, 16)
        data += folded
        length -= folded
    return ~by_tables(value, data, length) & <uint32_t>CRC_MASK


# ---- the checksum of a whole record ---------------------------------------------------------------------------

cdef bytes CHECKSUM_NAME = RECORD_CHECKSUM_NAME
cdef const unsigned char* NAME = CHECKSUM_NAME


cdef void write_checksum(unsigned char* record, Py_ssize_t size) noexcept nogil:
    """Fill in the last bytes of a record; everything before them must be in place."""
    cdef unsigned char* to = record + size - RECORD_CHECKSUM_BYTES
    cdef uint32_t value = crc32_of(record, size - RECORD_CHECKSUM_BYTES)
    cdef int number
    memcpy(to, NAME, RECORD_CHECKSUM_NAME_BYTES)
    to += RECORD_CHECKSUM_NAME_BYTES
    for number in range(RECORD_CHECKSUM_DIGITS):
        to[number] = <unsigned char>(c'0' + value % 10)
        value //= 10
    to[RECORD_CHECKSUM_DIGITS] = PAIR_END


cdef int checksum_state(const unsigned char* record, Py_ssize_t size) noexcept nogil:
    """Whether the record has a checksum of its own, and whether it is right."""
    cdef const unsigned char* at = record + size - RECORD_CHECKSUM_BYTES
    cdef const unsigned char* digits = at + RECORD_CHECKSUM_NAME_BYTES
    cdef int number, alike = 0
    cdef uint64_t value = 0
    cdef bint is_number
    if size < FIXED_BYTES + RECORD_CHECKSUM_BYTES:
        return CHECKSUM_ABSENT
    for number in range(RECORD_CHECKSUM_NAME_BYTES):
        alike += at[number] == NAME[number]
    is_number = digits[RECORD_CHECKSUM_DIGITS] == PAIR_END
    for number in range(RECORD_CHECKSUM_DIGITS - 1, -1, -1):
        is_number = is_number and c'0' <= digits[number] <= c'9'
        value = value * 10 + digits[number] - c'0'
    if is_number and value == crc32_of(record, size - RECORD_CHECKSUM_BYTES):
        return CHECKSUM_SOUND if alike == RECORD_CHECKSUM_NAME_BYTES else CHECKSUM_DAMAGED
    return CHECKSUM_DAMAGED if alike >= NAME_BYTES_ALIKE else CHECKSUM_ABSENT


cdef bint holds(
    const unsigned char* record, Py_ssize_t size, Py_ssize_t body_at, Py_ssize_t body_length, int check
) noexcept nogil:
    """Whether the checksums of record and body, as far as `check` asks for them, are right."""
    cdef int state
    if check == CHECK_LENGTHS:
        return True
    state = checksum_state(record, size)
    if state == CHECKSUM_DAMAGED or (state == CHECKSUM_ABSENT and check == CHECK_SEALED):
        return False
    if body_length == 0 or state == CHECKSUM_SOUND:  # what covers the record covers the body
        return True
    return crc32_of(record + body_at, body_length) == load32(record + BODY_CRC_AT)


# ---- for Python -----------------------------------------------------------------------------------------------

def masked_crc32(const unsigned char[::1] data):
    return crc32_of(&data[0], data.shape[0]) if data.shape[0] else 0


def seal_record(bytearray record not None):
    if len(record) < FIXED_BYTES + RECORD_CHECKSUM_BYTES:
        raise ValueError("no room for a checksum")
    write_checksum(<unsigned char*><char*>record, len(record))


def record_checksum(const unsigned char[::1] record):
    return checksum_state(&record[0], record.shape[0]) if record.shape[0] else CHECKSUM_ABSENT
