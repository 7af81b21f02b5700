"""The compiled twin of walk_twin.py: from record to record through a segment, each checked and given to its queue."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp

from bolide.record._codec cimport (
    BLANK_RECORD,
    SOUND_RECORD,
    look_at,
    tags_code_at,
)
from bolide.record.layout cimport PREPARED, ROLLBACK, TRANSACTION_MASK, RecordLook
from bolide.store._append cimport QueueTail
from bolide.store.queue_slots cimport SLOTS, QueueSlot, find_slot, is_slot_of

LIMIT = 0
BLANK = 1
UNSOUND = 2

cdef enum:
    C_LIMIT = 0
    C_BLANK = 1
    C_UNSOUND = 2
    SECTOR_BYTES = 512
    LOST_ZEROS = 2

cdef int64_t EARLIEST_MS = 1LL << 32


cdef bint is_lost(const unsigned char* at, Py_ssize_t length) noexcept nogil:
    """Whether it ends in zeros, and not just in a few that may be text; its last byte mostly tells."""
    cdef Py_ssize_t place
    for place in range(length - 1, max(-1, length - 1 - LOST_ZEROS), -1):
        if at[place] != 0:
            return False
    return True


cdef bint is_whole(const unsigned char* record, RecordLook* look, Py_ssize_t position) noexcept nogil:
    """Whether all of the record reached the disk, as far as that can be told where the body's checksum does not."""
    cdef Py_ssize_t begin = look.properties_at, sector_end
    if look.store_timestamp_ms < EARLIEST_MS:
        return False
    if look.properties_length == 0:
        return True
    sector_end = look.properties_at + SECTOR_BYTES - (position + look.properties_at) % SECTOR_BYTES
    while sector_end < look.size:
        if is_lost(record + begin, sector_end - begin):
            return False
        begin = sector_end
        sector_end += SECTOR_BYTES
    return not is_lost(record + begin, look.size - begin)


cdef bytes SCHEDULE_TOPIC = b"SCHEDULE_TOPIC_XXXX"


cdef class LogWalk:
    cdef object find
    cdef object mend
    cdef object deliver
    cdef dict deleted  # places in the log by topic
    cdef int64_t deleted_end  # no place lies behind this one
    cdef QueueSlot* slots
    cdef list kept  # what the slots point to
    cdef readonly int64_t records
    cdef readonly int64_t entries
    cdef readonly int64_t last_record
    cdef readonly int64_t store_timestamp_ms

    def __cinit__(self, find, mend, deliver=None, deleted=None):
        self.find = find
        self.mend = mend
        self.deliver = deliver
        self.deleted = dict(deleted or {})
        self.deleted_end = max(self.deleted.values(), default=0)
        self.kept = []
        self.slots = <QueueSlot*>calloc(SLOTS, sizeof(QueueSlot))
        if self.slots == NULL:
            raise MemoryError()
        self.last_record = -1

    def __dealloc__(self):
        free(self.slots)

    def go(
        self,
        const unsigned char[::1] segment,
        int64_t base,
        Py_ssize_t position,
        Py_ssize_t limit,
        bint check_crc,
    ):
        cdef RecordLook look
        cdef const unsigned char* record
        cdef Py_ssize_t end = segment.shape[0]
        cdef int found
        if position < 0:
            raise ValueError("a position is not negative")
        while position < limit:
            if position >= end:
                return position, C_UNSOUND
            record = &segment[0] + position
            found = look_at(record, end - position, check_crc, &look)
            if found == BLANK_RECORD:
                return position, C_BLANK if look.size == end - position else C_UNSOUND
            if found != SOUND_RECORD or look.log_offset != base + position:
                return position, C_UNSOUND
            if not is_whole(record, &look, position) or not self.give(record, &look):
                return position, C_UNSOUND
            self.records += 1
            self.last_record = look.log_offset
            self.store_timestamp_ms = look.store_timestamp_ms
            position += look.size
        return position, C_LIMIT

    cdef bint give(self, const unsigned char* record, RecordLook* look) except -1:
        """Give a record to its queue; False when its topic is no name."""
        cdef int64_t transaction = look.sys_flag & TRANSACTION_MASK
        cdef QueueTail tail
        if look.log_offset < self.deleted_end and self.is_deleted(record, look):
            return True
        tail = self.tail_of(record + look.topic_at, look.topic_length, look.queue_id)
        if tail is None:
            return False
        if transaction == PREPARED or transaction == ROLLBACK:
            return True
        if look.queue_offset == tail.next_offset or self.mend(tail, look.queue_offset, look.log_offset):
            tail.push(look.log_offset, look.size, self.code_of(tail, record, look))
            self.entries += 1
        return True

    cdef bint is_deleted(self, const unsigned char* record, RecordLook* look) except -1:
        """Whether a record is older than the deletion of its topic."""
        cdef bytes topic = PyBytes_FromStringAndSize(<const char*>record + look.topic_at, look.topic_length)
        cdef int64_t place = self.deleted.get(topic, 0)
        return look.log_offset < place

    cdef int64_t code_of(self, QueueTail tail, const unsigned char* record, RecordLook* look) except? -1:
        """The hash of the tags, or for a delayed message the time of its delivery."""
        cdef const unsigned char* properties = record + look.properties_at
        cdef Py_ssize_t length = len(SCHEDULE_TOPIC)
        if (
            look.topic_length != length
            or memcmp(record + look.topic_at, PyBytes_AS_STRING(SCHEDULE_TOPIC), length) != 0
            or self.deliver is None
        ):
            return tags_code_at(properties, look.properties_length)
        return self.deliver(
            tail,
            PyBytes_FromStringAndSize(<const char*>properties, look.properties_length),
            look.store_timestamp_ms,
            look.log_offset,
            look.size,
        )

    cdef QueueTail tail_of(self, const unsigned char* topic, Py_ssize_t length, int64_t queue_id):
        cdef QueueSlot* slot = find_slot(self.slots, topic, length, queue_id)
        if is_slot_of(slot, topic, length, queue_id):
            return <QueueTail>slot.owner
        cdef bytes name = PyBytes_FromStringAndSize(<const char*>topic, length)
        cdef QueueTail tail = self.find(name, queue_id)
        if tail is not None and slot.owner == NULL:
            self.kept.append((name, tail))
            slot.topic = <const unsigned char*>PyBytes_AS_STRING(name)
            slot.topic_length = length
            slot.queue_id = queue_id
            slot.owner = <void*>tail
        return tail
