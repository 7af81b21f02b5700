"""The compiled twin of index_twin.py.  Runs without the interpreter lock: it touches nothing but the two mappings."""

from cpython cimport array as c_array
from array import array

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset

from bolide.model.big_endian cimport load32, load64, store32, store64
from bolide.model.limits import INDEXED_WORDS_MAX
from bolide.record._codec cimport (
    BLANK_RECORD,
    SOUND_RECORD,
    hash_of,
    look_at,
)
from bolide.record.layout cimport PAIR_END, ROLLBACK, TRANSACTION_MASK, RecordLook
from bolide.store.index_layout cimport (
    BEGIN_MS_AT,
    BEGIN_OFFSET_AT,
    END_MS_AT,
    END_OFFSET_AT,
    ENTRY_BYTES,
    HASH_AT,
    HEADER_BYTES,
    LOG_OFFSET_AT,
    NEXT_ENTRY_AT,
    OLDER_AT,
    SECONDS_AT,
    SLOTS_USED_AT,
    SLOT_BYTES,
    entry_at,
    slot_at,
)

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef enum:
    YIELD_BYTES = 65536           # of the log between two offers of the processor to whoever waits for it
    TOPIC_BYTES_MAX = 0xFFFF
    WORD_BYTES_MAX = 0xFFFF
    HASHES_MAX = 0x8010

cdef Py_ssize_t WORDS_MAX = INDEXED_WORDS_MAX
cdef int64_t SECONDS_MAX = 0x7FFFFFFF
cdef int64_t CONTINUES_AFTER_MS = 1000
cdef int64_t TIME_MS_END = 1LL << 60

cdef enum:
    C_DONE = 0
    C_NO_ROOM = 1
    C_AT_BLANK = 2
    C_NO_RECORD = 3

DONE = C_DONE
NO_ROOM = C_NO_ROOM
AT_BLANK = C_AT_BLANK
NO_RECORD = C_NO_RECORD

cdef c_array.array NUMBERS = array("q")

cdef struct Keys:
    # What of a record is indexed: texts inside the record.
    const unsigned char* topic
    Py_ssize_t topic_length
    bint plain_topic              # only ASCII
    uint32_t topic_hash           # of `topic#`, when the topic is plain
    const unsigned char* unique
    Py_ssize_t unique_length
    const unsigned char* words
    Py_ssize_t words_length
    const unsigned char* tag
    Py_ssize_t tag_length

cdef struct Target:
    unsigned char* file
    unsigned char* entries
    uint32_t slots
    uint32_t count
    uint32_t count_end
    uint32_t used
    int64_t begin_ms
    int64_t end_ms
    int64_t begin_offset
    int64_t end_offset

# ---- hashes ---------------------------------------------------------------------------------------------------

cdef bint hash_plain(uint32_t* value, const unsigned char* text, Py_ssize_t length) noexcept nogil:
    """Java's hash continued over ASCII text; False where there is a byte that is none.

    Four characters at a time, so that the multiplications do not wait for each other.
    """
    cdef uint32_t h = value[0]
    cdef Py_ssize_t at = 0
    cdef unsigned char high = 0
    while at + 4 <= length:
        high |= text[at] | text[at + 1] | text[at + 2] | text[at + 3]
        h = h * 923521U + text[at] * 29791U + text[at + 1] * 961U + text[at + 2] * 31U + text[at + 3]
        at += 4
    while at < length:
        high |= text[at]
        h = h * 31U + text[at]
        at += 1
    value[0] = h
    return high < 0x80


cdef inline uint32_t positive(int32_t value) noexcept nogil:
    """Java's Math.abs, and 0 for the number that has none."""
    if value >= 0:
        return <uint32_t>value
    return 0 if value == -0x80000000LL else <uint32_t>(-value)


