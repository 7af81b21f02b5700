# Where messages wait that ask for it, and what is written into them.

cdef enum:
    ASKED_BYTES_MAX = 64      # of the pair that asks to wait
    ASKED_PER_RUN = 16        # decisions that are made in one go
    HAS_GROUP = 1
    SUFFIX_BYTES_MAX = 1024   # of what the broker writes behind the pairs of a message that waits


cdef class Detour:
    cdef QueueTail tail
    cdef bytes topic
    cdef int64_t queue_id
    cdef bytes key_name
    cdef bytes pairs
    cdef int64_t delay_ms
    cdef bytes handle
    cdef int64_t properties_bytes_max
    cdef int64_t size_bytes_max

    def __cinit__(
        self,
        QueueTail tail not None,
        bytes key_name not None,
        bytes pairs not None,
        int64_t delay_ms,
        bytes handle not None,
        int64_t properties_bytes_max,
        int64_t size_bytes_max,
    ):
        self.tail = tail
        self.topic = tail.key[0].encode()
        self.queue_id = tail.key[1]
        self.key_name = key_name
        self.pairs = pairs
        self.delay_ms = delay_ms
        self.handle = handle
        self.properties_bytes_max = properties_bytes_max
        self.size_bytes_max = size_bytes_max


cdef bint is_text(RecordParts* parts) except -1:
    """Whether the properties are UTF-8."""
    cdef Py_ssize_t at
    cdef unsigned char high = 0
    for at in range(parts.properties_length):
        high |= parts.properties[at]
    if high < 0x80:
        return True
    try:
        PyUnicode_DecodeUTF8(<const char*>parts.properties, parts.properties_length, NULL)
    except UnicodeDecodeError:
        return False
    return True


cdef bytes key_of_detour(RecordParts* parts, PropertyScan* scan):
    """What decides where a message waits: the pair that asks for it, whether it names a group, and of which part of a
    transaction it is."""
    cdef unsigned char[1 + ASKED_BYTES_MAX] key
    key[0] = <unsigned char>((parts.sys_flag & TRANSACTION_MASK) | (HAS_GROUP if scan.group_length else 0))
    memcpy(&key[1], parts.properties + scan.asked_at, scan.asked_length)
    return PyBytes_FromStringAndSize(<const char*>key, 1 + scan.asked_length)


cdef bint fits_detour(RecordParts* parts, Detour detour, Py_ssize_t checksum_bytes) noexcept:
    """Whether there is room for what is written later; the general path knows how much there has to be."""
    cdef Py_ssize_t stored = (
        parts.properties_length - (parts.cut_end - parts.cut_at) + (1 if parts.needs_separator else 0)
        + parts.suffix_length - checksum_bytes
    )
    return stored <= detour.properties_bytes_max and stored + parts.body_length <= detour.size_bytes_max


cdef Py_ssize_t suffix_of_detour(
    unsigned char* to,
    Detour detour,
    RecordParts* parts,
    PropertyScan* scan,
    int64_t queue_id,
    bytes suffix,
    Py_ssize_t checksum_bytes,
) noexcept:
    """What is written behind the pairs of a message that waits: our own, its key, where it was meant to go."""
    cdef Py_ssize_t own = PyBytes_GET_SIZE(suffix) - checksum_bytes
    cdef Py_ssize_t named = PyBytes_GET_SIZE(detour.key_name), pairs = PyBytes_GET_SIZE(detour.pairs)
    cdef unsigned char* at = to
    if own + named + scan.unique_key_length + pairs + 22 + checksum_bytes > SUFFIX_BYTES_MAX:
        return -1
    at = put_bytes(at, <const unsigned char*>PyBytes_AS_STRING(suffix), own)
    if named:
        at = put_bytes(at, <const unsigned char*>PyBytes_AS_STRING(detour.key_name), named)
        at = put_bytes(at, parts.properties + scan.unique_key_at, scan.unique_key_length)
        at[0] = PAIR_END
        at += 1
    at = put_bytes(at, <const unsigned char*>PyBytes_AS_STRING(detour.pairs), pairs)
    at = put_digits(at, queue_id)
    at[0] = PAIR_END
    return put_bytes(at + 1, NO_CHECKSUM_YET, checksum_bytes) - to


cdef Py_ssize_t length_of_handle(Detour detour, Py_ssize_t key_length) noexcept:
    """Of the text by which its sender may call a message back; 0 when there is none."""
    cdef Py_ssize_t length = PyBytes_GET_SIZE(detour.handle)
    return base64_length(length + key_length) if length else 0


cdef void put_handle(
    unsigned char* to, Detour detour, const unsigned char* key, Py_ssize_t key_length
) noexcept:
    cdef const unsigned char* begin = <const unsigned char*>PyBytes_AS_STRING(detour.handle)
    put_base64(to, begin, PyBytes_GET_SIZE(detour.handle), key, key_length)
