# The C-level face of the append, for compiled modules of this room: what gives entries to queues.

from libc.stdint cimport int64_t

cdef class QueueTail:
    cdef public object key
    cdef public object owner
    cdef public int64_t next_offset
    cdef public int64_t start
    cdef public bint touched
    cdef unsigned char* data
    cdef Py_ssize_t capacity  # in entries

    cdef int push(self, int64_t log_offset, int64_t size, int64_t tags_code) except -1
    cdef void shrink(self) noexcept
