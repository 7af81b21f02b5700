"""The compiled twin of columns_twin.py: the same results and the same errors, no Python object per message.

Every position is compared with the end of the block, once per field group, before the bytes there are read.
"""
# cython: language_level=3

cimport cython
from libc.limits cimport INT_MAX
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport free, realloc
from libc.string cimport memchr, memcmp, memcpy

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from bolide.model.big_endian cimport load16, load32, load64

from bolide.model.errors import MalformedRecord
from bolide.model.message import parse_properties
from bolide.pipeline.columns_twin import BROKER_NAME_BYTES_MAX, ROWS_MAX, SIZE_BYTES_MAX
from bolide.record.compress import unpack_body
from bolide.record.message_id import format_host

cdef enum:
    FIXED_BYTES = 91
    HEAD_BYTES = 48
    COUNTS_BYTES = 16
    HOST_V4_BYTES = 8
    HOST_V6_BYTES = 20
    COMPRESSED = 0x1
    BORN_HOST_V6 = 0x10
    STORE_HOST_V6 = 0x20
    PAIRS_INLINE = 64      # more properties than this are left to Python
    HOST_TEXT_BYTES = 64
    FIRST_BYTES = 4096

cdef uint32_t MAGIC_V1 = 0xDAA320A7
cdef uint32_t MAGIC_V2 = 0xDAA320AB
cdef int64_t TIME_MS_MAX = 9223372036854775LL
cdef uint64_t HIGH_BITS = 0x8080808080808080ULL

ctypedef const unsigned char* Bytes

include "_buffers.pxi"
include "_texts.pxi"

# ---- the builder ----------------------------------------------------------------------------------------------

cdef struct Record:
    # Where the parts of one record are; all of them lie inside of it.
    Bytes base
    Bytes born_host
    Py_ssize_t born_host_length
    Bytes store_time
    Bytes store_host
    Py_ssize_t store_host_length
    Bytes counts
    Bytes body
    Py_ssize_t body_length
    Bytes topic
    Py_ssize_t topic_length
    Bytes properties
    Py_ssize_t properties_length
    int64_t queue_offset
    int32_t sys_flag