cdef uint32_t hash_key(Keys* keys, bint is_tag, const unsigned char* word, Py_ssize_t length) noexcept nogil:
    """The hash of `topic#word`, or of `topic#T#word`."""
    cdef unsigned char text[TOPIC_BYTES_MAX + 3 + WORD_BYTES_MAX]
    cdef uint32_t h = keys.topic_hash
    cdef Py_ssize_t used
    if keys.plain_topic:
        if is_tag:
            h = (h * 31U + c'T') * 31U + c'#'
        if hash_plain(&h, word, length):
            return positive(<int32_t>h)
    memcpy(text, keys.topic, keys.topic_length)
    used = keys.topic_length
    text[used] = c'#'
    used += 1
    if is_tag:
        text[used] = c'T'
        text[used + 1] = c'#'
        used += 2
    memcpy(text + used, word, length)
    return positive(<int32_t>hash_of(text, used + length))


# ---- what of a record is indexed ------------------------------------------------------------------------------

cdef void find_keys(const unsigned char* record, RecordLook* look, Keys* keys) noexcept nogil:
    """As everywhere, the last of several pairs of one name counts, and one without a value is none."""
    cdef const unsigned char* at = record + look.properties_at
    cdef const unsigned char* end = at + look.properties_length
    cdef const unsigned char* pair_end
    cdef Py_ssize_t length
    memset(keys, 0, sizeof(Keys))
    if look.sys_flag & TRANSACTION_MASK == ROLLBACK:
        return
    keys.topic = record + look.topic_at
    keys.topic_length = look.topic_length
    keys.plain_topic = hash_plain(&keys.topic_hash, keys.topic, keys.topic_length)
    keys.topic_hash = keys.topic_hash * 31U + c'#'
    while at < end:
        pair_end = <const unsigned char*>memchr(at, PAIR_END, end - at)
        if pair_end == NULL:
            pair_end = end
        length = pair_end - at
        if at[0] == c'U':
            if length > 9 and memcmp(at, b"UNIQ_KEY\x01", 9) == 0:
                keys.unique = at + 9
                keys.unique_length = length - 9
        elif at[0] == c'K':
            if length > 5 and memcmp(at, b"KEYS\x01", 5) == 0:
                keys.words = at + 5
                keys.words_length = length - 5
        elif at[0] == c'T':
            if length > 5 and memcmp(at, b"TAGS\x01", 5) == 0:
                keys.tag = at + 5
                keys.tag_length = length - 5
        at = pair_end + 1


cdef Py_ssize_t hash_keys(Keys* keys, Py_ssize_t words_max, uint32_t* hashes) noexcept nogil:
    """The hashes of a record, in the order in which RocketMQ's IndexService puts its keys; of its words so many."""
    cdef const unsigned char* at = keys.words
    cdef const unsigned char* end = keys.words + keys.words_length
    cdef const unsigned char* word_end
    cdef Py_ssize_t number = 0
    if keys.unique_length:
        hashes[0] = hash_key(keys, False, keys.unique, keys.unique_length)
        number = 1
    while at < end and words_max:
        word_end = <const unsigned char*>memchr(at, c' ', end - at)
        if word_end == NULL:
            word_end = end
        if word_end > at:
            hashes[number] = hash_key(keys, False, at, word_end - at)
            number += 1
            words_max -= 1
        at = word_end + 1
    if keys.tag_length:
        hashes[number] = hash_key(keys, True, keys.tag, keys.tag_length)
        number += 1
    return number


# ---- writing --------------------------------------------------------------------------------------------------

cdef void open_target(Target* to, unsigned char* file, Py_ssize_t slots, Py_ssize_t count_end) noexcept nogil:
    to.file = file
    to.entries = file + entry_at(slots, 0)
    to.slots = <uint32_t>slots
    to.count_end = <uint32_t>count_end
    to.begin_ms = <int64_t>load64(file + BEGIN_MS_AT)
    to.end_ms = <int64_t>load64(file + END_MS_AT)
    to.begin_offset = <int64_t>load64(file + BEGIN_OFFSET_AT)
    to.end_offset = <int64_t>load64(file + END_OFFSET_AT)
    to.used = load32(file + SLOTS_USED_AT)
    to.count = load32(file + NEXT_ENTRY_AT)
    if <int32_t>to.count < 1:
        to.count = 1


