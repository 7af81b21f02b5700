"""The compiled twin of codec_twin.py; its .pxd is what other compiled modules use."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from bolide.model.big_endian cimport load32, store16, store32, store64
from bolide.model.errors import MessageIllegal
from bolide.model.limits import BATCH_MESSAGES_MAX
from bolide.model.properties import NOT_IN_A_BATCH, NOT_PLAIN, NOT_PLAIN_FAMILIES, WRITTEN_BY_THE_BROKER
from bolide.record.codec_twin import TOO_MANY
from bolide.record._checksum cimport crc32_of, holds, write_checksum
from bolide.record.layout cimport (
    BATCH_ITEM_FIXED_BYTES,
    BLANK_BYTES,
    BODY_AFTER,
    BODY_CRC_AT,
    BODY_LENGTH_AFTER,
    BORN_HOST_AT,
    BORN_HOST_V6,
    BORN_TIMESTAMP_AT,
    FIXED_BYTES,
    FLAG_AT,
    HOST_V4_BYTES,
    HOST_V6_BYTES,
    ITEM_BODY_AT,
    LENGTH_MAX,
    LOG_OFFSET_AT,
    MAGIC_AT,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    NAME_END,
    PAIR_END,
    PREPARED_OFFSET_AFTER,
    PROPERTIES_LENGTH_BYTES,
    QUEUE_ID_AT,
    QUEUE_OFFSET_AT,
    RECONSUME_TIMES_AFTER,
    RECORD_CHECKSUM_BYTES,
    SIZE_AT,
    STORE_HOST_V6,
    STORE_TIMESTAMP_BYTES,
    SYS_FLAG_AT,
    TOPIC_V1_BYTES_MAX,
    BatchItem,
    RecordLook,
    find_item,
    find_parts,
)

cdef unsigned char[RECORD_CHECKSUM_BYTES] CHECKSUM_PLACE

# ---- tags -----------------------------------------------------------------------------------------------------

cdef Py_ssize_t read_point(const unsigned char* at, Py_ssize_t left, uint32_t* point) noexcept nogil:
    """One character of UTF-8, and how long it is; U+FFFD for bytes that are none, as Java replaces them."""
    cdef unsigned char first = at[0]
    cdef unsigned char low = 0x80, high = 0xBF
    cdef Py_ssize_t more, number
    if first < 0x80:
        point[0] = first
        return 1
    point[0] = 0xFFFD
    if 0xC2 <= first <= 0xDF:
        more = 1
    elif 0xE0 <= first <= 0xEF:
        more = 2
        low, high = 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF
    elif 0xF0 <= first <= 0xF4:
        more = 3
        low, high = 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF
    else:
        return 1
    cdef uint32_t value = first & (0x3F >> more)
    for number in range(1, more + 1):
        if number >= left or not low <= at[number] <= high:
            return number
        value = (value << 6) | (at[number] & 0x3F)
        low, high = 0x80, 0xBF
    point[0] = value
    return more + 1


cdef int64_t hash_of(const unsigned char* text, Py_ssize_t length) noexcept nogil:
    """Java's String.hashCode of UTF-8 text, sign-extended."""
    cdef uint32_t value = 0
    cdef uint32_t point
    cdef Py_ssize_t at = 0
    while at < length:
        at += read_point(text + at, length - at, &point)
        if point >= 0x10000:  # beyond the basic plane Java counts two units
            point -= 0x10000
            value = 31 * value + (0xD800 + (point >> 10))
            value = 31 * value + (0xDC00 + (point & 0x3FF))
        else:
            value = 31 * value + point
    return <int64_t><int32_t>value


# ---- properties -----------------------------------------------------------------------------------------------

include "_names.pxi"


cdef bint is_plain_key(const unsigned char* text, Py_ssize_t length) noexcept nogil:
    """Whether the unique key may stand in a JSON answer as it is."""
    cdef Py_ssize_t at
    cdef unsigned char odd = 0
    for at in range(length):  # without a way out on the way, so that a compiler looks at many at once
        odd |= (text[at] < 0x20) | (text[at] > 0x7E) | (text[at] == c'"') | (text[at] == c'\\')
    return not odd


cdef inline Py_ssize_t find(const unsigned char* text, Py_ssize_t at, Py_ssize_t end, int wanted) noexcept nogil:
    """Where the byte `wanted` is, from `at` on; `end` when it is not there."""
    cdef const void* found = memchr(text + at, wanted, end - at)
    return end if found == NULL else <const unsigned char*>found - text


