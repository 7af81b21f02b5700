# The numbers of queue_entry.py for compiled code; tests/unit/store/test_layouts.py compares the two.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from bolide.model.big_endian cimport load32, load64, store32, store64

cdef enum:
    ENTRY_BYTES = 20
    LOG_OFFSET_AT = 0
    SIZE_AT = 8
    TAGS_CODE_AT = 12
    GAP_SIZE = 0x7FFFFFFF


cdef struct QueueEntry:
    int64_t log_offset
    int64_t size
    int64_t tags_code


cdef inline QueueEntry load_entry(const unsigned char* at) noexcept nogil:
    cdef QueueEntry entry
    entry.log_offset = <int64_t>load64(at + LOG_OFFSET_AT)
    entry.size = <int32_t>load32(at + SIZE_AT)
    entry.tags_code = <int64_t>load64(at + TAGS_CODE_AT)
    return entry


cdef inline void store_entry(unsigned char* at, int64_t log_offset, int64_t size, int64_t tags_code) noexcept nogil:
    store64(at + LOG_OFFSET_AT, <uint64_t>log_offset)
    store32(at + SIZE_AT, <uint32_t>size)
    store64(at + TAGS_CODE_AT, <uint64_t>tags_code)
