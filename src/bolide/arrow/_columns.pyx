"""The compiled twin of columns_twin.py: the same results and the same errors, no Python object per message.

Every position is compared with the end of the block, once per field group, before the bytes there are read.
"""
# cython: language_level=3

cimport cython
from libc.limits cimport INT_MAX
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memchr, memcmp, memcpy

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from bolide.model.big_endian cimport load32, load64
from bolide.record._checksum cimport holds
from bolide.record.layout cimport (
    BLANK_BYTES,
    BORN_HOST_AT,
    BORN_TIMESTAMP_AT,
    CHECK_SUMS,
    COMPRESSED,
    FIXED_BYTES,
    FLAG_AT,
    HOST_V4_BYTES,
    HOST_V6_BYTES,
    LOG_OFFSET_AT,
    MAGIC_AT,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    PREPARED,
    QUEUE_ID_AT,
    RECONSUME_TIMES_AFTER,
    ROLLBACK,
    SIZE_AT,
    TRANSACTION_MASK,
    RecordLook,
    find_parts,
)
from bolide.store.queue_slots cimport SLOTS, QueueSlot, find_slot, is_slot_of

from bolide.model.errors import MalformedRecord
from bolide.model.pairs import parse_properties
from bolide.arrow.columns_twin import (
    BAD_BODIES,
    BROKER_NAME_BYTES_MAX,
    OF_PROPERTIES,
    ROWS_MAX,
    SIZE_BYTES_MAX,
    TIME_MS_END,
    stranger,
)
from bolide.model.errors import BadBody
from bolide.record.compress import unpack_body, unpacked_at_most
from bolide.record.layout import open_record
from bolide.record.message_id import format_host

cdef enum:
    PAIRS_INLINE = 64      # more properties than this are left to Python
    HOST_TEXT_BYTES = 64
    FIRST_BYTES = 4096

cdef int64_t TIME_MS_MAX = 9223372036854775LL
cdef uint64_t HIGH_BITS = 0x8080808080808080ULL

ctypedef const unsigned char* Bytes

include "_buffers.pxi"
include "_texts.pxi"
include "_log.pxi"

# ---- the builder ----------------------------------------------------------------------------------------------

