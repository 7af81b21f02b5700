"""The compiled twin of ends_twin.py: ends of transactions into records."""

from cpython cimport array as c_array
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcmp

from bolide.model cimport end_rows as column
from bolide.model.big_endian cimport load32, load64
from bolide.model.pair_walk cimport NameText, digits_of, fill_names, find_byte, which_name
from bolide.record._checksum cimport write_checksum
from bolide.record._codec cimport (
    SOUND_RECORD,
    RecordParts,
    look_at,
    size_of,
    tags_code_at,
    write_record,
)
from bolide.record.layout cimport (
    BLANK_BYTES,
    BORN_HOST_AT,
    BORN_TIMESTAMP_AT,
    FLAG_AT,
    LENGTH_MAX,
    NAME_END,
    PAIR_END,
    RECONSUME_TIMES_AFTER,
    RECORD_CHECKSUM_BYTES,
    ROLLBACK,
    TRANSACTION_MASK,
    RecordLook,
)
from bolide.store._append cimport QueueTail
from bolide.store.queue_entry cimport ENTRY_BYTES, QueueEntry, load_entry

from bolide.model.names import HALF_TOPIC as _HALF_TOPIC
from bolide.model.properties import NOT_PLAIN_FAMILIES
from bolide.store import ends_twin

cdef enum:
    COMMIT = 0x8
    # The properties that count.
    GROUP = 0
    KEY = 1
    OWN_TOPIC = 2
    OWN_QUEUE = 3
    KNOWN_COUNT = 4
    ODD_MAX = 32
    QUEUE_DIGITS_MAX = 9

cdef bytes HALF_TOPIC = _HALF_TOPIC.encode()
cdef bytes SEAL = ends_twin.SEAL
cdef list KNOWN_TEXTS = list(ends_twin.KNOWN)
cdef list ODD_TEXTS = list(ends_twin.ODD)
cdef list FAMILY_TEXTS = list(NOT_PLAIN_FAMILIES)
cdef int ODD_COUNT = len(ODD_TEXTS), FAMILY_COUNT = len(FAMILY_TEXTS)
cdef NameText KNOWN[KNOWN_COUNT]
cdef NameText ODD[ODD_MAX]
cdef NameText FAMILIES[ODD_MAX]
cdef unsigned char[RECORD_CHECKSUM_BYTES] NO_CHECKSUM_YET

assert ODD_COUNT <= ODD_MAX and FAMILY_COUNT <= ODD_MAX
fill_names(KNOWN, KNOWN_TEXTS)
fill_names(ODD, ODD_TEXTS)
fill_names(FAMILIES, FAMILY_TEXTS)


cdef struct Half:
    const unsigned char* record
    RecordLook look
    const unsigned char* properties
    Py_ssize_t properties_length   # without a checksum
    const unsigned char* values[KNOWN_COUNT]
    Py_ssize_t lengths[KNOWN_COUNT]
    int64_t queue_id               # its own


cdef struct Output:
    unsigned char* to
    Py_ssize_t room
    Py_ssize_t used
    int64_t log_offset
    int64_t last_record
    Py_ssize_t records
    RecordParts committed
    RecordParts mark


def encode_ends(
    c_array.array ends not None,
    bytearray texts not None,
    Py_ssize_t first,
    Py_ssize_t last,
    bytes entries not None,
    int64_t entries_first,
    log,
    int64_t base,
    int64_t log_start,
    int64_t log_end,
    int check,
    int64_t half_bytes_max,
    find,
    QueueTail mark_tail not None,
    bytes mark_properties not None,
    int64_t marked_ms,
    bytes store_host not None,
    bint sealed,
    bytearray scratch not None,
    Py_ssize_t room,
    int64_t log_offset,
    int64_t now_ms,
    list touched not None,
):
    cdef const unsigned char* texts_at = <const unsigned char*>PyByteArray_AS_STRING(texts)
    cdef const int64_t* values = <const int64_t*>ends.data.as_longlongs + first * column.COLUMNS
    cdef Py_ssize_t row = first
    cdef Half half
    cdef Output output
    cdef QueueTail tail
    cdef bytes mark_topic = mark_tail.key[0].encode()
    cdef dict tails = {}
    cdef Py_buffer view
    if ends.ob_descr.typecode != c'q' or first < 0 or last * column.COLUMNS > len(ends):
        raise ValueError("no such rows")
    output.to = <unsigned char*>PyByteArray_AS_STRING(scratch)
    output.room = min(room - BLANK_BYTES, len(scratch))
    output.used = output.records = 0
    output.log_offset = log_offset
    output.last_record = -1
    fill_constants(&output.committed, store_host, now_ms, sealed)
    fill_constants(&output.mark, store_host, now_ms, sealed)
    fill_mark(&output.mark, mark_topic, mark_tail.key[1], mark_properties, marked_ms)
    PyObject_GetBuffer(log, &view, PyBUF_SIMPLE)
    try:
        while (
            row < last
            and find_half(&half, values, entries, entries_first, &view, base, log_start, log_end, check)
            and half.look.size <= half_bytes_max
            and is_plain(&half)
            and is_meant(&half, values, texts_at)
        ):
            tail = tail_of(&half, tails, find)
            if tail is None or not put_end(&output, &half, values, tail, mark_tail, touched):
                break
            row += 1
            values += column.COLUMNS
    finally:
        PyBuffer_Release(&view)
    return row, output.used, output.records, output.last_record