cdef void write_header(Target* to) noexcept nogil:
    store64(to.file + BEGIN_MS_AT, <uint64_t>to.begin_ms)
    store64(to.file + END_MS_AT, <uint64_t>to.end_ms)
    store64(to.file + BEGIN_OFFSET_AT, <uint64_t>to.begin_offset)
    store64(to.file + END_OFFSET_AT, <uint64_t>to.end_offset)
    store32(to.file + SLOTS_USED_AT, to.used)
    store32(to.file + NEXT_ENTRY_AT, to.count)


cdef bint put(Target* to, uint32_t hashed, RecordLook* look) noexcept nogil:
    cdef unsigned char* slot = to.file + slot_at(hashed % to.slots)
    cdef unsigned char* entry
    cdef uint32_t older
    cdef int64_t seconds = 0
    if to.count >= to.count_end:
        return False
    older = load32(slot)
    if older >= to.count:
        older = 0
    if to.begin_ms > 0 and look.store_timestamp_ms > to.begin_ms:
        seconds = (look.store_timestamp_ms - to.begin_ms) // 1000
        if seconds > SECONDS_MAX:
            seconds = SECONDS_MAX
    entry = to.entries + <Py_ssize_t>ENTRY_BYTES * to.count
    store32(entry + HASH_AT, hashed)
    store64(entry + LOG_OFFSET_AT, <uint64_t>look.log_offset)
    store32(entry + SECONDS_AT, <uint32_t>seconds)
    store32(entry + OLDER_AT, older)
    store32(slot, to.count)
    if to.count == 1:
        to.begin_ms = look.store_timestamp_ms
        to.begin_offset = look.log_offset
    if older == 0:
        to.used += 1
    to.count += 1
    to.end_ms = look.store_timestamp_ms
    to.end_offset = look.log_offset
    return True


def index_records(
    const unsigned char[::1] log,
    Py_ssize_t at,
    Py_ssize_t stop,
    Py_ssize_t end,
    int64_t base,
    unsigned char[::1] index,
    Py_ssize_t slots,
    Py_ssize_t count_end,
    Py_ssize_t keys_done,
):
    cdef uint32_t hashes[HASHES_MAX]
    cdef Target to
    cdef Keys keys
    cdef RecordLook look
    cdef Py_ssize_t number, total
    cdef int found, why = C_DONE
    cdef Py_ssize_t yield_at = at + YIELD_BYTES
    if not (
        0 <= at and stop <= end <= log.shape[0] and 0 < slots and 0 <= count_end
        and entry_at(slots, count_end) <= index.shape[0]
    ):
        raise ValueError("the range lies outside the log, or the index file is too small")
    if at >= stop:
        return at, keys_done, C_DONE
    with nogil:
        open_target(&to, &index[0], slots, count_end)
        while at < stop:
            found = look_at(&log[0] + at, end - at, False, &look)
            if found == BLANK_RECORD:
                why = C_AT_BLANK
                break
            if found != SOUND_RECORD or look.log_offset != base + at:
                why = C_NO_RECORD
                break
            find_keys(&log[0] + at, &look, &keys)
            total = hash_keys(&keys, WORDS_MAX, hashes)
            number = keys_done
            while number < total and put(&to, hashes[number], &look):
                number += 1
            if number < total:
                keys_done = number
                why = C_NO_ROOM
                break
            keys_done = 0
            at += look.size
            if at >= yield_at:  # threads that serve clients would else wait until the scheduler interrupts this one
                sched_yield()
                yield_at = at + YIELD_BYTES
        if to.count > 1:
            write_header(&to)
    return at, keys_done, why


