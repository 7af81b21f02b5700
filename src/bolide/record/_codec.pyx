"""The compiled twin of codec_twin.py; its .pxd is what other compiled modules use."""

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

from bolide.model.big_endian cimport load16, load32, load64, store32, store64
from bolide.model.errors import MessageIllegal
from bolide.record._checksum cimport RECORD_CHECKSUM_BYTES, crc32_of, holds, write_checksum

cdef enum:
    FIXED_BYTES = 91
    BATCH_ITEM_FIXED_BYTES = 22
    HOST_V4_BYTES = 8
    HOST_V6_BYTES = 20
    BORN_HOST_V6 = 0x10
    STORE_HOST_V6 = 0x20
    TOPIC_V1_BYTES_MAX = 127
    LENGTH_MAX = 0x7FFF

cdef uint32_t MAGIC_V1 = 0xDAA320A7
cdef uint32_t MAGIC_V2 = 0xDAA320AB
cdef uint32_t MAGIC_BLANK = 0xCBD43194

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

cdef inline bint is_name(const unsigned char* name, Py_ssize_t length, const char* wanted, Py_ssize_t size) noexcept nogil:
    return length == size and memcmp(name, wanted, size) == 0


cdef bint is_special(const unsigned char* name, Py_ssize_t length) noexcept nogil:
    """Names that change how the broker must treat the message, or that it would have to replace."""
    if length == 0:
        return False
    if name[0] == c'D':
        return is_name(name, length, b"DELAY", 5)
    if name[0] == c'T':
        return (
            is_name(name, length, b"TRAN_MSG", 8)
            or is_name(name, length, b"TRACE_ON", 8)
            or (length > 6 and memcmp(name, b"TIMER_", 6) == 0)
        )
    if name[0] == c'M':
        return is_name(name, length, b"MSG_REGION", 10)
    if name[0] == c'C':
        return is_name(name, length, b"CLUSTER", 7)
    if name[0] == c'P':
        return is_name(name, length, b"POP_CK", 6)
    if name[0] == c'I':
        return length > 6 and memcmp(name, b"INNER_", 6) == 0
    if name[0] == c'_':
        return is_name(name, length, b"__CRC32#", 8)
    return False


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
    scan.plain = True
    scan.tags_at = scan.tags_length = 0
    scan.unique_key_at = scan.unique_key_length = 0
    scan.wait_at = scan.wait_end = 0
    scan.needs_separator = length > 0 and text[length - 1] != 2
    while at < length:
        pair_end = find(text, at, length, 2)
        name_end = find(text, at, pair_end, 1)
        name_length = name_end - at
        value_length = pair_end - name_end - 1
        if is_special(text + at, name_length):
            scan.plain = False
            return
        if value_length > 0:
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
        at = pair_end + 1
    if scan.wait_end == length:  # the pair without a separator is the one that goes
        scan.needs_separator = False
    if not scan.unique_key_length or not is_plain_key(text + scan.unique_key_at, scan.unique_key_length):
        scan.plain = False


cdef bint has_special(const unsigned char* text, Py_ssize_t length) noexcept nogil:
    """Whether one of the names needs the general path."""
    cdef Py_ssize_t at = 0, pair_end
    while at < length:
        pair_end = find(text, at, length, 2)
        if is_special(text + at, find(text, at, pair_end, 1) - at):
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
    store32(to, <uint32_t>size_of(parts))
    store32(to + 4, MAGIC_V2 if wide else MAGIC_V1)
    store32(to + 8, crc32_of(parts.body, parts.body_length))
    store32(to + 12, <uint32_t>parts.queue_id)
    store32(to + 16, <uint32_t>parts.flag)
    store64(to + 20, <uint64_t>parts.queue_offset)
    store64(to + 28, <uint64_t>parts.log_offset)
    store32(to + 36, <uint32_t>sys_flag)
    store64(to + 40, <uint64_t>parts.born_timestamp_ms)
    to += 48
    memcpy(to, parts.born_host, parts.born_host_length)
    to += parts.born_host_length
    store64(to, <uint64_t>parts.store_timestamp_ms)
    to += 8
    memcpy(to, parts.store_host, parts.store_host_length)
    to += parts.store_host_length
    store32(to, <uint32_t>parts.reconsume_times)
    store64(to + 4, <uint64_t>parts.prepared_offset)
    store32(to + 12, <uint32_t>parts.body_length)
    to += 16
    memcpy(to, parts.body, parts.body_length)
    to += parts.body_length
    if wide:
        to[0] = <unsigned char>(parts.topic_length >> 8)
        to += 1
    to[0] = <unsigned char>parts.topic_length
    memcpy(to + 1, parts.topic, parts.topic_length)
    to += 1 + parts.topic_length
    to[0] = <unsigned char>(properties_length >> 8)
    to[1] = <unsigned char>properties_length
    to += 2
    memcpy(to, parts.properties, parts.cut_at)
    to += parts.cut_at
    piece = parts.properties_length - parts.cut_end
    memcpy(to, parts.properties + parts.cut_end, piece)
    to += piece
    if parts.needs_separator:
        to[0] = 2
        to += 1
    memcpy(to, parts.suffix, parts.suffix_length)