cdef QueueTail tail_of(Half* half, dict tails, find):
    """The queue that a half message is meant for; None when somebody has to decide."""
    cdef bytes topic = PyBytes_FromStringAndSize(
        <const char*>half.values[OWN_TOPIC], half.lengths[OWN_TOPIC]
    )
    cdef int64_t queue_id = digits_of(half.values[OWN_QUEUE], half.lengths[OWN_QUEUE], QUEUE_DIGITS_MAX)
    if queue_id < 0:
        return None
    if topic not in tails:
        tails[topic] = find(topic)
    of_topic = tails[topic]
    if of_topic is None or queue_id >= len(of_topic):
        return None
    half.queue_id = queue_id
    return of_topic[queue_id]


# ---- the half message ---------------------------------------------------------------------------------------------

cdef bint find_half(
    Half* half,
    const int64_t* values,
    bytes entries,
    int64_t entries_first,
    Py_buffer* log,
    int64_t base,
    int64_t log_start,
    int64_t log_end,
    int check,
) noexcept:
    """The sound half message that a row ends, in the place that its queue says."""
    cdef int64_t number = values[column.HALF_NUMBER], at
    cdef QueueEntry entry
    if values[column.VERDICT] != COMMIT and values[column.VERDICT] != ROLLBACK:
        return False
    if number < entries_first or number - entries_first >= PyBytes_GET_SIZE(entries) // ENTRY_BYTES:
        return False
    entry = load_entry(<const unsigned char*>PyBytes_AS_STRING(entries) + (number - entries_first) * ENTRY_BYTES)
    at = entry.log_offset - base
    if (
        entry.log_offset != values[column.HALF_AT]
        or entry.log_offset < log_start
        or entry.log_offset < base
        or entry.size <= 0
        or entry.size > log_end - entry.log_offset
        or at >= log.len
        or entry.size > log.len - at
    ):
        return False
    half.record = <const unsigned char*>log.buf + at
    return (
        look_at(half.record, entry.size, check, &half.look) == SOUND_RECORD
        and half.look.size == entry.size
        and half.look.log_offset == entry.log_offset
        and half.look.queue_offset == number
        and half.look.queue_id == 0
        and half.look.topic_length == PyBytes_GET_SIZE(HALF_TOPIC)
        and memcmp(half.record + half.look.topic_at, PyBytes_AS_STRING(HALF_TOPIC), half.look.topic_length) == 0
    )


cdef bint is_plain(Half* half) noexcept:
    """Whether it asks for nothing but its transaction, and says all that is needed once; leaves out its checksum."""
    cdef const unsigned char* text = half.record + half.look.properties_at
    cdef Py_ssize_t length = half.look.properties_length, at = 0, name_end, pair_end
    cdef int number
    half.properties = text
    half.properties_length = length
    for number in range(KNOWN_COUNT):
        half.lengths[number] = 0
    while at < length:
        pair_end = find_byte(text, at, length, PAIR_END)
        name_end = find_byte(text, at, pair_end, NAME_END)
        if which_name(ODD, ODD_COUNT, text + at, name_end - at) >= 0 or is_of_family(text + at, name_end - at):
            return False
        number = which_name(KNOWN, KNOWN_COUNT, text + at, name_end - at)
        if number >= 0:
            if half.lengths[number] or name_end + 1 >= pair_end:
                return False
            half.values[number] = text + name_end + 1
            half.lengths[number] = pair_end - name_end - 1
        elif is_seal(text + at, name_end - at) and name_end < pair_end and pair_end + 1 == length:
            half.properties_length = at
        at = pair_end + 1
    for number in range(KNOWN_COUNT):
        if not half.lengths[number]:
            return False
    if half.properties_length + 1 + RECORD_CHECKSUM_BYTES > LENGTH_MAX:
        return False
    return not has_seal(text, half.properties_length)


cdef bint is_of_family(const unsigned char* name, Py_ssize_t length) noexcept nogil:
    cdef int number
    for number in range(FAMILY_COUNT):
        if length >= FAMILIES[number].length and memcmp(name, FAMILIES[number].text, FAMILIES[number].length) == 0:
            return True
    return False


cdef bint is_seal(const unsigned char* name, Py_ssize_t length) noexcept:
    return length == PyBytes_GET_SIZE(SEAL) and memcmp(name, PyBytes_AS_STRING(SEAL), length) == 0