cdef void scan_properties(const unsigned char* text, Py_ssize_t length, PropertyScan* scan) noexcept nogil:
    """One walk over the pairs: where the interesting ones are, and whether all are plain."""
    cdef Py_ssize_t at = 0, name_end, pair_end
    cdef Py_ssize_t name_length, value_length
    scan.plain = length == 0 or memchr(text, 0, length) == NULL  # the general path says no to it
    scan.tags_at = scan.tags_length = 0
    scan.unique_key_at = scan.unique_key_length = 0
    scan.group_length = scan.asked_at = scan.asked_length = 0
    scan.asks = False
    scan.wait_at = scan.wait_end = 0
    scan.needs_separator = length > 0 and text[length - 1] != PAIR_END
    while at < length:
        pair_end = find(text, at, length, PAIR_END)
        name_end = find(text, at, pair_end, NAME_END)
        name_length = name_end - at
        value_length = pair_end - name_end - 1
        if not scan.plain:
            return
        if is_special(text + at, name_length):
            if scan.asked_length or value_length <= 0 or not is_one_of(&ASKING, text + at, name_length):
                scan.plain = False
                return
            scan.asked_at = at
            scan.asked_length = pair_end - at
        elif value_length > 0:
            if is_name(text + at, name_length, b"TAGS", 4):
                scan.tags_at = name_end + 1
                scan.tags_length = value_length
            elif is_name(text + at, name_length, b"UNIQ_KEY", 8):
                scan.unique_key_at = name_end + 1
                scan.unique_key_length = value_length
            elif is_name(text + at, name_length, b"WAIT", 4):
                if scan.wait_end or not is_name(text + name_end + 1, value_length, b"true", 4):
                    scan.plain = False
                    return
                scan.wait_at = at
                scan.wait_end = pair_end + 1 if pair_end < length else length
            elif is_name(text + at, name_length, b"PGROUP", 6):
                scan.group_length = value_length
        at = pair_end + 1
    if scan.wait_end == length:  # the pair without a separator is the one that goes
        scan.needs_separator = False
    if not scan.unique_key_length or not is_plain_key(text + scan.unique_key_at, scan.unique_key_length):
        scan.plain = False
    if scan.asked_length:
        scan.asks = scan.plain and not has_unusual(text, length)
        scan.plain = False


cdef bint has_unusual(const unsigned char* text, Py_ssize_t length) noexcept nogil:
    """Whether a message that waits has a name that the broker writes, or says nothing of WAIT."""
    cdef Py_ssize_t at = 0, name_end, pair_end
    while at < length:
        pair_end = find(text, at, length, PAIR_END)
        name_end = find(text, at, pair_end, NAME_END)
        if is_one_of(&OF_BROKER, text + at, name_end - at):
            return True
        if name_end + 1 >= pair_end and is_name(text + at, name_end - at, b"WAIT", 4):
            return True
        at = pair_end + 1
    return False


cdef bint has_special(const unsigned char* text, Py_ssize_t length) noexcept nogil:
    """Whether one of the names needs the general path."""
    cdef Py_ssize_t at = 0, pair_end
    while at < length:
        pair_end = find(text, at, length, PAIR_END)
        if is_special(text + at, find(text, at, pair_end, NAME_END) - at):
            return True
        at = pair_end + 1
    return False


# ---- one record -----------------------------------------------------------------------------------------------

cdef Py_ssize_t stored_properties_length(RecordParts* parts) noexcept nogil:
    return (
        parts.properties_length - (parts.cut_end - parts.cut_at)
        + (1 if parts.needs_separator else 0) + parts.suffix_length
    )


cdef Py_ssize_t size_of(RecordParts* parts) noexcept nogil:
    """How many bytes `write_record` will write."""
    return (
        FIXED_BYTES - 2 * HOST_V4_BYTES + parts.born_host_length + parts.store_host_length
        + (1 if parts.topic_length > TOPIC_V1_BYTES_MAX else 0)
        + parts.body_length + parts.topic_length + stored_properties_length(parts)
    )


