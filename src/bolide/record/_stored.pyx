"""The compiled twin of stored_twin.py: the same messages, which read what they say when they are asked for it."""
# cython: language_level=3

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memchr, memcmp

from bolide.model.big_endian cimport load32, load64
from bolide.record.layout cimport (
    BORN_HOST_AT,
    BORN_TIMESTAMP_AT,
    COMPRESSED,
    FLAG_AT,
    NAME_END,
    PAIR_END,
    RECONSUME_TIMES_AFTER,
    RecordLook,
    find_parts,
)

from bolide.model.limits import BODY_UNPACKED_BYTES_MAX
from bolide.model.message import Property
from bolide.model.pairs import parse_properties
from bolide.model.numbers import INT32_MAX
from bolide.record.compress import unpacked_at_most
from bolide.record.layout import open_record
from bolide.record.message_id import format_offset_id
from bolide.record.stored_twin import MESSAGE_COST_BYTES as MESSAGE_COST
from bolide.record.stored_twin import PROPERTY_COST_BYTES as PROPERTY_COST
from bolide.record.stored_twin import StoredMessage as Readable
from bolide.record.stored_twin import host_text, unpacked

ctypedef const unsigned char* Bytes

cdef enum:
    PIECE_BYTES = 32000
    PART_MIN = 16

cdef Py_ssize_t MESSAGE_COST_BYTES = MESSAGE_COST
cdef Py_ssize_t PROPERTY_COST_BYTES = PROPERTY_COST
cdef tuple FIELDS = tuple(Readable.__dataclass_fields__)
cdef str TAGS = Property.TAGS
cdef str KEYS = Property.KEYS
cdef str UNIQUE_KEY = Property.UNIQUE_KEY


