# The queues of an append: the newest entries of each, and the lane of a topic.


cdef class QueueTail:  # its fields are in the .pxd
    def __cinit__(self, key, int64_t next_offset, owner):
        self.key = key
        self.owner = owner
        self.next_offset = next_offset
        self.start = next_offset
        self.touched = False
        self.data = NULL
        self.capacity = 0

    def __dealloc__(self):
        free(self.data)

    cdef int push(self, int64_t log_offset, int64_t size, int64_t tags_code) except -1:
        cdef Py_ssize_t used = self.next_offset - self.start
        cdef Py_ssize_t capacity
        cdef unsigned char* data
        if used == self.capacity:
            capacity = self.capacity * 2 if self.capacity else ENTRIES_AT_FIRST
            data = <unsigned char*>realloc(self.data, capacity * ENTRY_BYTES)
            if data == NULL:
                raise MemoryError()
            self.data = data
            self.capacity = capacity
        store_entry(self.data + used * ENTRY_BYTES, log_offset, size, tags_code)
        self.next_offset += 1
        return 0

    def append(self, int64_t log_offset, int64_t size, int64_t tags_code):
        self.push(log_offset, size, tags_code)

    def entries(self, int64_t first, int64_t last):
        assert self.start <= first <= last <= self.next_offset
        return PyBytes_FromStringAndSize(
            <const char*>self.data + (first - self.start) * ENTRY_BYTES, (last - first) * ENTRY_BYTES
        )

    def drop_before(self, int64_t offset):
        assert self.start <= offset <= self.next_offset
        cdef Py_ssize_t left = self.next_offset - offset
        if left:
            memmove(self.data, self.data + (offset - self.start) * ENTRY_BYTES, left * ENTRY_BYTES)
        else:
            self.shrink()
        self.start = offset

    cdef void shrink(self) noexcept:
        """Nothing is in memory any more: a burst has passed."""
        if self.capacity > ENTRIES_KEPT:
            free(self.data)
            self.data = NULL
            self.capacity = 0

    def reset(self, int64_t next_offset):
        self.start = self.next_offset = next_offset


cdef class TopicLane:
    cdef readonly bytes topic
    cdef readonly list tails
    cdef readonly int64_t write_queues
    cdef readonly int64_t missing
    cdef readonly dict detours
    cdef int64_t turn

    def __cinit__(self, bytes topic, tails, int64_t write_queues):
        self.topic = topic
        self.tails = list(tails)
        if not 1 <= write_queues <= len(self.tails):
            raise ValueError(f"{write_queues} of {len(self.tails)} queues to write to")
        self.write_queues = write_queues
        self.missing = -1
        self.detours = {}
        self.turn = 0

    def open_missing(self, QueueTail tail not None):
        self.tails[self.missing] = tail
