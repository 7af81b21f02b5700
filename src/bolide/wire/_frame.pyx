"""The compiled twin of frame_twin.py: runs of send requests are scanned in place, without an object per message."""

from cpython cimport array as c_array
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy, memset

from bolide.model cimport end_rows as end_column
from bolide.model cimport send_rows as column
from bolide.model.big_endian cimport load32, store32

from bolide.model.limits import HEADER_BYTES_MAX

cdef Py_ssize_t HEADER_LENGTH_MAX = HEADER_BYTES_MAX

cdef enum:
    TOPIC_BYTES_MAX = 127
    SEND_MESSAGE = 10
    SEND_MESSAGE_V2 = 310
    SEND_BATCH_MESSAGE = 320
    END_TRANSACTION = 37


include "_json.pxi"
include "_bytes.pxi"
include "_head.pxi"


# The memory of a run as plain pointers: a typed memoryview costs more to make than most runs take to scan.

cdef int64_t* numbers_of(c_array.array column_array) except? NULL:
    if column_array.ob_descr.typecode != c'q':
        raise TypeError("a run's numbers have 64 bits")
    return <int64_t*>column_array.data.as_longlongs


# ---- one request ------------------------------------------------------------------------------------------------

cdef struct Fields:
    Text group
    Text topic
    Text default_topic
    Text default_queues
    Text queue_id
    Text sys_flag
    Text born
    Text user_flag
    Text properties
    Text reconsume
    Text batch
    # ---- of the end of a transaction
    Text half_at
    Text half_number
    Text verdict
    Text transaction_id
    Text message_id


cdef inline bint knows_code(int64_t code) noexcept nogil:
    return (
        code == SEND_MESSAGE_V2 or code == SEND_MESSAGE or code == SEND_BATCH_MESSAGE or code == END_TRANSACTION
    )


cdef Text* place_in_end(Fields* fields, Text* name) noexcept nogil:
    if named(name, b"producerGroup", 13):
        return &fields.group
    if named(name, b"commitLogOffset", 15):
        return &fields.half_at
    if named(name, b"tranStateTableOffset", 20):
        return &fields.half_number
    if named(name, b"commitOrRollback", 16):
        return &fields.verdict
    if named(name, b"transactionId", 13):
        return &fields.transaction_id
    if named(name, b"msgId", 5):
        return &fields.message_id
    return NULL


cdef inline Text* place_of(Fields* fields, int64_t code, Text* name) noexcept nogil:
    """Where the value of this field belongs; NULL for fields that storing does not need."""
    if code == END_TRANSACTION:
        return place_in_end(fields, name)
    if code != SEND_MESSAGE:
        if name.length != 1:
            return NULL
        if name.at[0] == c'a':
            return &fields.group
        if name.at[0] == c'b':
            return &fields.topic
        if name.at[0] == c'c':
            return &fields.default_topic
        if name.at[0] == c'd':
            return &fields.default_queues
        if name.at[0] == c'e':
            return &fields.queue_id
        if name.at[0] == c'f':
            return &fields.sys_flag
        if name.at[0] == c'g':
            return &fields.born
        if name.at[0] == c'h':
            return &fields.user_flag
        if name.at[0] == c'i':
            return &fields.properties
        if name.at[0] == c'j':
            return &fields.reconsume
        if name.at[0] == c'm':
            return &fields.batch
        return NULL
    if named(name, b"producerGroup", 13):
        return &fields.group
    if named(name, b"topic", 5):
        return &fields.topic
    if named(name, b"defaultTopic", 12):
        return &fields.default_topic
    if named(name, b"defaultTopicQueueNums", 21):
        return &fields.default_queues
    if named(name, b"queueId", 7):
        return &fields.queue_id
    if named(name, b"sysFlag", 7):
        return &fields.sys_flag
    if named(name, b"bornTimestamp", 13):
        return &fields.born
    if named(name, b"flag", 4):
        return &fields.user_flag
    if named(name, b"properties", 10):
        return &fields.properties
    if named(name, b"reconsumeTimes", 14):
        return &fields.reconsume
    if named(name, b"batch", 5):
        return &fields.batch
    return NULL


