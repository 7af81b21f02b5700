"""The compiled twin of filing_twin.py: timed messages into the timer's index."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp

from bolide.model.big_endian cimport load32, load64, store32, store64
from bolide.model.pair_walk cimport NameText, digits_of, fill_names, find_byte, which_name
from bolide.record._codec cimport SOUND_RECORD, hash_of, look_at
from bolide.record.layout cimport NAME_END, PAIR_END, RecordLook
from bolide.store.queue_entry cimport ENTRY_BYTES, QueueEntry, load_entry
from bolide.store.timer.layout cimport DUE, SLOT_BYTES, UNIT_BYTES

from bolide.model.message import Property
from bolide.model.names import TIMER_TOPIC
from bolide.store.timer.filing_twin import DIGITS_MAX as _DIGITS_MAX
from bolide.store.timer.wheel import PAGE_BYTES as _PAGE_BYTES

cdef bytes TOPIC = TIMER_TOPIC.encode()
cdef int64_t PAGE_BYTES = _PAGE_BYTES
cdef Py_ssize_t DIGITS_MAX = _DIGITS_MAX
cdef int64_t TIME_END = 10**_DIGITS_MAX

cdef enum:
    NOWHERE = -1
    INT32_MAX = 0x7FFFFFFF
    # The properties that count.
    OUT_MS = 0
    REAL_TOPIC = 1
    DELETE_KEY = 2
    DELAY_SEC = 3
    DELAY_MS = 4
    DELIVER_MS = 5
    NAMES = 6

cdef list TEXTS = [
    name.encode()
    for name in (
        Property.TIMER_OUT_MS,
        Property.REAL_TOPIC,
        Property.TIMER_DELETE_KEY,
        Property.TIMER_DELAY_SEC,
        Property.TIMER_DELAY_MS,
        Property.TIMER_DELIVER_MS,
    )
]
cdef NameText KNOWN[NAMES]

fill_names(KNOWN, TEXTS)


cdef struct Due:
    int64_t time_ms
    const unsigned char* topic
    Py_ssize_t topic_length


def file_plain(
    bytes entries not None,
    Py_ssize_t first,
    int64_t queue_offset,
    log,
    int64_t base,
    int64_t log_end,
    int check,
    unsigned char[::1] slots not None,
    set dirty not None,
    int64_t units_at,
    Py_ssize_t units_max,
    int64_t read_ms,
    int64_t step_ms,
    int64_t window_ms,
):
    cdef Py_ssize_t number, count = 0, last = min(len(entries) // ENTRY_BYTES, first + units_max)
    cdef const unsigned char* entry_at = <const unsigned char*>PyBytes_AS_STRING(entries)
    cdef unsigned char* wheel = NULL
    cdef unsigned char* units = NULL
    cdef int64_t written_ms, previous, page, dirty_page = -1, slots_count = len(slots) // SLOT_BYTES
    cdef Py_ssize_t begun = 0
    cdef QueueEntry entry
    cdef RecordLook look
    cdef Due due = Due(0, NULL, 0)
    cdef Py_buffer view
    if first < 0 or step_ms <= 0 or slots_count == 0:
        raise ValueError("no such entries, or no such wheel")
    if first >= last:
        return b"", 0
    wheel = &slots[0]
    PyObject_GetBuffer(log, &view, PyBUF_SIMPLE)
    try:
        units = <unsigned char*>malloc((last - first) * UNIT_BYTES)
        if units == NULL:
            raise MemoryError()
        for number in range(first, last):
            entry = load_entry(entry_at + number * ENTRY_BYTES)
            if (
                not is_sound(&entry, queue_offset + count, &view, base, log_end, check, &look)
                or not find_due(
                    <const unsigned char*>view.buf + entry.log_offset - base, &look, step_ms, window_ms, &due
                )
                or not read_ms + step_ms <= due.time_ms < read_ms + slots_count * step_ms
            ):
                break
            written_ms = look.store_timestamp_ms - look.store_timestamp_ms % step_ms
            if not -INT32_MAX <= due.time_ms - written_ms <= INT32_MAX:
                break
            previous = lengthen(
                wheel, slots_count, due.time_ms // step_ms, units_at + count * UNIT_BYTES, &page
            )
            if page != dirty_page:  # neighbours are often alike
                dirty_page = page
                dirty.add(page)
            begun += previous == NOWHERE
            put_unit(units + count * UNIT_BYTES, previous, written_ms, &due, &entry)
            count += 1
        return PyBytes_FromStringAndSize(<const char*>units, count * UNIT_BYTES), begun
    finally:
        PyBuffer_Release(&view)
        free(units)


cdef bint is_sound(
    QueueEntry* entry,
    int64_t queue_offset,
    Py_buffer* log,
    int64_t base,
    int64_t log_end,
    int check,
    RecordLook* look,
) noexcept:
    """Whether the record of an entry is there, and is this message of the timer's queue."""
    cdef int64_t at = entry.log_offset - base
    cdef const unsigned char* record
    if entry.log_offset < base or entry.size <= 0 or entry.size > log_end - entry.log_offset:
        return False
    if at >= log.len or entry.size > log.len - at:
        return False
    record = <const unsigned char*>log.buf + at
    return (
        look_at(record, entry.size, check, look) == SOUND_RECORD
        and look.size == entry.size
        and look.log_offset == entry.log_offset
        and look.queue_offset == queue_offset
        and look.topic_length == PyBytes_GET_SIZE(TOPIC)
        and memcmp(record + look.topic_at, PyBytes_AS_STRING(TOPIC), look.topic_length) == 0
    )