@cython.final
@cython.no_gc  # it holds bytes and texts: a poll of thousands must not have the collector look at each
@cython.freelist(256)
cdef class StoredMessage:
    __doc__ = Readable.__doc__

    cdef bytes data  # the piece of the answer that its record is in
    cdef Py_ssize_t at
    cdef RecordLook look
    cdef str _topic
    cdef bytes _body
    cdef object _properties
    cdef str _born_host
    cdef str _store_host
    cdef str _message_id
    cdef str _offset_message_id
    cdef readonly str broker_name
    cdef readonly str body_error
    cdef readonly int64_t queue_offset
    cdef readonly int64_t log_offset
    cdef readonly int64_t born_timestamp_ms
    cdef readonly int64_t store_timestamp_ms
    cdef readonly int32_t queue_id
    cdef readonly int32_t sys_flag
    cdef readonly int32_t flag
    cdef readonly int32_t reconsume_times

    def __init__(
        self, str topic not None, bytes body not None, properties, int32_t queue_id, int64_t queue_offset,
        int64_t log_offset, str broker_name not None, int32_t sys_flag, int32_t flag, int64_t born_timestamp_ms,
        str born_host not None, int64_t store_timestamp_ms, str store_host not None, int32_t reconsume_times,
        str message_id not None, str offset_message_id not None, str body_error=None,
    ):
        self._topic, self._body, self._properties = topic, body, properties
        self.queue_id, self.queue_offset, self.log_offset = queue_id, queue_offset, log_offset
        self.broker_name, self.sys_flag, self.flag = broker_name, sys_flag, flag
        self.born_timestamp_ms, self._born_host = born_timestamp_ms, born_host
        self.store_timestamp_ms, self._store_host = store_timestamp_ms, store_host
        self.reconsume_times, self.body_error = reconsume_times, body_error
        self._message_id, self._offset_message_id = message_id, offset_message_id

    @property
    def topic(self):
        return self._topic

    @property
    def body(self):
        if self._body is None:
            self._body = self.part(self.look.body_at, self.look.body_length)
        return self._body

    @property
    def properties(self):
        if self._properties is None:
            self._properties = parse_properties(self.text(self.look.properties_at, self.look.properties_length))
        return self._properties

    @property
    def tags(self):
        return self.properties.get(TAGS)

    @property
    def keys(self):
        return tuple([key for key in self.properties.get(KEYS, "").split(" ") if key])

    @property
    def born_host(self):
        if self._born_host is None:
            self._born_host = host_text(self.part(BORN_HOST_AT, self.look.born_host_length))
        return self._born_host

    @property
    def store_host(self):
        if self._store_host is None:
            self._store_host = host_text(self.part(self.look.store_host_at, self.look.store_host_length))
        return self._store_host

    @property
    def message_id(self):
        if self._message_id is None:
            self._message_id = self.properties.get(UNIQUE_KEY) or self.offset_message_id
        return self._message_id

    @property
    def offset_message_id(self):
        if self._offset_message_id is None:
            host = self.part(self.look.store_host_at, self.look.store_host_length)
            self._offset_message_id = format_offset_id(host, self.log_offset)
        return self._offset_message_id

    @property
    def cost_bytes(self):
        """About what it takes in memory."""
        if self.data is None:
            return MESSAGE_COST_BYTES + len(self._body) + PROPERTY_COST_BYTES * len(self._properties)
        return self.cost()

    def replaced(self, **changes):
        """The same message with other values of some fields."""
        return StoredMessage(**{**self.members(), **changes})

    cdef dict members(self):
        return {name: getattr(self, name) for name in FIELDS}

    def __eq__(self, other):
        if not isinstance(other, StoredMessage):
            return NotImplemented
        return self.members() == (<StoredMessage>other).members()

    def __repr__(self):
        return f"StoredMessage({', '.join([f'{name}={value!r}' for name, value in self.members().items()])})"

    def __reduce__(self):
        return _again, (self.members(),)

    # ---- reading it ------------------------------------------------------------------------------------------

    cdef bytes part(self, Py_ssize_t at, Py_ssize_t length):
        return PyBytes_FromStringAndSize(PyBytes_AS_STRING(self.data) + self.at + at, length)

    cdef str text(self, Py_ssize_t at, Py_ssize_t length):
        return PyUnicode_DecodeUTF8(PyBytes_AS_STRING(self.data) + self.at + at, length, "replace")

    cdef Py_ssize_t cost(self) noexcept:
        """Counts pairs, so that nothing has to be made of them; a name that comes twice counts twice."""
        cdef Bytes text = <Bytes>PyBytes_AS_STRING(self.data) + self.at + self.look.properties_at
        cdef Bytes end = text + self.look.properties_length
        cdef Bytes pair_end
        cdef Bytes name_end
        cdef Py_ssize_t body = self.look.body_length if self._body is None else PyBytes_GET_SIZE(self._body)
        cdef Py_ssize_t pairs = 0
        while text < end:
            pair_end = <Bytes>memchr(text, PAIR_END, end - text)
            if pair_end == NULL:
                pair_end = end
            name_end = <Bytes>memchr(text, NAME_END, pair_end - text)
            if name_end != NULL and name_end > text and name_end + 1 < pair_end:
                pairs += 1
            text = pair_end + 1
        return MESSAGE_COST_BYTES + body + PROPERTY_COST_BYTES * pairs


def _again(members):
    return StoredMessage(**members)


cdef int fill(StoredMessage message, bytes data, Py_ssize_t at, str broker_name, str topic, Py_ssize_t unpacked_max) except -1:
    """What its look tells of the record at `at`.  `topic` is that of the message before, which mostly is the same."""
    cdef Bytes record = <Bytes>PyBytes_AS_STRING(data) + at
    cdef RecordLook* look = &message.look
    message.data, message.at = data, at
    message.broker_name = broker_name
    message.queue_id = <int32_t>look.queue_id
    message.queue_offset, message.log_offset = look.queue_offset, look.log_offset
    message.sys_flag = <int32_t>look.sys_flag
    message.flag = <int32_t>load32(record + FLAG_AT)
    message.born_timestamp_ms = <int64_t>load64(record + BORN_TIMESTAMP_AT)
    message.store_timestamp_ms = look.store_timestamp_ms
    message.reconsume_times = <int32_t>load32(record + look.store_host_end + RECONSUME_TIMES_AFTER)
    message._topic = message.text(look.topic_at, look.topic_length) if topic is None else topic
    if look.sys_flag & COMPRESSED:  # now, because only then its size is known
        body, error = unpacked(message.part(look.body_at, look.body_length), message.sys_flag, unpacked_max)
        message._body, message.body_error = body, error
    return 0