cdef check_parts(RecordParts* parts):
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
    parts.needs_separator = sealed and len(properties) > 0 and properties[len(properties) - 1] != 2
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
    cdef Py_ssize_t cursor, width
    cdef uint32_t magic
    if room < 8:
        return NOTHING_SOUND
    look.size = load32(at)
    magic = load32(at + 4)
    if magic == MAGIC_BLANK:
        return BLANK_RECORD if look.size >= 8 else NOTHING_SOUND
    if (magic != MAGIC_V1 and magic != MAGIC_V2) or look.size < FIXED_BYTES or look.size > room:
        return NOTHING_SOUND
    look.queue_id = <int32_t>load32(at + 12)
    look.queue_offset = <int64_t>load64(at + 20)
    look.log_offset = <int64_t>load64(at + 28)
    look.sys_flag = <int32_t>load32(at + 36)
    cursor = 48 + (HOST_V6_BYTES if look.sys_flag & BORN_HOST_V6 else HOST_V4_BYTES)
    look.store_timestamp_ms = <int64_t>load64(at + cursor)
    cursor += 8 + (HOST_V6_BYTES if look.sys_flag & STORE_HOST_V6 else HOST_V4_BYTES) + 12
    if cursor + 4 > look.size:
        return NOTHING_SOUND
    look.body_length = load32(at + cursor)
    look.body_at = cursor + 4
    cursor += 4 + look.body_length
    width = 1 if magic == MAGIC_V1 else 2
    if cursor + width > look.size:
        return NOTHING_SOUND
    look.topic_length = at[cursor] if width == 1 else load16(at + cursor)
    look.topic_at = cursor + width
    cursor = look.topic_at + look.topic_length
    if cursor + 2 > look.size:
        return NOTHING_SOUND
    look.properties_length = load16(at + cursor)
    look.properties_at = cursor + 2
    if look.properties_at + look.properties_length != look.size:
        return NOTHING_SOUND
    if not holds(at, look.size, look.body_at, look.body_length, check):
        return NOTHING_SOUND
    return SOUND_RECORD


def inspect_record(const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t end, int check):
    cdef const unsigned char* base
    cdef RecordLook look
    cdef RecordHead head
    cdef int found
    if at < 0 or end > data.shape[0] or end - at < 8:
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
        end = find(text, at, length, 2)
        if end - at > 5 and memcmp(text + at, b"TAGS\x01", 5) == 0:
            tags_at, tags_length = at + 5, end - at - 5
        at = end + 1
    return hash_of(text + tags_at, tags_length)


def tags_code_of(const unsigned char[::1] properties):
    return tags_code_at(&properties[0], properties.shape[0]) if properties.shape[0] else 0


def split_batch(bytes body not None):
    cdef const unsigned char* base = <const unsigned char*>PyBytes_AS_STRING(body)
    cdef Py_ssize_t length = len(body), at = 0, size, body_length, properties_at, properties_length
    cdef list items = []
    while at < length:
        if length - at < BATCH_ITEM_FIXED_BYTES:
            raise MessageIllegal("the batch ends in the middle of a message")
        size = load32(base + at)
        body_length = load32(base + at + 16)
        if size > length - at or BATCH_ITEM_FIXED_BYTES + body_length > size:
            raise MessageIllegal(f"message {len(items)} of the batch has a wrong size ({size} bytes)")
        properties_at = at + 20 + body_length
        properties_length = load16(base + properties_at)
        if size != BATCH_ITEM_FIXED_BYTES + body_length + properties_length:
            raise MessageIllegal(f"message {len(items)} of the batch has a wrong size ({size} bytes)")
        items.append((
            <int32_t>load32(base + at + 12),
            PyBytes_FromStringAndSize(<const char*>base + at + 20, body_length),
            PyBytes_FromStringAndSize(<const char*>base + properties_at + 2, properties_length),
        ))
        at += size
    return items
