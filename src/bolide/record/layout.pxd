# The bytes of a record for compiled code: the table of layout.py again, and the one walk over its parts that all
# compiled modules share.  Inline, so that each has its own copy.  tests/unit/record/test_layout.py compares the numbers
# with layout.py, tests/property/test_layout_twins.py the walks.

from libc.stdint cimport int32_t, int64_t, uint32_t

from bolide.model.big_endian cimport load16, load32, load64

cdef extern from *:
    """
    #define BOLIDE_MAGIC_V1 0xDAA320A7U
    #define BOLIDE_MAGIC_V2 0xDAA320ABU
    #define BOLIDE_MAGIC_BLANK 0xCBD43194U
    """
    const uint32_t MAGIC_V1 "BOLIDE_MAGIC_V1"
    const uint32_t MAGIC_V2 "BOLIDE_MAGIC_V2"
    const uint32_t MAGIC_BLANK "BOLIDE_MAGIC_BLANK"

cdef enum:
    # ---- before the hosts
    SIZE_AT = 0
    MAGIC_AT = 4
    BODY_CRC_AT = 8
    QUEUE_ID_AT = 12
    FLAG_AT = 16
    QUEUE_OFFSET_AT = 20
    LOG_OFFSET_AT = 28
    SYS_FLAG_AT = 36
    BORN_TIMESTAMP_AT = 40
    BORN_HOST_AT = 48
    # ---- between the hosts
    HOST_V4_BYTES = 8
    HOST_V6_BYTES = 20
    STORE_TIMESTAMP_BYTES = 8
    # ---- from the end of the store host
    RECONSUME_TIMES_AFTER = 0
    PREPARED_OFFSET_AFTER = 4
    BODY_LENGTH_AFTER = 12
    BODY_AFTER = 16
    # ---- behind the body
    TOPIC_V1_BYTES_MAX = 127
    PROPERTIES_LENGTH_BYTES = 2
    LENGTH_MAX = 0x7FFF
    NAME_END = 1
    PAIR_END = 2
    # ---- the whole
    FIXED_BYTES = 91
    BLANK_BYTES = 8
    # ---- the checksum of a record
    RECORD_CHECKSUM_NAME_BYTES = 9
    RECORD_CHECKSUM_DIGITS = 10
    RECORD_CHECKSUM_BYTES = 20
    CRC_MASK = 0x7FFFFFFF
    CHECK_LENGTHS = 0
    CHECK_SUMS = 1
    CHECK_SEALED = 2
    # ---- an element of a batch
    ITEM_SIZE_AT = 0
    ITEM_FLAG_AT = 12
    ITEM_BODY_LENGTH_AT = 16
    ITEM_BODY_AT = 20
    BATCH_ITEM_FIXED_BYTES = 22

cdef enum SysFlag:
    # The bits of model.message that compiled code looks at.
    COMPRESSED = 0x1
    PREPARED = 0x4
    ROLLBACK = 0xC
    TRANSACTION_MASK = 0xC
    BORN_HOST_V6 = 0x10
    STORE_HOST_V6 = 0x20
    NEED_UNWRAP = 0x40
    INNER_BATCH = 0x80


cdef struct RecordLook:
    # Where a record's parts are, relative to its first byte, and the numbers that most readers need.
    Py_ssize_t size
    int64_t queue_id
    int64_t queue_offset
    int64_t log_offset
    int64_t sys_flag
    Py_ssize_t born_host_length
    int64_t store_timestamp_ms
    Py_ssize_t store_host_at
    Py_ssize_t store_host_length
    Py_ssize_t store_host_end
    Py_ssize_t body_at
    Py_ssize_t body_length
    Py_ssize_t topic_at
    Py_ssize_t topic_length
    Py_ssize_t properties_at
    Py_ssize_t properties_length


cdef inline bint find_parts(const unsigned char* record, Py_ssize_t room, RecordLook* look) noexcept nogil:
    """Look into the record that begins here; False when there is none whose lengths agree within `room` bytes.

    Nothing is read before it is known to lie inside.  Checksums are not looked at.
    """
    cdef uint32_t magic
    cdef Py_ssize_t cursor
    if room < FIXED_BYTES:
        return False
    look.size = load32(record + SIZE_AT)
    magic = load32(record + MAGIC_AT)
    if (magic != MAGIC_V1 and magic != MAGIC_V2) or look.size < FIXED_BYTES or look.size > room:
        return False
    look.queue_id = <int32_t>load32(record + QUEUE_ID_AT)
    look.queue_offset = <int64_t>load64(record + QUEUE_OFFSET_AT)
    look.log_offset = <int64_t>load64(record + LOG_OFFSET_AT)
    look.sys_flag = <int32_t>load32(record + SYS_FLAG_AT)
    look.born_host_length = HOST_V6_BYTES if look.sys_flag & BORN_HOST_V6 else HOST_V4_BYTES
    look.store_host_length = HOST_V6_BYTES if look.sys_flag & STORE_HOST_V6 else HOST_V4_BYTES
    cursor = BORN_HOST_AT + look.born_host_length
    look.store_timestamp_ms = <int64_t>load64(record + cursor)
    look.store_host_at = cursor + STORE_TIMESTAMP_BYTES
    look.store_host_end = look.store_host_at + look.store_host_length
    look.body_at = look.store_host_end + BODY_AFTER
    if look.body_at > look.size:
        return False
    look.body_length = load32(record + look.store_host_end + BODY_LENGTH_AFTER)
    cursor = look.body_at + look.body_length
    look.topic_at = cursor + (1 if magic == MAGIC_V1 else 2)
    if look.topic_at > look.size:
        return False
    look.topic_length = record[cursor] if magic == MAGIC_V1 else load16(record + cursor)
    cursor = look.topic_at + look.topic_length
    look.properties_at = cursor + PROPERTIES_LENGTH_BYTES
    if look.properties_at > look.size:
        return False
    look.properties_length = load16(record + cursor)
    return look.properties_at + look.properties_length == look.size


cdef struct BatchItem:
    # One message of a batch body; places are relative to its first byte.
    Py_ssize_t size
    int64_t flag
    Py_ssize_t body_length
    Py_ssize_t properties_at
    Py_ssize_t properties_length


cdef inline bint find_item(const unsigned char* at, Py_ssize_t left, BatchItem* item) noexcept nogil:
    """Look into the message that begins here; False when its lengths do not agree within `left` bytes."""
    item.size = 0
    if left < BATCH_ITEM_FIXED_BYTES:
        return False
    item.size = load32(at + ITEM_SIZE_AT)
    item.flag = <int32_t>load32(at + ITEM_FLAG_AT)
    item.body_length = load32(at + ITEM_BODY_LENGTH_AT)
    if item.size > left or BATCH_ITEM_FIXED_BYTES + item.body_length > item.size:
        return False
    item.properties_at = BATCH_ITEM_FIXED_BYTES + item.body_length
    item.properties_length = load16(at + ITEM_BODY_AT + item.body_length)
    return item.properties_at + item.properties_length == item.size