cdef void write_record(unsigned char* to, RecordParts* parts) noexcept nogil:
    cdef int64_t sys_flag = parts.sys_flag & ~(BORN_HOST_V6 | STORE_HOST_V6)
    cdef bint wide = parts.topic_length > TOPIC_V1_BYTES_MAX
    cdef Py_ssize_t properties_length = stored_properties_length(parts)
    cdef Py_ssize_t piece
    if parts.born_host_length == HOST_V6_BYTES:
        sys_flag |= BORN_HOST_V6
    if parts.store_host_length == HOST_V6_BYTES:
        sys_flag |= STORE_HOST_V6
    store32(to + SIZE_AT, <uint32_t>size_of(parts))
    store32(to + MAGIC_AT, MAGIC_V2 if wide else MAGIC_V1)
    store32(to + BODY_CRC_AT, crc32_of(parts.body, parts.body_length))
    store32(to + QUEUE_ID_AT, <uint32_t>parts.queue_id)
    store32(to + FLAG_AT, <uint32_t>parts.flag)
    store64(to + QUEUE_OFFSET_AT, <uint64_t>parts.queue_offset)
    store64(to + LOG_OFFSET_AT, <uint64_t>parts.log_offset)
    store32(to + SYS_FLAG_AT, <uint32_t>sys_flag)
    store64(to + BORN_TIMESTAMP_AT, <uint64_t>parts.born_timestamp_ms)
    to += BORN_HOST_AT
    memcpy(to, parts.born_host, parts.born_host_length)
    to += parts.born_host_length
    store64(to, <uint64_t>parts.store_timestamp_ms)
    to += STORE_TIMESTAMP_BYTES
    memcpy(to, parts.store_host, parts.store_host_length)
    to += parts.store_host_length
    store32(to + RECONSUME_TIMES_AFTER, <uint32_t>parts.reconsume_times)
    store64(to + PREPARED_OFFSET_AFTER, <uint64_t>parts.prepared_offset)
    store32(to + BODY_LENGTH_AFTER, <uint32_t>parts.body_length)
    to += BODY_AFTER
    memcpy(to, parts.body, parts.body_length)
    to += parts.body_length
    if wide:
        to[0] = <unsigned char>(parts.topic_length >> 8)
        to += 1
    to[0] = <unsigned char>parts.topic_length
    memcpy(to + 1, parts.topic, parts.topic_length)
    to += 1 + parts.topic_length
    store16(to, properties_length)
    to += PROPERTIES_LENGTH_BYTES
    memcpy(to, parts.properties, parts.cut_at)
    to += parts.cut_at
    piece = parts.properties_length - parts.cut_end
    memcpy(to, parts.properties + parts.cut_end, piece)
    to += piece
    if parts.needs_separator:
        to[0] = PAIR_END
        to += 1
    memcpy(to, parts.suffix, parts.suffix_length)


cdef int check_parts(RecordParts* parts) except -1:
    """What does not fit its field would make every later record unreadable."""
    if parts.topic_length > LENGTH_MAX or stored_properties_length(parts) > LENGTH_MAX:
        raise ValueError("the topic or the properties are too long for a record")
    if (
        (parts.born_host_length != HOST_V4_BYTES and parts.born_host_length != HOST_V6_BYTES)
        or (parts.store_host_length != HOST_V4_BYTES and parts.store_host_length != HOST_V6_BYTES)
    ):
        raise ValueError("a host has 8 or 20 bytes")
    for value in (parts.queue_id, parts.flag, parts.sys_flag, parts.reconsume_times):
        if not -0x80000000LL <= value <= 0x7FFFFFFFLL:
            raise OverflowError(f"{value} is not a 32-bit number")
    return 0


def encode_record(
    *,
    bytes topic not None,
    bytes body not None,
    bytes properties not None,
    int64_t queue_id,
    int64_t flag,
    int64_t queue_offset,
    int64_t log_offset,
    int64_t sys_flag,
    int64_t born_timestamp_ms,
    bytes born_host not None,
    int64_t store_timestamp_ms,
    bytes store_host not None,
    int64_t reconsume_times,
    int64_t prepared_offset,
    bint sealed=False,
):
    cdef RecordParts parts
    parts.topic = <const unsigned char*>PyBytes_AS_STRING(topic)
    parts.topic_length = len(topic)
    parts.body = <const unsigned char*>PyBytes_AS_STRING(body)
    parts.body_length = len(body)
    parts.properties = <const unsigned char*>PyBytes_AS_STRING(properties)
    parts.properties_length = len(properties)
    parts.cut_at = parts.cut_end = 0
    parts.needs_separator = sealed and len(properties) > 0 and properties[len(properties) - 1] != PAIR_END
    parts.suffix = CHECKSUM_PLACE
    parts.suffix_length = RECORD_CHECKSUM_BYTES if sealed else 0
    parts.queue_id = queue_id
    parts.flag = flag
    parts.queue_offset = queue_offset
    parts.log_offset = log_offset
    parts.sys_flag = sys_flag
    parts.born_timestamp_ms = born_timestamp_ms
    parts.born_host = <const unsigned char*>PyBytes_AS_STRING(born_host)
    parts.born_host_length = len(born_host)
    parts.store_timestamp_ms = store_timestamp_ms
    parts.store_host = <const unsigned char*>PyBytes_AS_STRING(store_host)
    parts.store_host_length = len(store_host)
    parts.reconsume_times = reconsume_times
    parts.prepared_offset = prepared_offset
    check_parts(&parts)
    cdef bytes record = PyBytes_FromStringAndSize(NULL, size_of(&parts))
    write_record(<unsigned char*>PyBytes_AS_STRING(record), &parts)
    if sealed:
        write_checksum(<unsigned char*>PyBytes_AS_STRING(record), len(record))
    return record