@cython.final
cdef class ColumnBuilder:
    """See the twin."""

    cdef readonly Py_ssize_t rows
    cdef readonly Py_ssize_t size_bytes
    cdef Py_ssize_t rows_max
    cdef Py_ssize_t size_bytes_max
    cdef bytes broker_name
    cdef tuple names
    cdef list tags
    cdef dict columns
    cdef Properties properties
    cdef HostText born
    cdef HostText store
    # The columns again, None where they are not wanted.
    cdef Texts topic, broker, body, tag, message_id, offset_id, born_host, store_host
    cdef TextLists keys
    cdef TextMaps pairs
    cdef Times born_time, store_time
    cdef Numbers queue_id, queue_offset, reconsume_times, flag, sys_flag, log_offset

    def __init__(self, str broker_name, columns, *, tags=(), rows_max=65_536, size_bytes_max=8 * 1024 * 1024):
        if not 0 < rows_max <= ROWS_MAX or not 0 < size_bytes_max <= SIZE_BYTES_MAX:
            raise ValueError(f"a batch of {rows_max} rows and {size_bytes_max} bytes is out of range")
        if len(broker_name.encode()) > BROKER_NAME_BYTES_MAX:
            raise ValueError("the broker name is too long")
        unknown = [name for name in columns if name not in COLUMN_CLASSES]
        if unknown:
            raise ValueError(f"no such column: {', '.join(unknown)}")
        self.broker_name = broker_name.encode()
        self.names = tuple(columns)
        self.tags = [tag.encode() for tag in frozenset(tags)]
        self.rows_max = rows_max
        self.size_bytes_max = size_bytes_max
        self.properties = Properties()
        self.start()

    cdef int start(self) except -1:
        cdef dict made = {}
        for name in self.names:
            made[name] = COLUMN_CLASSES[name]()
        self.rows = 0
        self.size_bytes = 0
        self.columns = made
        self.topic, self.broker, self.body = made.get("topic"), made.get("brokerName"), made.get("body")
        self.tag, self.keys, self.pairs = made.get("tags"), made.get("keys"), made.get("properties")
        self.message_id, self.offset_id = made.get("msgId"), made.get("offsetMsgId")
        self.born_time, self.store_time = made.get("bornTimestamp"), made.get("storeTimestamp")
        self.born_host, self.store_host = made.get("bornHost"), made.get("storeHost")
        self.queue_id, self.queue_offset = made.get("queueId"), made.get("queueOffset")
        self.reconsume_times, self.log_offset = made.get("reconsumeTimes"), made.get("logOffset")
        self.flag, self.sys_flag = made.get("flag"), made.get("sysFlag")
        return 0

    @property
    def full(self):
        return self.is_full()

    cdef inline bint is_full(self) noexcept:
        return self.rows >= self.rows_max or self.size_bytes >= self.size_bytes_max

    def take(self):
        cdef Column column
        cdef dict taken = {}
        for name, column in self.columns.items():
            taken[name] = column.buffers()
        self.start()
        return taken

    def append(self, bytes data not None, Py_ssize_t at, int64_t offset_begin, int64_t offset_end):
        cdef Bytes base = <Bytes>PyBytes_AS_STRING(data)
        cdef Py_ssize_t end = PyBytes_GET_SIZE(data)
        cdef Py_ssize_t size
        cdef Record record
        if at < 0:
            raise ValueError("a position is not negative")
        while at < end and not self.is_full():
            if end - at < FIXED_BYTES:
                raise MalformedRecord(f"{end - at} bytes at position {at} are too few for a record")
            size = load32(base + at)
            if size < FIXED_BYTES or size > end - at:
                raise MalformedRecord(f"the record at position {at} says it has {size} bytes of {end - at}")
            find_parts(base + at, size, at, &record)
            if offset_begin <= record.queue_offset < offset_end:
                self.append_record(&record, size, at)
            at += size
        return at

    cdef int append_record(self, Record* record, Py_ssize_t size, Py_ssize_t at) except -1:
        cdef Pair* tag
        cdef bytes body
        self.properties.read(record.properties, record.properties_length)
        tag = self.properties.find(b"TAGS", 4)
        if self.tags and not self.is_wanted(tag):
            return 0
        if self.body is not None:
            if record.sys_flag & COMPRESSED:
                body = unpacked(record, at)
                self.body.put(PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body))
                size += PyBytes_GET_SIZE(body) - record.body_length
            else:
                self.body.put(record.body, record.body_length)
        self.append_properties(tag)
        self.append_places(record)
        self.append_numbers(record)
        self.rows += 1
        self.size_bytes += size
        return 0

    cdef bint is_wanted(self, Pair* tag) except -1:
        cdef bytes wanted
        if tag == NULL:
            return False
        for wanted in self.tags:
            if PyBytes_GET_SIZE(wanted) == tag.value_length:
                if memcmp(PyBytes_AS_STRING(wanted), tag.value, tag.value_length) == 0:
                    return True
        return False

    cdef int append_properties(self, Pair* tag) except -1:
        cdef Pair* keys
        if self.tag is not None:
            if tag == NULL:
                self.tag.put_null()
            else:
                self.tag.put(tag.value, tag.value_length)
        if self.keys is not None:
            keys = self.properties.find(b"KEYS", 4)
            if keys == NULL:
                self.keys.put_words(NULL, 0)
            else:
                self.keys.put_words(keys.value, keys.value_length)
        if self.pairs is not None:
            self.pairs.put(self.properties)
        return 0

    cdef int append_places(self, Record* record) except -1:
        """Topic, broker, hosts and ids."""
        cdef Pair* unique
        cdef char place[2 * (HOST_V6_BYTES + 8)]
        cdef char* place_end
        if self.topic is not None:
            if is_utf8(record.topic, record.topic_length):
                self.topic.put(record.topic, record.topic_length)
            else:
                topic = repaired(record.topic, record.topic_length)
                self.topic.put(PyBytes_AS_STRING(topic), PyBytes_GET_SIZE(topic))
        if self.broker is not None:
            self.broker.put(PyBytes_AS_STRING(self.broker_name), PyBytes_GET_SIZE(self.broker_name))
        if self.born_host is not None:
            write_host(&self.born, record.born_host, record.born_host_length)
            self.born_host.put(self.born.text, self.born.length)
        if self.store_host is not None:
            write_host(&self.store, record.store_host, record.store_host_length)
            self.store_host.put(self.store.text, self.store.length)
        unique = self.properties.find(b"UNIQ_KEY", 8) if self.message_id is not None else NULL
        if unique != NULL:
            self.message_id.put(unique.value, unique.value_length)
        if self.offset_id is not None or (self.message_id is not None and unique == NULL):
            place_end = write_hex(place, record.store_host, record.store_host_length)
            place_end = write_hex(place_end, record.base + 28, 8)
            if self.offset_id is not None:
                self.offset_id.put(place, place_end - place)
            if self.message_id is not None and unique == NULL:
                self.message_id.put(place, place_end - place)
        return 0

    cdef int append_numbers(self, Record* record) except -1:
        if self.queue_id is not None:
            self.queue_id.values.put32(<int32_t>load32(record.base + 12))
        if self.flag is not None:
            self.flag.values.put32(<int32_t>load32(record.base + 16))
        if self.queue_offset is not None:
            self.queue_offset.values.put64(record.queue_offset)
        if self.log_offset is not None:
            self.log_offset.values.put64(<int64_t>load64(record.base + 28))
        if self.sys_flag is not None:
            self.sys_flag.values.put32(record.sys_flag)
        if self.born_time is not None:
            self.born_time.put(<int64_t>load64(record.base + 40))
        if self.store_time is not None:
            self.store_time.put(<int64_t>load64(record.store_time))
        if self.reconsume_times is not None:
            self.reconsume_times.values.put32(<int32_t>load32(record.counts))
        return 0


