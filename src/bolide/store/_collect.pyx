"""The compiled twin of collect_twin.py: looks through queue entries, and gathers the records of a pull."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy

from bolide.model._pairs cimport Examiner
from bolide.record._checksum cimport holds
from bolide.record.layout cimport RecordLook, find_parts
from bolide.store.queue_entry cimport ENTRY_BYTES, GAP_SIZE, QueueEntry, load_entry

from bolide.model.filter import EVERYTHING as _EVERYTHING
from bolide.model.limits import EXAMINED_BYTES_MAX

cdef object EVERYTHING = _EVERYTHING  # so that looking at it costs nothing

cdef int64_t EXAMINED_MAX = EXAMINED_BYTES_MAX

cdef enum:
    CHOSEN_FEW = 64


cdef struct Chosen:
    const unsigned char* at
    Py_ssize_t size


cdef enum:
    CODES_FEW = 8
    ALL_CODES = -1
    MANY_CODES = -2


cdef struct WantedCodes:
    # A subscription has one tag or a few: comparing these costs less than making an object of every entry's code.
    int64_t few[CODES_FEW]
    Py_ssize_t count  # or one of the two above


cdef WantedCodes wanted_codes(codes) except *:
    cdef WantedCodes wanted
    if codes is None:
        wanted.count = ALL_CODES
    elif len(codes) > CODES_FEW:
        wanted.count = MANY_CODES
    else:
        wanted.count = 0
        for code in codes:
            wanted.few[wanted.count] = code
            wanted.count += 1
    return wanted


cdef inline bint has_code(WantedCodes* wanted, codes, int64_t code) except -1:
    cdef Py_ssize_t number
    if wanted.count == ALL_CODES:
        return True
    if wanted.count == MANY_CODES:
        return code in codes
    for number in range(wanted.count):
        if wanted.few[number] == code:
            return True
    return False


def first_by_code(bytes entries not None, int64_t log_offset_end):
    cdef const unsigned char* at = <const unsigned char*>PyBytes_AS_STRING(entries)
    cdef Py_ssize_t available = len(entries) // ENTRY_BYTES
    cdef Py_ssize_t scanned = 0
    cdef int64_t last = 0
    cdef dict found = {}
    cdef QueueEntry entry
    while scanned < available:
        entry = load_entry(at)
        if entry.log_offset >= 0 and 0 < entry.size < GAP_SIZE:
            if entry.size > log_offset_end - entry.log_offset:
                break
            if not found:
                found[None] = scanned
                found[entry.tags_code] = scanned
                last = entry.tags_code
            elif entry.tags_code != last:  # neighbours are often alike
                last = entry.tags_code
                found.setdefault(entry.tags_code, scanned)
        scanned += 1
        at += ENTRY_BYTES
    return scanned, found


def first_wanted(bytes entries not None, filter, int64_t log_offset_end, read_at):
    cdef object codes = filter.codes
    cdef object examine = filter.examine
    cdef object record
    cdef const unsigned char* at = <const unsigned char*>PyBytes_AS_STRING(entries)
    cdef Py_ssize_t available = len(entries) // ENTRY_BYTES
    cdef Py_ssize_t scanned = 0, examined = 0, weight = filter.weight
    cdef QueueEntry entry
    cdef WantedCodes wanted = wanted_codes(codes)
    while scanned < available:
        entry = load_entry(at)
        if entry.log_offset >= 0 and 0 < entry.size < GAP_SIZE:
            if entry.size > log_offset_end - entry.log_offset:
                break
            if has_code(&wanted, codes, entry.tags_code):
                if examine is None or examined >= EXAMINED_MAX:
                    return scanned, True
                record = read_at(entry.log_offset)
                if record is not None:
                    examined += len(record) * weight
                    if examine(record):
                        return scanned, True
        scanned += 1
        at += ENTRY_BYTES
    return scanned, False


cdef bint is_message(
    const unsigned char* at,
    QueueEntry* entry,
    bytes topic,
    int64_t queue_id,
    int64_t queue_offset,
    RecordLook* look,
) noexcept:
    """Whether a record of the entry's size and place begins here, and is this message of this queue.

    Its body is not touched: those that a filter does not want may have gigabytes of them together.
    """
    if not find_parts(at, entry.size, look) or look.size != entry.size or look.log_offset != entry.log_offset:
        return False
    if PyBytes_GET_SIZE(topic) == 0:
        return True
    return (
        look.queue_offset == queue_offset
        and look.queue_id == queue_id
        and look.topic_length == PyBytes_GET_SIZE(topic)
        and memcmp(at + look.topic_at, PyBytes_AS_STRING(topic), look.topic_length) == 0
    )


cdef struct Examined:
    int64_t weight  # of a byte
    int64_t bytes_  # weighed


cdef inline bint wants(
    examine, Examined* examined, segment, Py_ssize_t place, const unsigned char* record, RecordLook* look
) except -1:
    """What compiled code can ask is told where the properties lie; anything else gets the record."""
    if examine is None:
        return True
    examined.bytes_ += look.properties_length * examined.weight
    if isinstance(examine, Examiner):
        return (<Examiner>examine).takes(record + look.properties_at, look.properties_length)
    return examine(segment[place : place + look.size])


cdef bytes joined(Chosen* chosen, Py_ssize_t count, int64_t size):
    cdef bytes data = PyBytes_FromStringAndSize(NULL, size)
    cdef unsigned char* to = <unsigned char*>PyBytes_AS_STRING(data)
    cdef Py_ssize_t number
    for number in range(count):
        memcpy(to, chosen[number].at, chosen[number].size)
        to += chosen[number].size
    return data


def collect(
    bytes entries not None,
    Py_ssize_t first,
    filter,
    Py_ssize_t count_max,
    int64_t size_bytes_max,
    int64_t log_offset_end,
    int64_t log_offset_start,
    segment,
    int64_t base,
    bytes topic not None,
    int64_t queue_id,
    int64_t queue_offset,
    int check,
):
    cdef object codes = None, examine = None
    cdef const unsigned char* at = <const unsigned char*>PyBytes_AS_STRING(entries) + first * ENTRY_BYTES
    cdef Py_ssize_t available = len(entries) // ENTRY_BYTES - first
    cdef Py_ssize_t scanned = 0, taken = 0, damaged = 0, limit = min(count_max, available)
    cdef int64_t total = 0, read_in_vain = 0, place
    cdef Examined examined = Examined(1, 0)
    cdef QueueEntry entry
    cdef RecordLook look
    cdef Chosen few[CHOSEN_FEW]
    cdef Chosen* chosen = few
    cdef const unsigned char* record
    cdef Py_buffer log
    cdef WantedCodes wanted
    if first < 0 or available < 0:
        raise ValueError("the first entry lies outside the entries")
    if filter is not EVERYTHING:  # which most pulls ask for, and which needs no look at its halves
        codes, examine, examined.weight = filter.codes, filter.examine, filter.weight
    wanted = wanted_codes(codes)
    if limit > CHOSEN_FEW:
        chosen = <Chosen*>malloc(limit * sizeof(Chosen))
        if chosen == NULL:
            raise MemoryError()
    # A plain buffer: a typed memoryview costs more to make than a small pull takes to copy.
    PyObject_GetBuffer(segment, &log, PyBUF_SIMPLE)
    try:
        while scanned < available and taken < count_max:
            entry = load_entry(at)
            if entry.log_offset >= log_offset_start and 0 < entry.size < GAP_SIZE:
                place = entry.log_offset - base
                if entry.size > log_offset_end - entry.log_offset or entry.log_offset < base or place >= log.len:
                    break
                if has_code(&wanted, codes, entry.tags_code):
                    if (total and total + entry.size > size_bytes_max) or examined.bytes_ >= EXAMINED_MAX:
                        break
                    record = <const unsigned char*>log.buf + place
                    if entry.size > log.len - place or not is_message(
                        record, &entry, topic, queue_id, queue_offset + scanned, &look
                    ):
                        damaged += 1
                    elif wants(examine, &examined, segment, place, record, &look):
                        total += entry.size
                        if holds(record, look.size, look.body_at, look.body_length, check):
                            chosen[taken] = Chosen(record, entry.size)
                            taken += 1
                        else:
                            damaged += 1
                            read_in_vain += entry.size
            scanned += 1
            at += ENTRY_BYTES
        data = joined(chosen, taken, total - read_in_vain)
    finally:
        PyBuffer_Release(&log)
        if chosen != few:
            free(chosen)
    return scanned, taken, damaged, data