cdef bint find_due(
    const unsigned char* record, RecordLook* look, int64_t step_ms, int64_t window_ms, Due* due
) noexcept nogil:
    """When the message of a record is due, and its own topic; False when it is not plain."""
    cdef const unsigned char* text = record + look.properties_at
    cdef Py_ssize_t length = look.properties_length
    cdef int64_t stored_ms = look.store_timestamp_ms
    cdef const unsigned char* values[NAMES]
    cdef Py_ssize_t lengths[NAMES]
    cdef Py_ssize_t at = 0, name_end, pair_end
    cdef int number, asking = -1
    cdef int64_t out_ms, asked_ms
    for number in range(NAMES):
        lengths[number] = 0
    while at < length:
        pair_end = find_byte(text, at, length, PAIR_END)
        name_end = find_byte(text, at, pair_end, NAME_END)
        number = which_name(KNOWN, NAMES, text + at, name_end - at)
        if number >= 0:
            if lengths[number] or name_end + 1 >= pair_end:
                return False
            values[number] = text + name_end + 1
            lengths[number] = pair_end - name_end - 1
        at = pair_end + 1
    for number in range(DELAY_SEC, NAMES):
        if lengths[number]:
            if asking >= 0:
                return False
            asking = number
    if asking < 0 or not lengths[REAL_TOPIC] or lengths[DELETE_KEY] or not 0 <= stored_ms < TIME_END:
        return False
    out_ms = digits_of(values[OUT_MS], lengths[OUT_MS], DIGITS_MAX)
    asked_ms = digits_of(values[asking], lengths[asking], DIGITS_MAX)
    if out_ms < 0 or asked_ms < 0:
        return False
    if out_ms - out_ms % step_ms - (stored_ms - stored_ms % step_ms) >= window_ms:  # is written again before that
        return False
    if asking != DELIVER_MS:  # `rules.timed.asked_ms`
        asked_ms *= 1000 if asking == DELAY_SEC else 1
        asked_ms += stored_ms + (1 if asked_ms > 0 else 0)
    due.time_ms = min(max(asked_ms, out_ms + 1), out_ms + step_ms) - 1
    due.topic = values[REAL_TOPIC]
    due.topic_length = lengths[REAL_TOPIC]
    return True


cdef int64_t lengthen(
    unsigned char* wheel, int64_t slots, int64_t step, int64_t at, int64_t* page
) noexcept nogil:
    """One more unit for a slot; the place of the one before it, and the page of the wheel that the slot is in."""
    cdef int64_t place = step % slots * SLOT_BYTES
    cdef unsigned char* slot = wheel + place
    cdef int64_t begin = NOWHERE, last = NOWHERE
    cdef uint32_t messages = 0, recalls = 0
    if <int64_t>load64(slot) == step:
        begin, last = <int64_t>load64(slot + 8), <int64_t>load64(slot + 16)
        messages, recalls = load32(slot + 24), load32(slot + 28)
    store64(slot, <uint64_t>step)
    store64(slot + 8, <uint64_t>(at if begin == NOWHERE else begin))
    store64(slot + 16, <uint64_t>at)
    store32(slot + 24, messages + 1)
    store32(slot + 28, recalls)
    page[0] = place // PAGE_BYTES
    return last


cdef void put_unit(
    unsigned char* to, int64_t previous, int64_t written_ms, Due* due, QueueEntry* entry
) noexcept nogil:
    store32(to, UNIT_BYTES)
    store64(to + 4, <uint64_t>previous)
    store32(to + 12, DUE)
    store64(to + 16, <uint64_t>written_ms)
    store32(to + 24, <uint32_t><int32_t>(due.time_ms - written_ms))
    store64(to + 28, <uint64_t>entry.log_offset)
    store32(to + 36, <uint32_t>entry.size)
    store32(to + 40, <uint32_t>hash_of(due.topic, due.topic_length))
    store64(to + 44, 0)