def record_hashes(bytes record not None):
    cdef const unsigned char* base = record
    cdef uint32_t hashes[HASHES_MAX]
    cdef RecordLook look
    cdef Keys keys
    cdef Py_ssize_t number
    if look_at(base, len(record), False, &look) != SOUND_RECORD:
        return []
    find_keys(base, &look, &keys)
    return [hashes[number] for number in range(hash_keys(&keys, HASHES_MAX, hashes))]


# ---- finding and repairing ------------------------------------------------------------------------------------

def find_offsets(
    const unsigned char[::1] index,
    Py_ssize_t slots,
    int64_t wanted,
    Py_ssize_t count_max,
    int64_t begin_ms,
    int64_t end_ms,
    Py_ssize_t steps_max,
    int64_t number,
):
    cdef c_array.array found = c_array.clone(NUMBERS, max(0, count_max), zero=False)
    cdef int64_t* offsets = <int64_t*>found.data.as_longlongs
    cdef const unsigned char* entries
    cdef const unsigned char* entry
    cdef int64_t file_begin_ms, stored_ms, older, last
    cdef int32_t seconds
    cdef Py_ssize_t taken = 0
    if slots < 1 or wanted < 0 or entry_at(slots, 1) > index.shape[0]:
        raise ValueError("no such slot, or the index file is too small")
    with nogil:
        entries = &index[0] + entry_at(slots, 0)
        file_begin_ms = <int64_t>load64(&index[BEGIN_MS_AT])
        last = (index.shape[0] - entry_at(slots, 0)) // ENTRY_BYTES
        last = min(last, <int64_t><int32_t>load32(&index[NEXT_ENTRY_AT])) - 1
        if number == 0:
            number = <int32_t>load32(&index[slot_at(wanted % slots)])
        if not 0 <= file_begin_ms < TIME_MS_END:
            number = 0
        while 0 < number <= last and taken < count_max and steps_max > 0:
            entry = entries + ENTRY_BYTES * number
            seconds = <int32_t>load32(entry + SECONDS_AT)
            stored_ms = file_begin_ms + (1000 * <int64_t>seconds if number > 1 else 0)
            if seconds < 0 or stored_ms + CONTINUES_AFTER_MS <= begin_ms:
                number = 0
                break
            if <int64_t><int32_t>load32(entry + HASH_AT) == wanted and stored_ms <= end_ms:
                offsets[taken] = <int64_t>load64(entry + LOG_OFFSET_AT)
                taken += 1
            older = <int32_t>load32(entry + OLDER_AT)
            if older >= number:
                number = 0
                break
            number = older
            steps_max -= 1
        if not 0 < number <= last:
            number = 0
    c_array.resize(found, taken)
    return found, number


def rebuild_slots(unsigned char[::1] index, Py_ssize_t slots, Py_ssize_t count, int64_t log_end):
    cdef unsigned char* entry
    cdef unsigned char* slot
    cdef Py_ssize_t number, last, stopped = 0
    cdef int64_t newest = 0, log_offset
    cdef int32_t hashed
    cdef uint32_t older
    cdef Py_ssize_t used = 0
    if slots < 1 or entry_at(slots, 1) > index.shape[0]:
        raise ValueError("no slots, or the index file is too small")
    with nogil:
        last = min(count, (index.shape[0] - entry_at(slots, 0)) // ENTRY_BYTES)
        memset(&index[HEADER_BYTES], 0, SLOT_BYTES * slots)
        for number in range(1, last):
            entry = &index[entry_at(slots, number)]
            hashed = <int32_t>load32(entry + HASH_AT)
            log_offset = <int64_t>load64(entry + LOG_OFFSET_AT)
            if hashed < 0 or <int32_t>load32(entry + SECONDS_AT) < 0 or log_offset < newest or log_offset >= log_end:
                stopped = number
                break
            slot = &index[slot_at(hashed % slots)]
            older = load32(slot)
            if older == 0:
                used += 1
            store32(entry + OLDER_AT, older)
            store32(slot, <uint32_t>number)
            newest = log_offset
    return stopped or max(1, last), used