cdef inline bint take_field(Fields* fields, int64_t code, Text* name, Text* value) noexcept nogil:
    """The last of equal names counts."""
    cdef Text* place = place_of(fields, code, name)
    if place == NULL:
        return True
    if value.quoted:
        place[0] = value[0]
        return True
    memset(place, 0, sizeof(Text))
    return named(value, b"null", 4)  # as if it were not there


cdef Py_ssize_t unescape(Text* text, unsigned char* to) noexcept nogil:
    """The string's UTF-8, which is never longer than its escaped form.  `read_string` has checked the escapes."""
    cdef const unsigned char* at = text.at
    cdef const unsigned char* end = text.at + text.length
    cdef unsigned char* start = to
    cdef const unsigned char* stop
    cdef uint32_t point
    if not text.escaped:
        memcpy(to, at, text.length)
        return text.length
    while at < end:
        stop = <const unsigned char*>memchr(at, c'\\', end - at)
        if stop == NULL:
            stop = end
        memcpy(to, at, stop - at)
        to += stop - at
        if stop == end:
            break
        if stop[1] == c'u':
            point = read_unit(stop + 2, end)
            at = stop + 6
            if point >= 0xD800 and point <= 0xDBFF:
                point = 0x10000 + ((point - 0xD800) << 10) + (read_unit(at + 2, end) - 0xDC00)
                at += 6
            to += put_utf8(to, point)
        else:
            to[0] = <unsigned char>simple_escape(stop[1])
            to += 1
            at = stop + 2
    return to - start


cdef int put_utf8(unsigned char* to, uint32_t point) noexcept nogil:
    if point < 0x80:
        to[0] = <unsigned char>point
        return 1
    if point < 0x800:
        to[0] = <unsigned char>(0xC0 | (point >> 6))
        to[1] = <unsigned char>(0x80 | (point & 0x3F))
        return 2
    if point < 0x10000:
        to[0] = <unsigned char>(0xE0 | (point >> 12))
        to[1] = <unsigned char>(0x80 | ((point >> 6) & 0x3F))
        to[2] = <unsigned char>(0x80 | (point & 0x3F))
        return 3
    to[0] = <unsigned char>(0xF0 | (point >> 18))
    to[1] = <unsigned char>(0x80 | ((point >> 12) & 0x3F))
    to[2] = <unsigned char>(0x80 | ((point >> 6) & 0x3F))
    to[3] = <unsigned char>(0x80 | (point & 0x3F))
    return 4


cdef bint number_of(Text* text, int64_t* value) noexcept nogil:
    return text.at != NULL and not text.escaped and to_number(text, value)


cdef bint int32_of(Text* text, int64_t* value) noexcept nogil:
    return number_of(text, value) and -0x80000000LL <= value[0] <= 0x7FFFFFFFLL


cdef bint fill_row(
    Head* head, Fields* fields, int64_t* row, unsigned char* properties, Py_ssize_t used, Py_ssize_t room
) noexcept nogil:
    """All columns but the topic's number and the frame's positions; False when the request is not plain."""
    cdef Py_ssize_t length = 0
    cdef int64_t default_queues
    if (
        (head.flag != 0 and head.flag != 2)
        or not int32_of(&head.opaque, &row[column.OPAQUE])
        or fields.group.at == NULL or fields.default_topic.at == NULL
        or fields.topic.at == NULL or fields.topic.escaped
        or fields.topic.length < 1 or fields.topic.length > TOPIC_BYTES_MAX
    ):
        return False
    row[column.KIND] = column.KIND_ONE_WAY if head.flag == 2 else 0
    if fields.batch.at != NULL:
        if named(&fields.batch, b"true", 4):
            row[column.KIND] |= column.KIND_BATCH
        elif not named(&fields.batch, b"false", 5):
            return False
    if not (
        int32_of(&fields.default_queues, &default_queues)
        and int32_of(&fields.queue_id, &row[column.QUEUE_ID])
        and int32_of(&fields.sys_flag, &row[column.SYS_FLAG])
        and number_of(&fields.born, &row[column.BORN_TIMESTAMP])
        and int32_of(&fields.user_flag, &row[column.FLAG])
    ):
        return False
    row[column.RECONSUME_TIMES] = 0
    if fields.reconsume.at != NULL and not int32_of(&fields.reconsume, &row[column.RECONSUME_TIMES]):
        return False
    if fields.properties.at != NULL:
        if used + fields.properties.length > room:
            return False
        length = unescape(&fields.properties, properties + used)
    row[column.PROPERTIES_AT] = used
    row[column.PROPERTIES_LENGTH] = length
    row[column.RECALL_HANDLE_LENGTH] = 0
    return True