# ---- looking into records -------------------------------------------------------------------------------------

cdef class RecordHead:
    cdef public int64_t size
    cdef public bytes topic
    cdef public int64_t queue_id
    cdef public int64_t queue_offset
    cdef public int64_t log_offset
    cdef public int64_t sys_flag
    cdef public int64_t store_timestamp_ms
    cdef public int64_t tags_code
    cdef public int64_t body_at
    cdef public int64_t body_length
    cdef public int64_t properties_at
    cdef public int64_t properties_length


cdef int look_at(
    const unsigned char* at, Py_ssize_t room, int check, RecordLook* look
) noexcept nogil:
    """What lies at `at`: NOTHING_SOUND, BLANK_RECORD (only its size is filled in) or SOUND_RECORD."""
    if room < BLANK_BYTES:
        return NOTHING_SOUND
    if load32(at + MAGIC_AT) == MAGIC_BLANK:
        look.size = load32(at + SIZE_AT)
        return BLANK_RECORD if look.size >= BLANK_BYTES else NOTHING_SOUND
    if not find_parts(at, room, look) or not holds(at, look.size, look.body_at, look.body_length, check):
        return NOTHING_SOUND
    return SOUND_RECORD


def inspect_record(const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t end, int check):
    cdef const unsigned char* base
    cdef RecordLook look
    cdef RecordHead head
    cdef int found
    if at < 0 or end > data.shape[0] or end - at < BLANK_BYTES:
        return None
    base = &data[0] + at
    found = look_at(base, end - at, check, &look)
    if found == NOTHING_SOUND:
        return None
    if found == BLANK_RECORD:
        return look.size
    head = RecordHead.__new__(RecordHead)
    head.size = look.size
    head.topic = PyBytes_FromStringAndSize(<const char*>base + look.topic_at, look.topic_length)
    head.queue_id = look.queue_id
    head.queue_offset = look.queue_offset
    head.log_offset = look.log_offset
    head.sys_flag = look.sys_flag
    head.store_timestamp_ms = look.store_timestamp_ms
    head.tags_code = tags_code_at(base + look.properties_at, look.properties_length)
    head.body_at = look.body_at
    head.body_length = look.body_length
    head.properties_at = look.properties_at
    head.properties_length = look.properties_length
    return head


cdef int64_t tags_code_at(const unsigned char* text, Py_ssize_t length) noexcept nogil:
    """As everywhere, the last of several pairs of one name counts, and one without a value is none."""
    cdef Py_ssize_t at = 0, end, tags_at = 0, tags_length = 0
    while at < length:
        end = find(text, at, length, PAIR_END)
        if end - at > 5 and memcmp(text + at, b"TAGS\x01", 5) == 0:
            tags_at, tags_length = at + 5, end - at - 5
        at = end + 1
    return hash_of(text + tags_at, tags_length)


def tags_code_of(const unsigned char[::1] properties):
    return tags_code_at(&properties[0], properties.shape[0]) if properties.shape[0] else 0


def split_batch(bytes body not None, Py_ssize_t count_max=BATCH_MESSAGES_MAX):
    cdef const unsigned char* base = <const unsigned char*>PyBytes_AS_STRING(body)
    cdef Py_ssize_t length = len(body), at = 0
    cdef BatchItem item
    cdef list items = []
    while at < length:
        if len(items) == count_max:
            raise MessageIllegal(TOO_MANY.format(count_max))
        if not find_item(base + at, length - at, &item):
            if length - at < BATCH_ITEM_FIXED_BYTES:
                raise MessageIllegal("the batch ends in the middle of a message")
            raise MessageIllegal(f"message {len(items)} of the batch has a wrong size ({item.size} bytes)")
        items.append((
            item.flag,
            PyBytes_FromStringAndSize(<const char*>base + at + ITEM_BODY_AT, item.body_length),
            PyBytes_FromStringAndSize(<const char*>base + at + item.properties_at, item.properties_length),
        ))
        at += item.size
    return items
