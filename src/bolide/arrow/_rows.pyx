"""The compiled twin of rows_twin.py: the same results and the same errors, no Python object per message."""
# cython: language_level=3

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memchr, memcmp, memcpy

from bolide.model.big_endian cimport store16, store32
from bolide.record.layout cimport BATCH_ITEM_FIXED_BYTES, ITEM_BODY_AT, ITEM_BODY_LENGTH_AT

from bolide.model.java_hash import java_hash
from bolide.model.limits import SPARK_WRITE_ROWS_MAX
from bolide.model.message import BODY_BYTES_MAX as BODY_MAX
from bolide.model.message import PROPERTIES_BYTES_MAX as PROPERTIES_MAX
from bolide.model.errors import BadRow
from bolide.arrow.rows_twin import DROPPED, DROPPED_FAMILIES, SHARDING_KEY, Texts, too_many

cdef enum:
    FIRST_SLOTS = 1024
    FIRST_BYTES = 4096
    PREFIX_DIGITS = 16
    KEY_DIGITS = 32
    KEY_PAIR_BYTES = 42    # UNIQ_KEY, its end, the digits, the pair's end
    NUMBER_BYTES = 64

cdef uint64_t K1 = 0x9E3779B97F4A7C15ULL
cdef uint64_t K2 = 0xC2B2AE3D27D4EB4FULL
cdef uint64_t K3 = 0xD6E8FEB86659FD93ULL
cdef Py_ssize_t IDS_MAX = SPARK_WRITE_ROWS_MAX
cdef Py_ssize_t BODY_BYTES_MAX = BODY_MAX
cdef Py_ssize_t PROPERTIES_BYTES_MAX = PROPERTIES_MAX
cdef bytes SHARDING_NAME = SHARDING_KEY
cdef const char* DIGITS = b"0123456789ABCDEF"

include "_ids.pxi"

# ---- messages ----------------------------------------------------------------------------------------------------


