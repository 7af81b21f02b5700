# The C-level face of the checksums of a record, for compiled modules of this room and above.

from libc.stdint cimport uint32_t

cdef enum:
    # What the end of a record says.
    CHECKSUM_ABSENT = 0
    CHECKSUM_SOUND = 1
    CHECKSUM_DAMAGED = 2

cdef uint32_t crc32_of(const unsigned char* data, Py_ssize_t length) noexcept nogil
cdef void write_checksum(unsigned char* record, Py_ssize_t size) noexcept nogil
cdef int checksum_state(const unsigned char* record, Py_ssize_t size) noexcept nogil
cdef bint holds(
    const unsigned char* record, Py_ssize_t size, Py_ssize_t body_at, Py_ssize_t body_length, int check
) noexcept nogil
