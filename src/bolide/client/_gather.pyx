"""The compiled twin of gather_twin.py: the same batches, futures and receipts.

Nothing here runs Python code while a batch is being changed, so the interpreter's lock is the guard.
"""
# cython: language_level=3

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from bolide.model.big_endian cimport store16, store32
from bolide.record.layout cimport BATCH_ITEM_FIXED_BYTES, ITEM_BODY_AT, ITEM_BODY_LENGTH_AT, ITEM_FLAG_AT

from collections import deque

from bolide.client.gather_plain import FLAG_MAX as HIGHEST_FLAG
from bolide.client.gather_plain import FLAG_MIN as LOWEST_FLAG
from bolide.client.gather_plain import MEANING as MEANING_NAMES
from bolide.client.gather_plain import MEANING_FAMILIES as FAMILIES
from bolide.client.gather_twin import CALLBACK_FAILED, check_no_seconds
from bolide.client.gather_twin import SendFuture as ReadableFuture
from bolide.client.gather_twin import SendReceipt as ReadableReceipt
from bolide.client.gather_twin import log
from bolide.model.message import Message, Property

cdef enum:
    FIRST_BYTES = 16384
    ID_PAIR_BYTES_MAX = 80
    NUMBER_DIGITS = 4
    PROPERTIES_BYTES_MAX = 0x7FFF
    UNIQUE_NAME_BYTES = 9

cdef int64_t FLAG_MIN = LOWEST_FLAG
cdef int64_t FLAG_MAX = HIGHEST_FLAG
cdef frozenset MEANING = MEANING_NAMES
cdef tuple MEANING_FAMILIES = FAMILIES
cdef str TAGS = Property.TAGS
cdef str KEYS = Property.KEYS
cdef str SHARDING_KEY = Property.SHARDING_KEY
cdef bytes UNIQUE_NAME = (Property.UNIQUE_KEY + "\x01").encode()
cdef const char* DIGITS = b"0123456789ABCDEF"
assert len(UNIQUE_NAME) == UNIQUE_NAME_BYTES


include "_gather_growing.pxi"


@cython.final
cdef class Pool:
    cdef public Py_ssize_t messages
    cdef public Py_ssize_t size_bytes
    cdef readonly object head
    cdef readonly object now_ms
    cdef Py_ssize_t messages_max, bytes_max
    cdef uint16_t counter
    cdef Growing pairs  # of the message that is being added

    def __init__(self, head, now_ms, Py_ssize_t messages_max, Py_ssize_t bytes_max):
        self.head, self.now_ms = head, now_ms
        self.messages_max, self.bytes_max = messages_max, bytes_max
        self.pairs = Growing()

    @property
    def is_full(self):
        return self.has_no_room()

    cdef inline bint has_no_room(self) noexcept:
        return self.messages >= self.messages_max or self.size_bytes >= self.bytes_max


cdef void tell_safely(tell) noexcept:
    try:
        tell()
    except BaseException:
        log.exception(CALLBACK_FAILED)