cdef bint put_text(
    int64_t* place, Text* text, unsigned char* texts, Py_ssize_t* used, Py_ssize_t room
) noexcept nogil:
    """Keep a text of the request; False when there is no room for it."""
    cdef Py_ssize_t length = 0
    if text.at != NULL:
        if used[0] + text.length > room:
            return False
        length = unescape(text, texts + used[0])
    place[0] = used[0]
    place[1] = length
    used[0] += length
    return True


cdef bint fill_end(
    Head* head, Fields* fields, int64_t* row, unsigned char* texts, Py_ssize_t* used, Py_ssize_t room
) noexcept nogil:
    """All columns but the frame's; False when the request is not plain, or somebody waits for its answer."""
    cdef int64_t opaque
    return (
        head.flag == 2
        and int32_of(&head.opaque, &opaque)
        and fields.group.at != NULL
        and number_of(&fields.half_at, &row[end_column.HALF_AT])
        and number_of(&fields.half_number, &row[end_column.HALF_NUMBER])
        and int32_of(&fields.verdict, &row[end_column.VERDICT])
        and put_text(&row[end_column.GROUP_AT], &fields.group, texts, used, room)
        and put_text(&row[end_column.TRANSACTION_ID_AT], &fields.transaction_id, texts, used, room)
        and put_text(&row[end_column.MESSAGE_ID_AT], &fields.message_id, texts, used, room)
    )


cdef Py_ssize_t number_of_topic(list topics, Text* topic, Py_ssize_t last) except -1:
    """Which of the topics it is, the next number if it is none of them; most often it is that of the last request.

    RUN_TOPICS_MAX when there is no room for one more.
    """
    cdef bytes name
    if last < len(topics):
        name = <bytes>topics[last]
        if len(name) == topic.length and memcmp(PyBytes_AS_STRING(name), topic.at, topic.length) == 0:
            return last
    name = PyBytes_FromStringAndSize(<const char*>topic.at, topic.length)
    if name in topics:
        return topics.index(name)
    if len(topics) == column.RUN_TOPICS_MAX:
        return column.RUN_TOPICS_MAX
    topics.append(name)
    return len(topics) - 1


def scan_sends(run, bytearray area not None, Py_ssize_t start, Py_ssize_t end, Py_ssize_t size_max):
    cdef int64_t* rows = numbers_of(run.rows)
    cdef int64_t* ends = numbers_of(run.ends)
    cdef bytearray texts = run.properties
    cdef const unsigned char* buffer = bytes_of(area)
    cdef unsigned char* properties = bytes_of(texts)
    cdef list topics = []
    cdef Py_ssize_t count = 0, end_count = 0, used = 0, before, room = len(texts)
    cdef Py_ssize_t at = start, length, header_length
    cdef const unsigned char* frame
    cdef uint32_t mark
    cdef int64_t* row
    cdef Head head
    cdef Fields fields
    cdef Cursor cursor
    cdef Py_ssize_t topic = 0
    if end > len(area):
        raise ValueError("the end lies outside the buffer")
    while count < column.ROWS_MAX and end - at >= 8:
        frame = buffer + at
        length = load32(frame)
        mark = load32(frame + 4)
        header_length = mark & 0xFFFFFF
        if (
            mark >> 24 or length > size_max or header_length > length - 4 or header_length > HEADER_LENGTH_MAX
            or end - at < 4 + length
        ):
            break
        memset(&head, 0, sizeof(Head))
        memset(&fields, 0, sizeof(Fields))
        cursor.at = frame + 8
        cursor.end = frame + 8 + header_length
        if not read_head(&cursor, &head, &fields):
            break
        if head.code == END_TRANSACTION:
            if end_count == end_column.ENDS_MAX:
                break
            row = &ends[end_count * end_column.COLUMNS]
            before = used
            if not fill_end(&head, &fields, row, properties, &used, room):
                used = before
                break
            row[end_column.FRAME_AT] = at
            row[end_column.FRAME_LENGTH] = 4 + length
            end_count += 1
            at += 4 + length
            continue
        row = &rows[count * column.COLUMNS]
        if not fill_row(&head, &fields, row, properties, used, room):
            break
        topic = number_of_topic(topics, &fields.topic, topic)
        if topic == column.RUN_TOPICS_MAX:
            break
        row[column.TOPIC] = topic
        row[column.BODY_AT] = at + 8 + header_length
        row[column.BODY_LENGTH] = length - 4 - header_length
        row[column.FRAME_AT] = at
        row[column.FRAME_LENGTH] = 4 + length
        used += row[column.PROPERTIES_LENGTH]
        count += 1
        at += 4 + length
    run.buffer = area
    run.topics = topics
    run.count = count
    run.end_count = end_count
    run.properties_used = used
    return at