cdef inline bytes piece_of(bytes data, Py_ssize_t at, Py_ssize_t size, Py_ssize_t count):
    """What a message keeps of the answer that it came with: at least its own record.

    Who keeps one message of a thousand must not keep the whole answer, which nobody counts.  So small records are copied
    out, and many of them at once, because one by one that costs more than to read them: `count` of this size are wanted.
    A record that is a good part of its answer keeps all of it: to copy that would cost more than it saves.
    """
    cdef Py_ssize_t end = PyBytes_GET_SIZE(data), length = PIECE_BYTES
    if size * PART_MIN >= end:
        return data
    if count < length // size:
        length = count * size
    return PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + at, min(end - at, max(size, length)))


def message_at(bytes data not None, Py_ssize_t at, str broker_name not None, unpacked_bytes_max=BODY_UNPACKED_BYTES_MAX):
    cdef StoredMessage message = StoredMessage.__new__(StoredMessage)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(data)
    if not 0 <= at <= end or not find_parts(<Bytes>PyBytes_AS_STRING(data) + at, end - at, &message.look):
        open_record(data, at, end)  # says what is wrong
        raise AssertionError("what is no record here is none there either")
    piece = piece_of(data, at, message.look.size, 1)
    fill(message, piece, at if piece is data else 0, broker_name, None, unpacked_bytes_max)
    return message, at + message.look.size


def messages_in(
    bytes data not None, str broker_name not None, Py_ssize_t cost_bytes_max, Py_ssize_t at=0, Py_ssize_t count_max=INT32_MAX
):
    cdef Bytes base = <Bytes>PyBytes_AS_STRING(data)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(data), topic_at = 0, topic_length = -1
    cdef Py_ssize_t cost_bytes = 0, one, unpacked_max = BODY_UNPACKED_BYTES_MAX, piece_at = 0, piece_end = 0
    cdef bytes piece = data
    cdef RecordLook* look
    cdef StoredMessage message
    cdef str topic = None
    cdef list messages = []
    if at < 0:
        raise ValueError("a place in the data is needed")
    while at < end and len(messages) < count_max and (cost_bytes < cost_bytes_max or not messages):
        message = StoredMessage.__new__(StoredMessage)
        look = &message.look
        if not find_parts(base + at, end - at, look):
            break
        if look.topic_length != topic_length or memcmp(base + at + look.topic_at, base + topic_at, topic_length) != 0:
            topic, topic_at, topic_length = None, at + look.topic_at, look.topic_length
        if at + look.size > piece_end:
            piece = piece_of(data, at, look.size, count_max - len(messages))
            piece_at = 0 if piece is data else at
            piece_end = at + (look.size if piece is data else PyBytes_GET_SIZE(piece))
        fill(message, piece, at - piece_at, broker_name, topic, unpacked_max)
        topic = message._topic
        one = message.cost()
        if messages and cost_bytes + one > cost_bytes_max:
            break
        if message.body_error is not None:
            one += unpacked_at_most(message._body, message.sys_flag)
        cost_bytes += one
        messages.append(message)
        at += look.size
    return messages, at, cost_bytes


def misplaced(list messages not None, int64_t begin, int64_t end):
    cdef StoredMessage message
    cdef Py_ssize_t index
    for index in range(len(messages)):
        message = messages[index]
        if not begin <= message.queue_offset < end:
            return index
        begin = message.queue_offset
    return None