@cython.final
cdef class Batch:
    cdef readonly str topic
    cdef readonly object queue
    cdef readonly object home
    cdef readonly object alone
    cdef readonly bint is_done
    cdef readonly object error
    cdef readonly int64_t born_ms
    cdef readonly object stored_in
    cdef readonly object status
    cdef readonly SendReceipt receipt
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t size_bytes
    cdef Pool pool
    cdef bytes head
    cdef Growing data
    cdef Growing numbers
    cdef bytes joined
    cdef list callbacks
    cdef list watchers
    cdef int64_t first_offset
    cdef str offset_ids
    cdef list split
    cdef object trace

    def __init__(self, str topic not None, queue, Pool pool not None, home, alone=None):
        self.topic, self.queue, self.pool, self.home, self.alone = topic, queue, pool, home, alone
        self.head, self.born_ms = pool.head().encode(), pool.now_ms()
        self.data, self.numbers = Growing(), Growing()
        self.callbacks, self.watchers = [], []

    cdef int put(self, SendFuture future, bytes body, int32_t flag, callback) except -1:
        """The pool holds its pairs."""
        cdef Growing pairs = self.pool.pairs
        cdef Py_ssize_t body_length = PyBytes_GET_SIZE(body), head_length = PyBytes_GET_SIZE(self.head)
        cdef Py_ssize_t properties = pairs.size + UNIQUE_NAME_BYTES + head_length + NUMBER_DIGITS + 1
        cdef Py_ssize_t size = BATCH_ITEM_FIXED_BYTES + body_length + properties
        cdef unsigned char* item
        cdef uint16_t number
        cdef int digit
        self.data.reserve(size)
        self.numbers.reserve(2)
        self.callbacks.append(callback)
        self.pool.counter += 1
        number = self.pool.counter
        memcpy(self.numbers.data + self.numbers.size, &number, 2)
        self.numbers.size += 2
        item = <unsigned char*>self.data.data + self.data.size
        memset(item, 0, ITEM_BODY_AT)
        store32(item, <uint32_t>size)
        store32(item + ITEM_FLAG_AT, <uint32_t>flag)
        store32(item + ITEM_BODY_LENGTH_AT, <uint32_t>body_length)
        item += ITEM_BODY_AT
        memcpy(item, PyBytes_AS_STRING(body), body_length)
        item += body_length
        store16(item, properties)
        item += 2
        if pairs.size:
            memcpy(item, pairs.data, pairs.size)
            item += pairs.size
        memcpy(item, PyBytes_AS_STRING(UNIQUE_NAME), UNIQUE_NAME_BYTES)
        item += UNIQUE_NAME_BYTES
        memcpy(item, PyBytes_AS_STRING(self.head), head_length)
        item += head_length
        for digit in range(NUMBER_DIGITS):
            item[digit] = DIGITS[(number >> (12 - 4 * digit)) & 15]
        item[NUMBER_DIGITS] = 2
        self.data.size += size
        return self.count_in(future, size)

    cdef int count_in(self, SendFuture future, Py_ssize_t size) except -1:
        future.batch, future.index = self, self.count
        self.count += 1
        self.size_bytes += size
        self.pool.messages += 1
        self.pool.size_bytes += size
        return 0

    def body(self):
        if self.joined is None:
            self.joined = PyBytes_FromStringAndSize(self.data.data, self.data.size)
            self.data = Growing()
        return self.joined

    def when_done(self, tell):
        if not self.is_done:
            self.watchers.append(tell)
            return
        try:  # kept, it would keep the future that it may hold, and this batch with that, where no collector looks
            tell()
        except Exception:
            log.exception(CALLBACK_FAILED)

    def stored(self, queue, status, int64_t first_offset, str offset_ids not None):
        if self.is_done:
            return
        self.stored_in, self.status = queue, status
        self.first_offset, self.offset_ids = first_offset, offset_ids
        self.finish()

    def stored_alone(self, SendReceipt receipt not None):
        if not self.is_done:
            self.receipt = receipt
            self.finish()

    def failed(self, error):
        if not self.is_done:
            self.error, self.trace = error, error.__traceback__
            self.finish()

    cdef object fault(self):
        return None if self.error is None else self.error.with_traceback(self.trace)

    cdef int finish(self) except -1:
        cdef Py_ssize_t index = 0
        cdef list callbacks = self.callbacks, watchers
        self.is_done = True
        self.joined, self.data = b"", Growing()
        self.pool.messages -= self.count
        self.pool.size_bytes -= self.size_bytes
        self.callbacks = []
        for callback in callbacks:
            if callback is not None:
                try:
                    if self.error is None:
                        callback(receipt_of(self, index), None)
                    else:
                        callback(None, self.fault())
                except BaseException:
                    log.exception(CALLBACK_FAILED)
            index += 1
        watchers, self.watchers = self.watchers, []
        for tell in watchers:
            tell_safely(tell)
        return 0

    cdef str message_id(self, Py_ssize_t index):
        cdef uint16_t number
        memcpy(&number, self.numbers.data + 2 * index, 2)
        return f"{self.head.decode()}{number:04X}"

    cdef str offset_id(self, Py_ssize_t index):
        if self.split is None:
            self.split = self.offset_ids.split(",")
        return self.split[index]


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class SendFuture:
    __doc__ = ReadableFuture.__doc__

    cdef Batch batch
    cdef Py_ssize_t index

    def __init__(self, Batch batch not None, Py_ssize_t index):
        self.batch, self.index = batch, index

    def done(self):
        """Whether the outcome is known."""
        return self.batch.is_done

    def result(self, timeout=None, *, timeout_ms=None):
        """Wait for the receipt; raises what kept the message from being stored, or `CallTimeout`.

        `timeout` is not taken: futures of others have seconds there."""
        if timeout is not None:
            check_no_seconds(timeout)
        if not self.batch.is_done:
            self.batch.home.wait(self.batch, timeout_ms)
        return self.receipt()

    def exception(self, timeout=None, *, timeout_ms=None):
        """Wait for the outcome; what went wrong, None if nothing did."""
        if timeout is not None:
            check_no_seconds(timeout)
        if not self.batch.is_done:
            self.batch.home.wait(self.batch, timeout_ms)
        return self.batch.fault()

    def add_done_callback(self, tell):
        """Call it with this future when the outcome is known: at once if it is."""
        self.batch.when_done(lambda: tell(self))

    def __await__(self):
        if not self.batch.is_done:
            yield from self.batch.home.wait_for(self.batch)
        return self.receipt()

    cdef SendReceipt receipt(self):
        if self.batch.error is not None:
            raise self.batch.fault()
        return receipt_of(self.batch, self.index)


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class SendReceipt:
    __doc__ = ReadableReceipt.__doc__

    cdef Batch batch
    cdef Py_ssize_t index
    cdef object _message_id, _offset_id, _queue, _queue_offset, _status, _recall_handle

    def __init__(self, message_id, offset_message_id, queue, queue_offset, status, recall_handle=None):
        self._message_id, self._offset_id, self._queue = message_id, offset_message_id, queue
        self._queue_offset, self._status, self._recall_handle = queue_offset, status, recall_handle

    @property
    def message_id(self):
        return self._message_id if self.batch is None else self.batch.message_id(self.index)

    @property
    def offset_message_id(self):
        return self._offset_id if self.batch is None else self.batch.offset_id(self.index)

    @property
    def queue(self):
        return self._queue if self.batch is None else self.batch.stored_in

    @property
    def queue_offset(self):
        return self._queue_offset if self.batch is None else self.batch.first_offset + self.index

    @property
    def status(self):
        return self._status if self.batch is None else self.batch.status

    @property
    def recall_handle(self):
        return self._recall_handle

    cdef tuple members(self):
        return (
            self.message_id, self.offset_message_id, self.queue, self.queue_offset, self.status, self.recall_handle
        )

    def __eq__(self, other):
        return isinstance(other, SendReceipt) and self.members() == (<SendReceipt>other).members()

    def __hash__(self):
        return hash(self.members())

    def __repr__(self):
        return (
            f"SendReceipt(message_id={self.message_id!r}, offset_message_id={self.offset_message_id!r},"
            f" queue={self.queue!r}, queue_offset={self.queue_offset!r}, status={self.status!r},"
            f" recall_handle={self.recall_handle!r})"
        )

    def __reduce__(self):
        return SendReceipt, self.members()


