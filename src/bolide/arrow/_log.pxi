# Part of _columns.pyx: which records of a log are wanted.

cdef enum:
    C_DONE = 0
    C_CUT_OFF = 1
    C_BLANK = 2
    C_UNSOUND = 3


@cython.final
cdef class LogFilter:
    """See the twin."""

    cdef object opens_at
    cdef readonly int64_t since_ms
    cdef readonly int64_t until_ms
    cdef QueueSlot* slots
    cdef list kept  # names that the slots point to

    def __cinit__(self, opens_at, *, since_ms=0, until_ms=TIME_MS_END):
        self.opens_at = opens_at
        self.since_ms = since_ms
        self.until_ms = until_ms
        self.kept = []
        self.slots = <QueueSlot*>calloc(SLOTS, sizeof(QueueSlot))
        if self.slots == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.slots)

    cdef bint takes(self, Bytes record, RecordLook* look) except -1:
        cdef int64_t transaction = look.sys_flag & TRANSACTION_MASK
        if transaction == PREPARED or transaction == ROLLBACK:
            return False
        if not self.since_ms <= look.store_timestamp_ms < self.until_ms:
            return False
        return look.log_offset >= self.place_of(record + look.topic_at, look.topic_length, look.queue_id)

    cdef int64_t place_of(self, Bytes topic, Py_ssize_t length, int64_t queue_id) except? -1:
        cdef QueueSlot* slot = find_slot(self.slots, topic, length, queue_id)
        if is_slot_of(slot, topic, length, queue_id):
            return slot.place
        cdef bytes name = PyBytes_FromStringAndSize(<const char*>topic, length)
        cdef int64_t place = self.opens_at(name, queue_id)
        if slot.owner == NULL:
            self.kept.append(name)
            slot.topic = <Bytes>PyBytes_AS_STRING(name)
            slot.topic_length = length
            slot.queue_id = queue_id
            slot.owner = <void*>name
            slot.place = place
        return place


cdef int look_into_log(Bytes at, Py_ssize_t room, int64_t place, RecordLook* look) noexcept nogil:
    """C_DONE for a record that belongs where it is; checksums are not looked at."""
    cdef uint32_t magic
    if room < BLANK_BYTES:
        return C_CUT_OFF
    magic = load32(at + MAGIC_AT)
    if magic == MAGIC_BLANK:
        return C_BLANK
    if magic != MAGIC_V1 and magic != MAGIC_V2:
        return C_UNSOUND
    if find_parts(at, room, look):
        return C_DONE if look.log_offset == place else C_UNSOUND
    return C_CUT_OFF if load32(at + SIZE_AT) > <uint32_t>room or room < FIXED_BYTES else C_UNSOUND