cdef int find_parts(Bytes base, Py_ssize_t size, Py_ssize_t at, Record* record) except -1:
    """Check one record of `size` bytes and note where its parts are.  `at` is only for the error."""
    cdef uint32_t magic = load32(base + 4)
    cdef Py_ssize_t cursor, width
    if magic != MAGIC_V1 and magic != MAGIC_V2:
        raise MalformedRecord(f"no record at position {at}: magic {hex(magic)}")
    record.base = base
    record.queue_offset = <int64_t>load64(base + 20)
    record.sys_flag = <int32_t>load32(base + 36)
    record.born_host = base + HEAD_BYTES
    record.born_host_length = HOST_V6_BYTES if record.sys_flag & BORN_HOST_V6 else HOST_V4_BYTES
    record.store_time = record.born_host + record.born_host_length
    record.store_host = record.store_time + 8
    record.store_host_length = HOST_V6_BYTES if record.sys_flag & STORE_HOST_V6 else HOST_V4_BYTES
    record.counts = record.store_host + record.store_host_length
    record.body = record.counts + COUNTS_BYTES
    cursor = record.body - base
    if cursor > size:
        raise broken(at, record, "its hosts do not fit")
    record.body_length = load32(record.counts + 12)
    cursor += record.body_length
    width = 1 if magic == MAGIC_V1 else 2
    if cursor + width > size:
        raise broken(at, record, f"a body of {record.body_length} bytes does not fit")
    record.topic_length = base[cursor] if width == 1 else load16(base + cursor)
    cursor += width
    record.topic = base + cursor
    cursor += record.topic_length
    if cursor + 2 > size:
        raise broken(at, record, "its topic does not fit")
    record.properties_length = load16(base + cursor)
    record.properties = base + cursor + 2
    if cursor + 2 + record.properties_length != size:
        raise broken(at, record, "its properties do not end where it ends")
    return 0


cdef object broken(Py_ssize_t at, Record* record, str why):
    return MalformedRecord(f"the record at position {at}, queue offset {record.queue_offset}: {why}")


cdef bytes unpacked(Record* record, Py_ssize_t at):
    body = PyBytes_FromStringAndSize(<const char*>record.body, record.body_length)
    try:
        return unpack_body(body, record.sys_flag)
    except MalformedRecord as error:
        raise broken(at, record, str(error)) from error


COLUMN_CLASSES = {
    "topic": Texts,
    "brokerName": Texts,
    "queueId": Numbers,
    "queueOffset": Numbers,
    "body": Texts,
    "tags": Texts,
    "keys": TextLists,
    "properties": TextMaps,
    "msgId": Texts,
    "offsetMsgId": Texts,
    "bornTimestamp": Times,
    "storeTimestamp": Times,
    "bornHost": Texts,
    "storeHost": Texts,
    "reconsumeTimes": Numbers,
    "flag": Numbers,
    "sysFlag": Numbers,
    "logOffset": Numbers,
}