cdef bint has_seal(const unsigned char* text, Py_ssize_t length) noexcept:
    """Whether the name of the checksum is anywhere in it."""
    cdef Py_ssize_t name = PyBytes_GET_SIZE(SEAL), at = 0
    cdef int end = PyBytes_AS_STRING(SEAL)[name - 1]
    while True:
        at = find_byte(text, at, length, end) + 1
        if at > length:
            return False
        if at >= name and is_seal(text + at - name, name):
            return True


cdef bint is_meant(Half* half, const int64_t* values, const unsigned char* texts) noexcept:
    """Whether the end is of its group, and if it names its message, of this one."""
    return is_text(half, GROUP, texts, values + column.GROUP_AT) and (
        values[column.TRANSACTION_ID_LENGTH] == 0
        or is_text(half, KEY, texts, values + column.TRANSACTION_ID_AT)
        or is_text(half, KEY, texts, values + column.MESSAGE_ID_AT)
    )


cdef bint is_text(Half* half, int known, const unsigned char* texts, const int64_t* place) noexcept nogil:
    """Whether what it says under a name is the text of this place and length."""
    return half.lengths[known] == place[1] and memcmp(half.values[known], texts + place[0], place[1]) == 0


# ---- what is stored -----------------------------------------------------------------------------------------------

cdef void fill_constants(RecordParts* parts, bytes store_host, int64_t now_ms, bint sealed) noexcept:
    parts.store_host = <const unsigned char*>PyBytes_AS_STRING(store_host)
    parts.store_host_length = PyBytes_GET_SIZE(store_host)
    parts.store_timestamp_ms = now_ms
    parts.cut_at = parts.cut_end = 0
    parts.suffix = NO_CHECKSUM_YET
    parts.suffix_length = RECORD_CHECKSUM_BYTES if sealed else 0


cdef void fill_mark(RecordParts* parts, bytes topic, int64_t queue_id, bytes properties, int64_t marked_ms) noexcept:
    parts.topic = <const unsigned char*>PyBytes_AS_STRING(topic)
    parts.topic_length = PyBytes_GET_SIZE(topic)
    parts.queue_id = queue_id
    fill_properties(parts, <const unsigned char*>PyBytes_AS_STRING(properties), PyBytes_GET_SIZE(properties))
    parts.flag = parts.sys_flag = parts.reconsume_times = parts.prepared_offset = 0
    parts.born_timestamp_ms = marked_ms
    parts.born_host = parts.store_host
    parts.born_host_length = parts.store_host_length


cdef void fill_committed(RecordParts* parts, Half* half) noexcept:
    cdef const unsigned char* record = half.record
    parts.topic = half.values[OWN_TOPIC]
    parts.topic_length = half.lengths[OWN_TOPIC]
    parts.queue_id = half.queue_id
    parts.body = record + half.look.body_at
    parts.body_length = half.look.body_length
    fill_properties(parts, half.properties, half.properties_length)
    parts.flag = <int32_t>load32(record + FLAG_AT)
    parts.sys_flag = (half.look.sys_flag & ~TRANSACTION_MASK) | COMMIT
    parts.born_timestamp_ms = <int64_t>load64(record + BORN_TIMESTAMP_AT)
    parts.born_host = record + BORN_HOST_AT
    parts.born_host_length = half.look.born_host_length
    parts.reconsume_times = <int32_t>load32(record + half.look.store_host_end + RECONSUME_TIMES_AFTER)
    parts.prepared_offset = half.look.log_offset


cdef void fill_properties(RecordParts* parts, const unsigned char* text, Py_ssize_t length) noexcept:
    parts.properties = text
    parts.properties_length = length
    parts.needs_separator = parts.suffix_length > 0 and length > 0 and text[length - 1] != PAIR_END


cdef bint put_end(
    Output* output, Half* half, const int64_t* values, QueueTail tail, QueueTail mark_tail, list touched
) except -1:
    """The message, if it is committed, and its mark; False when there is no room for them."""
    cdef bytes number = b"%d" % values[column.HALF_NUMBER]
    cdef bint is_committed = values[column.VERDICT] == COMMIT
    output.mark.body = <const unsigned char*>PyBytes_AS_STRING(number)
    output.mark.body_length = PyBytes_GET_SIZE(number)
    fill_committed(&output.committed, half)
    if size_of(&output.mark) + (size_of(&output.committed) if is_committed else 0) > output.room - output.used:
        return False
    if is_committed:
        put(output, &output.committed, tail, touched)
    put(output, &output.mark, mark_tail, touched)
    return True


cdef int put(Output* output, RecordParts* parts, QueueTail tail, list touched) except -1:
    """A record behind the others, and its entry into its queue."""
    cdef Py_ssize_t size = size_of(parts)
    parts.queue_offset = tail.next_offset
    parts.log_offset = output.log_offset + output.used
    write_record(output.to + output.used, parts)
    if parts.suffix_length:
        write_checksum(output.to + output.used, size)
    tail.push(parts.log_offset, size, tags_code_at(parts.properties, parts.properties_length))
    if not tail.touched:
        tail.touched = True
        touched.append(tail)
    output.used += size
    output.records += 1
    output.last_record = parts.log_offset
    return 0