cdef inline SendReceipt receipt_of(Batch batch, Py_ssize_t index):
    cdef SendReceipt receipt = batch.receipt
    if receipt is None:
        receipt = SendReceipt.__new__(SendReceipt)
        receipt.batch, receipt.index = batch, index
    return receipt


@cython.final
cdef class Lane:
    cdef readonly str topic
    cdef readonly object queue
    cdef Pool pool
    cdef object home, wake
    cdef Py_ssize_t body_below, bytes_max, messages_max
    cdef Batch filling
    cdef object full

    def __init__(
        self, str topic not None, queue, Pool pool not None, home, wake, guard, *, Py_ssize_t body_below,
        Py_ssize_t batch_bytes_max, Py_ssize_t batch_messages_max,
    ):
        self.topic, self.queue, self.pool, self.home, self.wake = topic, queue, pool, home, wake
        self.body_below, self.bytes_max, self.messages_max = body_below, batch_bytes_max, batch_messages_max
        self.full = deque()

    @property
    def has_full(self):
        return len(self.full) > 0

    @property
    def is_empty(self):
        return self.filling is None and not self.full

    def add(self, message, callback=None):
        """Making objects can run Python code, and let another thread come this way: they are made before all is looked at."""
        cdef SendFuture future = SendFuture.__new__(SendFuture)
        cdef Batch fresh = Batch(self.topic, self.queue, self.pool, self.home) if self.filling is None else None
        cdef bint wake = False
        cdef int32_t flag = 0
        cdef Py_ssize_t size
        cdef bytes body = self.plain_body(message, &flag)
        if body is None:
            return None
        size = BATCH_ITEM_FIXED_BYTES + PyBytes_GET_SIZE(body) + self.pool.pairs.size + ID_PAIR_BYTES_MAX
        while self.filling is None or not self.has_room(size):
            if fresh is None:
                fresh = Batch(self.topic, self.queue, self.pool, self.home)
                body = self.plain_body(message, &flag)
                if body is None:
                    return None
                continue
            wake = self.filling is not None or not self.full
            if self.filling is not None:
                self.full.append(self.filling)
            self.filling, fresh = fresh, None
        self.filling.put(future, body, flag, callback)
        if wake:
            self.wake(self)
        return future

    def add_alone(self, alone, Py_ssize_t size_bytes, callback=None):
        cdef Batch batch = Batch(self.topic, self.queue, self.pool, self.home, alone)
        cdef SendFuture future = SendFuture.__new__(SendFuture)
        self.cut()
        batch.callbacks.append(callback)
        batch.count_in(future, size_bytes)
        self.full.append(batch)
        self.wake(self)
        return future

    def cut(self):
        if self.filling is not None:
            self.full.append(self.filling)
            self.filling = None
        return list(self.full)

    def take(self, *, bint also_open):
        if also_open and not self.full:
            self.cut()
        return self.full.popleft() if self.full else None

    cdef inline bint has_room(self, Py_ssize_t size) noexcept:
        """An empty batch has room for every message."""
        cdef Batch batch = self.filling
        return batch.count == 0 or (batch.count < self.messages_max and batch.size_bytes + size <= self.bytes_max)

    cdef bytes plain_body(self, message, int32_t* flag):
        """The body of a message that can go in a batch; its properties then are in the pool."""
        cdef Growing pairs = self.pool.pairs
        cdef int64_t number
        if type(message) is not Message:
            return None
        topic, body, own_flag = read(message, TOPIC_AT), read(message, BODY_AT), read(message, FLAG_AT)
        sharding_key = read(message, SHARDING_KEY_AT)
        if topic is not self.topic and topic != self.topic:
            return None
        if type(body) is not bytes or not 0 < PyBytes_GET_SIZE(body) < self.body_below:
            return None
        if read(message, DELAY_LEVEL_AT):
            return None
        if read(message, DELIVER_AT_AT) is not None or read(message, DELAY_AT) is not None:
            return None
        if sharding_key is not None and self.queue is None:
            return None
        if type(own_flag) is not int:
            return None
        flag[0] = 0
        if own_flag:
            if not FLAG_MIN <= own_flag <= FLAG_MAX:
                return None
            number = own_flag
            flag[0] = <int32_t>number
        pairs.size = 0
        if (
            put_own(pairs, read(message, PROPERTIES_AT), self.queue is not None and sharding_key is None)
            and put_pair(pairs, TAGS, read(message, TAGS_AT), False)
            and put_keys(pairs, read(message, KEYS_AT))
            and put_pair(pairs, SHARDING_KEY, sharding_key, True)
            and pairs.size + ID_PAIR_BYTES_MAX <= PROPERTIES_BYTES_MAX
        ):
            return body
        return None


@cython.final
cdef class Lanes(dict):
    cdef Pool pool

    def __init__(self, Pool pool not None):
        self.pool = pool

    def add(self, message, callback=None):
        cdef PyObject* lane
        if type(message) is not Message or self.pool.has_no_room():
            return None
        topic = read(message, TOPIC_AT)
        if type(topic) is not str:
            return None
        lane = PyDict_GetItemWithError(self, topic)
        return None if lane == NULL else (<Lane>lane).add(message, callback)


include "_gather_slots.pxi"
include "_gather_pairs.pxi"
