# The fields of a NewMessage for compiled code, in their order; tests/property/test_encode_twins.py compares the two.

from libc.stdint cimport int64_t

from bolide.record.layout cimport PREPARED, ROLLBACK, TRANSACTION_MASK

cdef enum:
    TOPIC = 0
    QUEUE_ID = 1
    BODY = 2
    PROPERTIES = 3
    FLAG = 4
    SYS_FLAG = 5
    BORN_TIMESTAMP = 6
    BORN_HOST = 7
    RECONSUME_TIMES = 8
    PREPARED_OFFSET = 9
    TAGS_CODE = 10


cdef inline bint has_entry(int64_t sys_flag) noexcept nogil:
    return sys_flag & TRANSACTION_MASK != PREPARED and sys_flag & TRANSACTION_MASK != ROLLBACK
