# The C-level face of the record codec, for compiled modules of rooms above.

from libc.stdint cimport int64_t

from bolide.record.layout cimport RecordLook

cdef struct RecordParts:
    const unsigned char* topic
    Py_ssize_t topic_length
    const unsigned char* body
    Py_ssize_t body_length
    # The property text is stored in three pieces, so that the broker can drop a pair and add its own.
    const unsigned char* properties
    Py_ssize_t cut_at             # the pair to leave out: [cut_at, cut_end)
    Py_ssize_t cut_end
    Py_ssize_t properties_length  # of the client's text, the cut included
    bint needs_separator          # the client left the last separator out
    const unsigned char* suffix
    Py_ssize_t suffix_length
    int64_t queue_id
    int64_t flag
    int64_t queue_offset
    int64_t log_offset
    int64_t sys_flag
    int64_t born_timestamp_ms
    const unsigned char* born_host
    Py_ssize_t born_host_length
    int64_t store_timestamp_ms
    const unsigned char* store_host
    Py_ssize_t store_host_length
    int64_t reconsume_times
    int64_t prepared_offset

cdef struct PropertyScan:
    bint plain                    # nothing in it needs the general path
    Py_ssize_t tags_at
    Py_ssize_t tags_length
    Py_ssize_t unique_key_at
    Py_ssize_t unique_key_length
    Py_ssize_t group_length       # of the producer group
    Py_ssize_t asked_at           # the pair that asks to wait, without its separator
    Py_ssize_t asked_length
    bint asks                     # there is one, and all others are plain
    Py_ssize_t wait_at            # the pair WAIT=true, which is not worth storing
    Py_ssize_t wait_end
    bint needs_separator

cdef enum:
    NOTHING_SOUND = 0
    BLANK_RECORD = 1
    SOUND_RECORD = 2

cdef int64_t hash_of(const unsigned char* text, Py_ssize_t length) noexcept nogil
cdef int check_parts(RecordParts* parts) except -1
cdef Py_ssize_t size_of(RecordParts* parts) noexcept nogil
cdef void write_record(unsigned char* to, RecordParts* parts) noexcept nogil
cdef void scan_properties(const unsigned char* text, Py_ssize_t length, PropertyScan* scan) noexcept nogil
cdef bint has_special(const unsigned char* text, Py_ssize_t length) noexcept nogil
cdef int look_at(const unsigned char* at, Py_ssize_t room, int check, RecordLook* look) noexcept nogil
cdef int64_t tags_code_at(const unsigned char* text, Py_ssize_t length) noexcept nogil