@cython.final
cdef class Growing:
    cdef char* data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity
    cdef Py_ssize_t rows

    def __dealloc__(self):
        free(self.data)

    cdef int reserve(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t capacity = self.capacity * 2 if self.capacity else FIRST_BYTES
        cdef char* data
        if self.size + more <= self.capacity:
            return 0
        if capacity < self.size + more:
            capacity = self.size + more
        data = <char*>realloc(self.data, capacity)
        if data == NULL:
            raise MemoryError()
        self.data, self.capacity = data, capacity
        return 0

    cdef inline int put(self, const char* data, Py_ssize_t length) except -1:
        if length:
            self.reserve(length)
            memcpy(self.data + self.size, data, length)
            self.size += length
        return 0


cdef inline bint has_separator(const char* data, Py_ssize_t length) noexcept nogil:
    return memchr(data, 1, length) != NULL or memchr(data, 2, length) != NULL


cdef inline bint has_blank(const char* data, Py_ssize_t length) noexcept nogil:
    cdef Py_ssize_t at
    for at in range(length):
        if <uint8_t>data[at] <= 0x20:
            return True
    return False


@cython.final
cdef class RowEncoder:
    """See the twin."""

    cdef readonly Py_ssize_t full
    cdef readonly Py_ssize_t skipped
    cdef IdSet stored
    cdef IdSet seen
    cdef Repeats repeats
    cdef bytes prefix
    cdef bint counts
    cdef uint64_t seed, count
    cdef Py_ssize_t queues, queue_ids, rows_max, size_bytes_max
    cdef list lanes
    cdef Growing pairs
    cdef object columns_given
    cdef View body, tags, keys, properties, sharding_key, queue_id, delay_level, deliver_at
    cdef bint keys_are_lists

    def __init__(
        self, str prefix, *, seed=None, IdSet stored=None, Py_ssize_t queues=0, Py_ssize_t queue_ids=0, Py_ssize_t rows_max=1024,
        Py_ssize_t size_bytes_max=128 * 1024,
    ):
        if len(prefix) != 16 or not prefix.isascii() or rows_max < 1 or queues < 0 or queue_ids < 0:
            raise ValueError("a prefix has 16 digits, and a batch a message")
        self.full = -1
        self.stored = IdSet() if stored is None else stored
        self.seen = IdSet()
        self.repeats = Repeats()
        self.prefix = prefix.encode()
        self.counts = seed is None
        self.seed = 0 if seed is None else seed
        self.queues, self.queue_ids = queues, queue_ids
        self.rows_max, self.size_bytes_max = rows_max, size_bytes_max
        self.lanes = [Growing() for _ in range(1 + queues + queue_ids)]
        self.pairs = Growing()

    def append(self, columns, Py_ssize_t row, Py_ssize_t end):
        if columns is not self.columns_given:
            self.look_at(columns)
        while row < end:
            if not self.append_row(row):
                return row
            row += 1
        return row

    def take(self, Py_ssize_t lane):
        cdef Growing taken = self.lanes[lane]
        self.lanes[lane] = Growing()
        if lane == self.full:
            self.full = -1
        return PyBytes_FromStringAndSize(taken.data, taken.size), taken.rows

    def waiting(self):
        cdef Growing lane
        return [number for number, lane in enumerate(self.lanes) if lane.rows]

    cdef int look_at(self, columns) except -1:
        keys = columns.get("keys")
        self.body, self.tags, self.keys = view_of(columns["body"]), view_of(columns.get("tags")), view_of(keys)
        self.keys_are_lists = isinstance(keys, Texts)
        self.properties = view_of(columns.get("properties"))
        self.sharding_key = view_of(columns.get("sharding_key"))
        self.queue_id = view_of(columns.get("queue_id"))
        self.delay_level, self.deliver_at = view_of(columns.get("delay_level")), view_of(columns.get("deliver_at"))
        self.columns_given = columns
        return 0

    cdef bint append_row(self, Py_ssize_t row) except -1:
        cdef Piece body
        cdef Py_ssize_t lane_number, size, at
        cdef Growing lane
        cdef uint64_t number
        cdef unsigned char* item
        if not self.body.text(row, &body):
            raise BadRow(row, "body", "is null")
        if not 0 < body.length <= BODY_BYTES_MAX:
            raise BadRow(row, "body", f"has {body.length} bytes; a message has from 1 to {BODY_BYTES_MAX}")
        self.write_pairs(row)
        if self.pairs.size + KEY_PAIR_BYTES > PROPERTIES_BYTES_MAX:
            raise BadRow(row, "properties", f"takes more than {PROPERTIES_BYTES_MAX} bytes with tags and keys")
        lane_number = self.lane_of(row)
        lane = self.lanes[lane_number]
        size = BATCH_ITEM_FIXED_BYTES + body.length + self.pairs.size + KEY_PAIR_BYTES
        if lane.rows and (lane.rows >= self.rows_max or lane.size + size > self.size_bytes_max):
            self.full = lane_number
            return False
        number = self.next_id(row, &body)
        if self.stored.has(number):
            self.skipped += 1
            return True
        lane.reserve(size)
        item = <unsigned char*>lane.data + lane.size
        for at in range(ITEM_BODY_AT):
            item[at] = 0
        store32(item, <uint64_t>size & 0xFFFFFFFF)
        store32(item + ITEM_BODY_LENGTH_AT, <uint64_t>body.length & 0xFFFFFFFF)
        memcpy(item + ITEM_BODY_AT, body.data, body.length)
        item += ITEM_BODY_AT + body.length
        store16(item, self.pairs.size + KEY_PAIR_BYTES)
        item += 2
        if self.pairs.size:
            memcpy(item, self.pairs.data, self.pairs.size)
        item += self.pairs.size
        memcpy(item, <const char*>b"UNIQ_KEY\x01", 9)
        memcpy(item + 9, PyBytes_AS_STRING(self.prefix), PREFIX_DIGITS)
        for at in range(16):
            item[9 + PREFIX_DIGITS + at] = DIGITS[(number >> (60 - 4 * at)) & 15]
        item[KEY_PAIR_BYTES - 1] = 2
        lane.size += size
        lane.rows += 1
        return True

    cdef uint64_t next_id(self, Py_ssize_t row, Piece* body) except? 0:
        cdef uint64_t number
        cdef int64_t queue_id
        self.count += 1
        if self.counts:
            return self.count
        if self.count > <uint64_t>IDS_MAX:
            raise too_many()
        number = mixed(mixed(self.seed, body.data, body.length), self.pairs.data, self.pairs.size)
        if self.queue_id is not None and self.queue_id.number(row, &queue_id):
            number = fold(number ^ <uint64_t>(queue_id + 1), K2)
        number = finished(number)
        if self.seen.put(number):
            return number
        return finished(number ^ self.repeats.next(number) * K2)

    cdef Py_ssize_t lane_of(self, Py_ssize_t row) except -1:
        cdef int64_t queue_id
        cdef Piece key
        cdef Py_ssize_t at
        cdef int64_t value
        cdef uint64_t hashed = 0
        if self.queue_id is not None and self.queue_id.number(row, &queue_id):
            if not 0 <= queue_id < self.queue_ids:
                raise BadRow(row, "queue_id", f"is {queue_id}; the topic has the queues 0 to {self.queue_ids - 1}")
            return 1 + self.queues + queue_id
        if self.queues == 0 or self.sharding_key is None or not self.sharding_key.text(row, &key):
            return 0
        for at in range(key.length):
            if <uint8_t>key.data[at] >= 0x80:
                value = java_hash(PyBytes_FromStringAndSize(key.data, key.length).decode())
                break
            hashed = (31 * hashed + <uint8_t>key.data[at]) & 0xFFFFFFFF
        else:
            value = <int32_t>hashed
        return 1 + (-value if value < 0 else value) % self.queues

    cdef int write_pairs(self, Py_ssize_t row) except -1:
        """All properties but the unique key."""
        cdef Piece text
        cdef bint has_sharding_key = False
        cdef int64_t number
        self.pairs.size = 0
        if self.keys is not None:
            self.write_keys(row)
        if self.tags is not None and self.tags.text(row, &text) and text.length:
            if has_blank(text.data, text.length) or has_bars(&text) or (text.length == 1 and text.data[0] == c"*"):
                raise BadRow(
                    row, "tags", "is one word: no consumer could ask for a tag that is *, or has a blank or || in it"
                )
            self.write_pair(b"TAGS\x01", 5, &text)
        if self.sharding_key is not None and self.sharding_key.text(row, &text) and text.length:
            has_sharding_key = True
            self.check(row, "sharding_key", &text)
            self.pairs.put(PyBytes_AS_STRING(SHARDING_NAME), PyBytes_GET_SIZE(SHARDING_NAME))
            self.write_pair(b"\x01", 1, &text)
        if self.properties is not None and not self.properties.is_null(row):
            self.write_map(row, has_sharding_key)
        if self.delay_level is not None and self.delay_level.number(row, &number):
            self.write_number(b"DELAY\x01", number)
        if self.deliver_at is not None and self.deliver_at.number(row, &number):
            self.write_number(b"TIMER_DELIVER_MS\x01", number)
        return 0

    cdef int write_keys(self, Py_ssize_t row) except -1:
        cdef Piece text
        cdef Py_ssize_t begin, end, at, start = self.pairs.size
        if not self.keys_are_lists:
            if self.keys.text(row, &text) and text.length:
                self.check(row, "keys", &text)
                self.write_pair(b"KEYS\x01", 5, &text)
            return 0
        if self.keys.is_null(row):
            return 0
        self.keys.span(row, &begin, &end)
        for at in range(begin, end):
            if not self.keys.items.text(at, &text) or text.length == 0:
                continue
            if has_blank(text.data, text.length):
                raise BadRow(row, "keys", "has a blank in a key: each is one word")
            if self.pairs.size == start:
                self.pairs.put(b"KEYS\x01", 5)
            else:
                self.pairs.put(b" ", 1)
            self.pairs.put(text.data, text.length)
        if self.pairs.size > start:
            self.pairs.put(b"\x02", 1)
        return 0

    cdef int write_map(self, Py_ssize_t row, bint has_sharding_key) except -1:
        cdef Piece name, value
        cdef Py_ssize_t begin, end, at
        self.properties.span(row, &begin, &end)
        for at in range(begin, end):
            if not self.properties.items.text(at, &name) or name.length == 0:
                continue
            if not self.properties.values.text(at, &value) or value.length == 0:
                continue
            if is_dropped(&name) or (has_sharding_key and is_name(&name, SHARDING_NAME)):
                continue
            self.check(row, "properties", &name)
            self.check(row, "properties", &value)
            self.pairs.put(name.data, name.length)
            self.write_pair(b"\x01", 1, &value)
        return 0

    cdef inline int write_pair(self, const char* name, Py_ssize_t length, Piece* value) except -1:
        self.pairs.put(name, length)
        self.pairs.put(value.data, value.length)
        return self.pairs.put(b"\x02", 1)

    cdef int write_number(self, const char* name, int64_t number) except -1:
        cdef char text[NUMBER_BYTES]
        return self.pairs.put(text, snprintf(text, NUMBER_BYTES, b"%s%lld\x02", name, <long long>number))

    cdef inline int check(self, Py_ssize_t row, str column, Piece* text) except -1:
        if has_separator(text.data, text.length):
            raise BadRow(row, column, "contains a separator character (U+0001, U+0002)")
        return 0


cdef bint has_bars(Piece* text) noexcept:
    cdef Py_ssize_t at
    for at in range(text.length - 1):
        if text.data[at] == c"|" and text.data[at + 1] == c"|":
            return True
    return False


cdef inline bint is_name(Piece* name, bytes known) noexcept:
    return PyBytes_GET_SIZE(known) == name.length and memcmp(PyBytes_AS_STRING(known), name.data, name.length) == 0


cdef list DROPPED_NAMES = sorted(DROPPED)
cdef list FAMILY_NAMES = list(DROPPED_FAMILIES)


cdef bint is_dropped(Piece* name) noexcept:
    cdef bytes known
    for known in FAMILY_NAMES:
        if name.length >= PyBytes_GET_SIZE(known):
            if memcmp(PyBytes_AS_STRING(known), name.data, PyBytes_GET_SIZE(known)) == 0:
                return True
    for known in DROPPED_NAMES:
        if is_name(name, known):
            return True
    return False