def blank(Py_ssize_t size):
    return PyByteArray_FromStringAndSize(NULL, size)


def count_marks(const unsigned char[::1] header not None):
    cdef Py_ssize_t at = 0, end = header.shape[0], count = 0
    cdef unsigned char mark
    while at < end:
        mark = header[at]
        if mark == c'"':
            at += 1
            while at < end and header[at] != c'"':
                at += 2 if header[at] == c'\\' else 1
        elif mark == c',' or mark == c':' or mark == c'[' or mark == c'{':
            count += 1
        at += 1
    return count


# ---- the answers ------------------------------------------------------------------------------------------------

cdef const char* HEX = b"0123456789ABCDEF"


cdef unsigned char* put_hex64(unsigned char* to, int64_t value) noexcept nogil:
    cdef int digit
    for digit in range(16):
        to[digit] = HEX[(value >> (60 - 4 * digit)) & 15]
    return to + 16


def encode_send_answers(run, Py_ssize_t first, Py_ssize_t last, bytes store_host not None, bytes tail not None):
    cdef const int64_t* rows = numbers_of(run.rows)
    cdef const int64_t* log_offsets = numbers_of(run.log_offsets)
    cdef const unsigned char* properties = bytes_of(run.properties)
    cdef Py_ssize_t row, size = 0, host_length = len(store_host), tail_length = len(tail)
    cdef const int64_t* values
    cdef unsigned char* start
    cdef unsigned char* to
    cdef Py_ssize_t number, header_length
    for row in range(first, last):
        values = &rows[row * column.COLUMNS]
        size += (
            180 + tail_length + values[column.UNIQUE_KEY_LENGTH] + values[column.RECALL_HANDLE_LENGTH]
            + values[column.RECORDS_COUNT] * (host_length + 17)
        )
    cdef bytes out = PyBytes_FromStringAndSize(NULL, size)
    cdef unsigned char* begin = <unsigned char*>PyBytes_AS_STRING(out)
    to = begin
    for row in range(first, last):
        values = &rows[row * column.COLUMNS]
        if values[column.KIND] & column.KIND_ONE_WAY:
            continue
        start = to
        to = put(to + 8, b'{"code":0,"extFields":{"msgId":"', 32)
        for number in range(values[column.RECORDS_COUNT]):
            if number:
                to[0] = c','
                to += 1
            to = put(to, PyBytes_AS_STRING(store_host), host_length)
            to = put_hex64(to, log_offsets[values[column.RECORDS_AT] + number])
        to = put(to, b'","queueId":"', 13)
        to = put_number(to, values[column.QUEUE_ID])
        to = put(to, b'","queueOffset":"', 17)
        to = put_number(to, values[column.QUEUE_OFFSET])
        to = put(to, b'"', 1)
        if values[column.UNIQUE_KEY_LENGTH]:
            to = put(to, b',"transactionId":"', 18)
            to = put(
                to,
                <const char*>properties + values[column.UNIQUE_KEY_AT],
                values[column.UNIQUE_KEY_LENGTH],
            )
            to = put(to, b'"', 1)
        if values[column.RECALL_HANDLE_LENGTH]:
            to = put(to, b',"recallHandle":"', 17)
            to = put(
                to,
                <const char*>properties + values[column.RECALL_HANDLE_AT],
                values[column.RECALL_HANDLE_LENGTH],
            )
            to = put(to, b'"', 1)
        to = put(to, PyBytes_AS_STRING(tail), tail_length)
        to = put_number(to, values[column.OPAQUE])
        to = put(to, b'}', 1)
        header_length = to - start - 8
        put_prefix(start, header_length, 0)
    return out[: to - begin]