@cython.final
cdef class ColumnBuilder:
    """See the twin."""

    cdef readonly Py_ssize_t rows
    cdef readonly Py_ssize_t size_bytes
    cdef readonly Py_ssize_t skipped
    cdef readonly Py_ssize_t found
    cdef readonly Py_ssize_t in_vain_bytes
    cdef Py_ssize_t rows_max
    cdef Py_ssize_t size_bytes_max
    cdef bytes broker_name
    cdef bytes queue_topic  # None where records of any queue are taken
    cdef int64_t queue_number
    cdef readonly int64_t offset_due
    cdef bint looks_into_bodies, skips_bad_bodies, fails_on_bad_bodies, reads_properties
    cdef tuple names
    cdef list tags
    cdef frozenset wanted_keys
    cdef dict columns
    cdef Properties properties
    cdef HostText born
    cdef HostText store
    # The columns again, None where they are not wanted.
    cdef Texts topic, broker, body, body_error, tag, key, message_id, offset_id, born_host, store_host
    cdef TextLists keys
    cdef TextMaps pairs
    cdef Times born_time, store_time
    cdef Numbers queue_id, queue_offset, reconsume_times, flag, sys_flag, log_offset

    def __init__(
        self, str broker_name, columns, *, queue=None, tags=(), keys=(), bad_bodies=BAD_BODIES[0], rows_max=65_536,
        size_bytes_max=8 * 1024 * 1024,
    ):
        if not 0 < rows_max <= ROWS_MAX or not 0 < size_bytes_max <= SIZE_BYTES_MAX:
            raise ValueError(f"a batch of {rows_max} rows and {size_bytes_max} bytes is out of range")
        unknown = [name for name in columns if name not in COLUMN_CLASSES]
        if unknown:
            raise ValueError(f"no such column: {', '.join(unknown)}")
        if bad_bodies not in BAD_BODIES:
            raise ValueError(f"bad bodies are {', '.join(BAD_BODIES)}, not {bad_bodies!r}")
        self.names = tuple(columns)
        self.wanted_keys = frozenset([key.encode() for key in keys])
        self._turn_to(broker_name, queue, tags)
        self.rows_max = rows_max
        self.size_bytes_max = size_bytes_max
        self.skips_bad_bodies, self.fails_on_bad_bodies = bad_bodies == "skip", bad_bodies == "fail"
        self.looks_into_bodies = bad_bodies != "deliver" or not {"body", "bodyError"}.isdisjoint(columns)
        self.properties = Properties()
        self.columns = {}
        self.start()

    def turn_to(self, str broker_name, queue not None, tags=()):
        self._turn_to(broker_name, queue, tags)

    cdef int _turn_to(self, str broker_name, queue, tags) except -1:
        name = broker_name.encode()
        if len(name) > BROKER_NAME_BYTES_MAX:
            raise ValueError("the broker name is too long")
        self.broker_name = name
        if queue is not None:
            self.queue_topic, self.queue_number = queue[0].encode(), queue[1]
        self.tags = [tag.encode() for tag in frozenset(tags)]
        self.reads_properties = (
            bool(self.tags) or bool(self.wanted_keys) or not OF_PROPERTIES.isdisjoint(self.names)
        )
        self.offset_due = 0
        return 0

    cdef int start(self) except -1:
        cdef dict made = {}
        cdef Column column, before
        cdef Growing memory, memory_before
        for name in self.names:
            made[name] = column = COLUMN_CLASSES[name]()
            before = self.columns.get(name)
            if before is not None:  # the next batch will be much like the last one
                for memory, memory_before in zip(column.memory(), before.memory()):
                    memory.reserve(memory_before.size + memory_before.size // 16)
        self.rows = 0
        self.size_bytes = 0
        self.columns = made
        self.topic, self.broker, self.body = made.get("topic"), made.get("brokerName"), made.get("body")
        self.body_error = made.get("bodyError")
        self.tag, self.keys, self.pairs = made.get("tags"), made.get("keys"), made.get("properties")
        self.key = made.get("key")
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
        if self.body_error is not None:
            self.body_error.put_nulls_up_to(self.rows)
        for name, column in self.columns.items():
            taken[name] = column.buffers()
        self.start()
        return taken

    def append(self, bytes data not None, Py_ssize_t at, int64_t offset_begin, int64_t offset_end):
        cdef Bytes base = <Bytes>PyBytes_AS_STRING(data)
        cdef Py_ssize_t end = PyBytes_GET_SIZE(data)
        cdef Py_ssize_t enough = self.in_vain_bytes + self.size_bytes_max
        cdef RecordLook look
        if at < 0:
            raise ValueError("a position is not negative")
        while at < end and not self.is_full() and self.in_vain_bytes < enough:
            if not find_parts(base + at, end - at, &look):
                open_record(data, at, end)  # which says what is wrong
                raise MalformedRecord(f"no record at position {at}")
            if offset_begin <= look.queue_offset < offset_end:
                if self.queue_topic is not None:
                    self.check_place(base + at, &look)
                self.found += 1
                self.append_record(base + at, &look)
            at += look.size
        return at

    def append_log(
        self, bytes data not None, Py_ssize_t at, Py_ssize_t end, int64_t base, LogFilter wanted not None
    ):
        cdef Bytes start = <Bytes>PyBytes_AS_STRING(data)
        cdef RecordLook look
        cdef int found
        if not 0 <= at <= end <= PyBytes_GET_SIZE(data):
            raise ValueError(f"there is no part from {at} to {end} in {PyBytes_GET_SIZE(data)} bytes")
        while at < end and not self.is_full():
            found = look_into_log(start + at, end - at, base + at, &look)
            if found != C_DONE:
                return at, found
            if wanted.takes(start + at, &look):
                if not holds(start + at, look.size, look.body_at, look.body_length, CHECK_SUMS):
                    return at, C_UNSOUND
                self.append_record(start + at, &look)
            at += look.size
        return at, C_DONE

    cdef inline int check_place(self, Bytes record, RecordLook* look) except -1:
        if (
            look.queue_id != self.queue_number
            or look.queue_offset < self.offset_due
            or look.topic_length != PyBytes_GET_SIZE(self.queue_topic)
            or memcmp(record + look.topic_at, PyBytes_AS_STRING(self.queue_topic), look.topic_length) != 0
        ):
            topic = PyBytes_FromStringAndSize(<const char*>record + look.topic_at, look.topic_length)
            raise stranger(
                (self.queue_topic, self.queue_number), (topic, look.queue_id), look.queue_offset, self.offset_due
            )
        self.offset_due = look.queue_offset + 1
        return 0

    cdef int append_record(self, Bytes record, RecordLook* look) except -1:
        cdef Pair* tag = NULL
        cdef Pair* keys = NULL
        if self.reads_properties:
            self.properties.read(record + look.properties_at, look.properties_length)
            tag = self.properties.find(b"TAGS", 4)
            keys = self.properties.find(b"KEYS", 4)
            if self.tags and not self.is_wanted(tag):
                return 0
            if self.wanted_keys and not self.has_wanted_key(keys):
                return 0
        if look.sys_flag & COMPRESSED and self.looks_into_bodies:
            if not self.append_packed(record, look):
                return 0
        elif self.body is not None:
            self.body.put(record + look.body_at, look.body_length)
        self.append_properties(tag, keys)
        self.append_places(record, look)
        self.append_numbers(record, look)
        self.rows += 1
        self.size_bytes += look.size
        return 0

    cdef bint append_packed(self, Bytes record, RecordLook* look) except -1:
        """The body of a message that is marked as packed; False when the message is to be left out."""
        cdef bytes body = PyBytes_FromStringAndSize(<const char*>record + look.body_at, look.body_length)
        cdef bytes reason
        try:
            body = unpack_body(body, look.sys_flag)
        except MalformedRecord as error:
            self.in_vain_bytes += unpacked_at_most(body, look.sys_flag)
            if self.fails_on_bad_bodies:
                raise BadBody(f"the message at offset {look.queue_offset}: {error}")
            if self.skips_bad_bodies:
                self.skipped += 1
                return False
            if self.body_error is not None:
                reason = str(error).encode()
                self.body_error.put_nulls_up_to(self.rows)
                self.body_error.put(PyBytes_AS_STRING(reason), PyBytes_GET_SIZE(reason))
        else:
            if self.body is None:
                self.in_vain_bytes += PyBytes_GET_SIZE(body)
        if self.body is not None:
            self.body.put(PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body))
            self.size_bytes += PyBytes_GET_SIZE(body) - look.body_length
        return True

    cdef bint is_wanted(self, Pair* tag) except -1:
        cdef bytes wanted
        if tag == NULL:
            return False
        for wanted in self.tags:
            if PyBytes_GET_SIZE(wanted) == tag.value_length:
                if memcmp(PyBytes_AS_STRING(wanted), tag.value, tag.value_length) == 0:
                    return True
        return False

    cdef bint has_wanted_key(self, Pair* keys) except -1:
        """An object per key, but only where keys are asked for."""
        if keys == NULL:
            return False
        words = PyBytes_FromStringAndSize(<const char*>keys.value, keys.value_length).split(b" ")
        return not self.wanted_keys.isdisjoint(words)

    cdef int append_properties(self, Pair* tag, Pair* keys) except -1:
        if self.tag is not None:
            if tag == NULL:
                self.tag.put_null()
            else:
                self.tag.put(tag.value, tag.value_length)
        if self.key is not None:
            if keys == NULL:
                self.key.put_null()
            else:
                self.key.put(keys.value, keys.value_length)
        if self.keys is not None:
            if keys == NULL:
                self.keys.put_words(NULL, 0)
            else:
                self.keys.put_words(keys.value, keys.value_length)
        if self.pairs is not None:
            self.pairs.put(self.properties)
        return 0

    cdef int append_places(self, Bytes record, RecordLook* look) except -1:
        """Topic, broker, hosts and ids."""
        cdef Pair* unique
        cdef char place[2 * (HOST_V6_BYTES + 8)]
        cdef char* place_end
        if self.topic is not None:
            if is_utf8(record + look.topic_at, look.topic_length):
                self.topic.put(record + look.topic_at, look.topic_length)
            else:
                topic = repaired(record + look.topic_at, look.topic_length)
                self.topic.put(PyBytes_AS_STRING(topic), PyBytes_GET_SIZE(topic))
        if self.broker is not None:
            self.broker.put(PyBytes_AS_STRING(self.broker_name), PyBytes_GET_SIZE(self.broker_name))
        if self.born_host is not None:
            write_host(&self.born, record + BORN_HOST_AT, look.born_host_length)
            self.born_host.put(self.born.text, self.born.length)
        if self.store_host is not None:
            write_host(&self.store, record + look.store_host_at, look.store_host_length)
            self.store_host.put(self.store.text, self.store.length)
        unique = self.properties.find(b"UNIQ_KEY", 8) if self.message_id is not None else NULL
        if unique != NULL:
            self.message_id.put(unique.value, unique.value_length)
        if self.offset_id is not None or (self.message_id is not None and unique == NULL):
            place_end = write_hex(place, record + look.store_host_at, look.store_host_length)
            place_end = write_hex(place_end, record + LOG_OFFSET_AT, 8)
            if self.offset_id is not None:
                self.offset_id.put(place, place_end - place)
            if self.message_id is not None and unique == NULL:
                self.message_id.put(place, place_end - place)
        return 0

    cdef int append_numbers(self, Bytes record, RecordLook* look) except -1:
        if self.queue_id is not None:
            self.queue_id.values.put32(<int32_t>load32(record + QUEUE_ID_AT))
        if self.flag is not None:
            self.flag.values.put32(<int32_t>load32(record + FLAG_AT))
        if self.queue_offset is not None:
            self.queue_offset.values.put64(look.queue_offset)
        if self.log_offset is not None:
            self.log_offset.values.put64(look.log_offset)
        if self.sys_flag is not None:
            self.sys_flag.values.put32(<int32_t>look.sys_flag)
        if self.born_time is not None:
            self.born_time.put(<int64_t>load64(record + BORN_TIMESTAMP_AT))
        if self.store_time is not None:
            self.store_time.put(look.store_timestamp_ms)
        if self.reconsume_times is not None:
            self.reconsume_times.values.put32(<int32_t>load32(record + look.store_host_end + RECONSUME_TIMES_AFTER))
        return 0


COLUMN_CLASSES = {
    "topic": Texts,
    "brokerName": Texts,
    "queueId": Numbers,
    "queueOffset": Numbers,
    "body": Texts,
    "bodyError": Texts,
    "tags": Texts,
    "key": Texts,
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
