# Queues by topic and number for compiled code that goes over the log: a slot each, found without a Python object.
# Those that share a slot with another one are looked up again by whoever asks.

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp, memcpy

cdef enum:
    SLOT_BITS = 15
    SLOTS = 1 << SLOT_BITS  # several times as many as a broker has queues


cdef struct QueueSlot:
    # A queue that was met before; whoever made the slot keeps alive what this points to.
    const unsigned char* topic
    Py_ssize_t topic_length
    int64_t queue_id
    void* owner  # NULL in a slot that nobody has
    int64_t place


cdef inline bint is_slot_of(
    QueueSlot* slot, const unsigned char* topic, Py_ssize_t length, int64_t queue_id
) noexcept nogil:
    return (
        slot.owner != NULL
        and slot.queue_id == queue_id
        and slot.topic_length == length
        and memcmp(slot.topic, topic, length) == 0
    )


cdef inline uint64_t slot_number(const unsigned char* topic, Py_ssize_t length, int64_t queue_id) noexcept nogil:
    """Spreads queues over the slots; looks at both ends of the name, which is where names differ."""
    cdef uint64_t head = 0, tail = 0
    cdef Py_ssize_t part = length if length < 8 else 8
    memcpy(&head, topic, part)
    memcpy(&tail, topic + length - part, part)
    head = (head ^ <uint64_t>queue_id * 0x9E3779B97F4A7C15U) * 0xBF58476D1CE4E5B9U
    head = (head ^ (head >> 29) ^ tail ^ <uint64_t>length) * 0x94D049BB133111EBU
    return head >> (64 - SLOT_BITS)  # the upper bits depend on all others


cdef inline QueueSlot* find_slot(
    QueueSlot* slots, const unsigned char* topic, Py_ssize_t length, int64_t queue_id
) noexcept nogil:
    """The slot of the queue, or one that it may have, or one that another queue has: there are two to try."""
    cdef uint64_t number = slot_number(topic, length, queue_id)
    if slots[number].owner == NULL or is_slot_of(&slots[number], topic, length, queue_id):
        return &slots[number]
    return &slots[number ^ 1]
