"""The compiled twin of append_twin.py: rows of a send run become records and queue entries."""

from cpython cimport array as c_array
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memmove

from bolide.model cimport send_rows as column
from bolide.record._checksum cimport write_checksum
from bolide.record._codec cimport (
    PropertyScan,
    RecordParts,
    check_parts,
    has_special,
    hash_of,
    scan_properties,
    size_of,
    tags_code_at,
    write_record,
)
from bolide.record.layout cimport (
    BLANK_BYTES,
    INNER_BATCH,
    ITEM_BODY_AT,
    LENGTH_MAX,
    NEED_UNWRAP,
    PAIR_END,
    RECORD_CHECKSUM_BYTES,
    TRANSACTION_MASK,
    BatchItem,
    find_item,
)
from bolide.store cimport new_message as field
from bolide.store.queue_entry cimport ENTRY_BYTES, store_entry

from bolide.model.delay_levels import DEFAULT_LEVELS
from bolide.model.names import SCHEDULE_TOPIC
from bolide.model.numbers import is_int64
from bolide.store.entry_rules import entry_code
from bolide.store.new_message import Appended, NewMessage

include "_base64.pxi"

DONE = 0
SEGMENT_FULL = 1
NEEDS_GENERAL_PATH = 2
NEEDS_QUEUE = 3

cdef enum:
    C_DONE = 0
    C_SEGMENT_FULL = 1
    C_NEEDS_GENERAL_PATH = 2
    C_NEEDS_QUEUE = 3
    C_SCRATCH_FULL = 4
    ENTRIES_AT_FIRST = 16
    ENTRIES_KEPT = 256

cdef unsigned char[RECORD_CHECKSUM_BYTES] NO_CHECKSUM_YET


cdef int64_t* numbers_of(c_array.array numbers) except? NULL:
    """The memory of an array of 64-bit numbers; a typed memoryview would cost more to make than a short run takes."""
    if numbers.ob_descr.typecode != c'q':
        raise TypeError("an array of 64-bit numbers is needed")
    return <int64_t*>numbers.data.as_longlongs


include "_lanes.pxi"
include "_detours.pxi"


cdef struct Run:  # what the requests of a run share, and how far it has come
    RecordParts parts
    const unsigned char* received
    const unsigned char* texts
    unsigned char* to
    Py_ssize_t room
    Py_ssize_t scratch_bytes
    int64_t log_offset
    int64_t* log_offsets
    Py_ssize_t records
    Py_ssize_t used
    unsigned char* handles        # texts for answers go here
    unsigned char* handles_end
    int asked


cdef inline void point_at(Run* run, const int64_t* values) noexcept nogil:
    """At the message of a row, which stays where it was received."""
    run.parts.sys_flag = values[column.SYS_FLAG]
    run.parts.born_timestamp_ms = values[column.BORN_TIMESTAMP]
    run.parts.reconsume_times = values[column.RECONSUME_TIMES]
    run.parts.body = run.received + values[column.BODY_AT]
    run.parts.body_length = values[column.BODY_LENGTH]
    run.parts.flag = values[column.FLAG]
    run.parts.properties = run.texts + values[column.PROPERTIES_AT]
    run.parts.properties_length = values[column.PROPERTIES_LENGTH]


cdef class Appender:
    cdef bytes store_host
    cdef bytes suffix  # with room for the checksum at its end
    cdef Py_ssize_t checksum_bytes
    cdef int64_t body_bytes_max
    cdef object levels

    def __cinit__(
        self, bytes store_host, bytes suffix, int64_t body_bytes_max, bint sealed=False, levels=DEFAULT_LEVELS
    ):
        self.store_host = store_host
        self.checksum_bytes = RECORD_CHECKSUM_BYTES if sealed else 0
        self.suffix = suffix + bytes(self.checksum_bytes)
        self.body_bytes_max = body_bytes_max
        self.levels = levels

    # ---- messages that were decided one by one --------------------------------------------------------------

    def records_size(self, messages):
        cdef RecordParts parts
        cdef Py_ssize_t size = 0
        for message in messages:
            if not isinstance(message, NewMessage):
                raise TypeError("a NewMessage is needed")
            self.fill_from(&parts, <tuple>message, 0)
            check_parts(&parts)
            given = (<tuple>message)[field.TAGS_CODE]
            if given is not None and field.has_entry(parts.sys_flag) and not is_int64(given):
                raise ValueError(f"the tags code {given} has more than 64 bits")
            size += size_of(&parts)
        return size

    def encode(self, messages, list tails not None, int64_t log_offset, int64_t now_ms, list touched not None):
        cdef RecordParts parts
        cdef Py_ssize_t number, one, used = 0, size = self.records_size(messages)
        cdef bytes data = PyBytes_FromStringAndSize(NULL, size)
        cdef unsigned char* to = <unsigned char*>PyBytes_AS_STRING(data)
        cdef QueueTail tail
        cdef list appended = []
        cdef int64_t code
        cdef object given
        for number, message in enumerate(messages):
            self.fill_from(&parts, <tuple>message, now_ms)
            tail = <QueueTail?>tails[number]
            parts.log_offset = log_offset + used
            one = size_of(&parts)
            if field.has_entry(parts.sys_flag):
                parts.queue_offset = tail.next_offset
                given = (<tuple>message)[field.TAGS_CODE]
                if given is not None:
                    code = given
                elif (<tuple>message)[field.TOPIC] == SCHEDULE_TOPIC:
                    code = entry_code(SCHEDULE_TOPIC, (<tuple>message)[field.PROPERTIES], now_ms, self.levels)
                else:
                    code = tags_code_at(parts.properties, parts.properties_length)
                tail.push(parts.log_offset, one, code)
                if not tail.touched:
                    tail.touched = True
                    touched.append(tail)
            self.write_sealed(to + used, &parts, one)
            used += one
            appended.append(Appended(parts.log_offset, parts.queue_offset, parts.log_offset + one))
        return data, appended

    cdef int fill_from(self, RecordParts* parts, tuple message, int64_t now_ms) except -1:
        """From a `NewMessage`; its place is left out."""
        cdef object topic = message[field.TOPIC]
        cdef bytes body = <bytes?>message[field.BODY]
        cdef bytes properties = <bytes?>message[field.PROPERTIES]
        cdef bytes born_host = <bytes?>message[field.BORN_HOST]
        parts.topic = <const unsigned char*>PyUnicode_AsUTF8AndSize(topic, &parts.topic_length)
        parts.body = <const unsigned char*>PyBytes_AS_STRING(body)
        parts.body_length = len(body)
        parts.properties = <const unsigned char*>PyBytes_AS_STRING(properties)
        parts.properties_length = len(properties)
        parts.cut_at = parts.cut_end = 0
        parts.needs_separator = (
            self.checksum_bytes > 0
            and parts.properties_length > 0
            and parts.properties[parts.properties_length - 1] != PAIR_END
        )
        parts.suffix = NO_CHECKSUM_YET
        parts.suffix_length = self.checksum_bytes
        parts.queue_id = message[field.QUEUE_ID]
        parts.flag = message[field.FLAG]
        parts.sys_flag = message[field.SYS_FLAG]
        parts.born_timestamp_ms = message[field.BORN_TIMESTAMP]
        parts.born_host = <const unsigned char*>PyBytes_AS_STRING(born_host)
        parts.born_host_length = len(born_host)
        parts.store_timestamp_ms = now_ms
        parts.store_host = <const unsigned char*>PyBytes_AS_STRING(self.store_host)
        parts.store_host_length = len(self.store_host)
        parts.reconsume_times = message[field.RECONSUME_TIMES]
        parts.prepared_offset = message[field.PREPARED_OFFSET]
        parts.queue_offset = parts.log_offset = 0
        return 0

    # ---- runs of plain sends --------------------------------------------------------------------------------

    def append_run(
        self,
        c_array.array rows not None,
        c_array.array log_offsets not None,
        bytearray buffer not None,
        bytearray properties not None,
        list lanes not None,
        Py_ssize_t first,
        Py_ssize_t count,
        bytearray scratch not None,
        Py_ssize_t room,
        int64_t log_offset,
        bytes born_host not None,
        int64_t now_ms,
        list touched not None,
        find=None,
        Py_ssize_t texts_used=0,
    ):
        cdef Run run
        cdef int64_t* row_numbers = numbers_of(rows)
        cdef object lane
        cdef dict found = {}
        cdef Py_ssize_t row
        cdef int outcome
        self.fill_constants(&run.parts, born_host, now_ms)
        run.received = <const unsigned char*>PyByteArray_AS_STRING(buffer)
        run.texts = <const unsigned char*>PyByteArray_AS_STRING(properties)
        run.to = <unsigned char*>PyByteArray_AS_STRING(scratch)
        run.room = room
        run.scratch_bytes = len(scratch)
        run.log_offset = log_offset
        run.log_offsets = numbers_of(log_offsets)
        run.records = run.used = run.asked = 0
        run.handles = <unsigned char*>run.texts + min(texts_used, len(properties))
        run.handles_end = <unsigned char*>run.texts + len(properties)
        for row in range(first, count):
            lane = lanes[row_numbers[row * column.COLUMNS + column.TOPIC]]
            if lane is None:
                return row, run.used, C_NEEDS_GENERAL_PATH
            if run.records == column.RECORDS_MAX:
                return row, run.used, C_DONE
            outcome = self.append_row(&run, row_numbers + row * column.COLUMNS, lane, touched, find, found)
            if outcome == C_SCRATCH_FULL:
                return row, run.used, C_DONE if run.used else C_NEEDS_GENERAL_PATH
            if outcome != C_DONE:
                return row, run.used, outcome
        return count, run.used, C_DONE

    cdef int append_row(
        self, Run* run, int64_t* values, TopicLane lane, list touched, object find, dict found
    ) except -1:
        """One request of a run: its record or records, and what its answer needs, into its row."""
        cdef RecordParts* parts = &run.parts
        cdef PropertyScan scan
        cdef unsigned char* to = run.to + run.used
        cdef Py_ssize_t room = run.room - run.used, scratch_room = run.scratch_bytes - run.used
        cdef Py_ssize_t before = run.records, size
        cdef int64_t queue_id = values[column.QUEUE_ID], turn = lane.turn
        cdef QueueTail tail
        cdef int outcome
        if (
            queue_id >= len(lane.tails)
            or values[column.SYS_FLAG] & (INNER_BATCH | NEED_UNWRAP)
            or values[column.BODY_LENGTH] <= 0
            or values[column.BODY_LENGTH] > self.body_bytes_max
        ):
            return C_NEEDS_GENERAL_PATH
        if queue_id < 0:
            turn += 1
            queue_id = turn % lane.write_queues
        tail = <QueueTail>lane.tails[queue_id]
        parts.topic = <const unsigned char*>PyBytes_AS_STRING(lane.topic)
        parts.topic_length = len(lane.topic)
        parts.queue_id = queue_id
        parts.queue_offset = 0 if tail is None else tail.next_offset
        parts.log_offset = run.log_offset + run.used
        parts.suffix = <const unsigned char*>PyBytes_AS_STRING(self.suffix)
        point_at(run, values)
        if values[column.KIND] & column.KIND_BATCH:
            if parts.sys_flag & TRANSACTION_MASK:
                return C_NEEDS_GENERAL_PATH
            scan.unique_key_length = 0
            parts.suffix_length = self.checksum_bytes  # the original adds no pairs to the messages of a batch
            outcome = self.write_batch(
                parts, tail, to, room, scratch_room, run.log_offsets, &run.records, &size
            )
        else:
            parts.suffix_length = len(self.suffix)
            if not self.measure(parts, &scan):
                return self.append_asking(run, values, lane, &scan, touched, find, found)
            if parts.sys_flag & TRANSACTION_MASK:
                return C_NEEDS_GENERAL_PATH
            outcome = self.write_one(parts, &scan, tail, to, room, scratch_room, &size)
            run.log_offsets[before] = parts.log_offset
            run.records = before + 1
        if outcome != C_DONE:
            lane.missing = queue_id if outcome == C_NEEDS_QUEUE else -1
            return outcome
        run.used += size
        lane.turn = turn
        values[column.QUEUE_ID] = queue_id
        values[column.QUEUE_OFFSET] = parts.queue_offset
        values[column.RECORDS_AT] = before
        values[column.RECORDS_COUNT] = run.records - before
        values[column.UNIQUE_KEY_LENGTH] = scan.unique_key_length
        values[column.UNIQUE_KEY_AT] = 0
        if scan.unique_key_length:
            values[column.UNIQUE_KEY_AT] = values[column.PROPERTIES_AT] + scan.unique_key_at
        if not tail.touched:
            tail.touched = True
            touched.append(tail)
        return C_DONE

    # ---- rows that ask to wait -------------------------------------------------------------------------------

    cdef int append_asking(
        self, Run* run, int64_t* values, TopicLane lane, PropertyScan* scan, list touched, object find, dict found
    ) except -1:
        """One request whose message waits, if all of it is as usual; into the queue where it does."""
        cdef RecordParts* parts = &run.parts
        cdef unsigned char[SUFFIX_BYTES_MAX] suffix
        cdef Py_ssize_t size, room = run.room - run.used, handle_length
        cdef Detour detour
        if (
            not scan.asks
            or find is None
            or values[column.QUEUE_ID] < 0
            or parts.reconsume_times
            or scan.asked_length > ASKED_BYTES_MAX
            or not is_text(parts)
        ):
            return C_NEEDS_GENERAL_PATH
        key = key_of_detour(parts, scan)
        detour = lane.detours.get(key) or found.get((lane, key))
        if detour is None:
            if run.asked == ASKED_PER_RUN:
                return C_SCRATCH_FULL
            run.asked += 1
            detour = find(lane, key)
            if detour is None:
                return C_NEEDS_GENERAL_PATH
            found[lane, key] = detour
        parts.suffix = suffix
        parts.suffix_length = suffix_of_detour(
            suffix, detour, parts, scan, values[column.QUEUE_ID], self.suffix, self.checksum_bytes
        )
        if parts.suffix_length < 0 or not fits_detour(parts, detour, self.checksum_bytes):
            return C_NEEDS_GENERAL_PATH
        handle_length = length_of_handle(detour, scan.unique_key_length)
        if handle_length > run.handles_end - run.handles:
            return C_SCRATCH_FULL
        parts.topic = <const unsigned char*>PyBytes_AS_STRING(detour.topic)
        parts.topic_length = PyBytes_GET_SIZE(detour.topic)
        parts.queue_id = detour.queue_id
        parts.queue_offset = detour.tail.next_offset
        parts.sys_flag &= ~TRANSACTION_MASK
        size = size_of(parts)
        if size + BLANK_BYTES > room:
            return C_SEGMENT_FULL
        if size > run.scratch_bytes - run.used:
            return C_SCRATCH_FULL
        self.write_sealed(run.to + run.used, parts, size)
        detour.tail.push(
            parts.log_offset,
            size,
            tags_code(parts, scan) if detour.delay_ms < 0 else parts.store_timestamp_ms + detour.delay_ms,
        )
        run.log_offsets[run.records] = parts.log_offset
        values[column.QUEUE_OFFSET] = parts.queue_offset
        values[column.RECORDS_AT] = run.records
        values[column.RECORDS_COUNT] = 1
        values[column.UNIQUE_KEY_AT] = values[column.PROPERTIES_AT] + scan.unique_key_at
        values[column.UNIQUE_KEY_LENGTH] = scan.unique_key_length
        if handle_length:
            values[column.RECALL_HANDLE_AT] = run.handles - run.texts
            values[column.RECALL_HANDLE_LENGTH] = handle_length
            put_handle(run.handles, detour, parts.properties + scan.unique_key_at, scan.unique_key_length)
            run.handles += handle_length
        run.records += 1
        run.used += size
        if not detour.tail.touched:
            detour.tail.touched = True
            touched.append(detour.tail)
        return C_DONE

    cdef void fill_constants(self, RecordParts* parts, bytes born_host, int64_t now_ms):
        parts.born_host = <const unsigned char*>PyBytes_AS_STRING(born_host)
        parts.born_host_length = len(born_host)
        parts.store_host = <const unsigned char*>PyBytes_AS_STRING(self.store_host)
        parts.store_host_length = len(self.store_host)
        parts.suffix = <const unsigned char*>PyBytes_AS_STRING(self.suffix)
        parts.suffix_length = len(self.suffix)
        parts.store_timestamp_ms = now_ms
        parts.prepared_offset = 0

    cdef bint measure(self, RecordParts* parts, PropertyScan* scan) noexcept:
        """Whether this message is plain; leaves the property cut in `parts`."""
        scan_properties(parts.properties, parts.properties_length, scan)
        parts.cut_at = scan.wait_at
        parts.cut_end = scan.wait_end
        parts.needs_separator = scan.needs_separator
        return scan.plain and (
            parts.properties_length - (scan.wait_end - scan.wait_at) + (1 if scan.needs_separator else 0)
            + parts.suffix_length <= LENGTH_MAX
        )

    cdef void write_sealed(self, unsigned char* to, RecordParts* parts, Py_ssize_t size) noexcept:
        write_record(to, parts)
        if self.checksum_bytes:
            write_checksum(to, size)

    cdef int write_one(
        self,
        RecordParts* parts,
        PropertyScan* scan,
        QueueTail tail,
        unsigned char* to,
        Py_ssize_t room,
        Py_ssize_t scratch_room,
        Py_ssize_t* size,
    ) except -1:
        size[0] = size_of(parts)
        if size[0] + BLANK_BYTES > room:
            return C_SEGMENT_FULL
        if size[0] > scratch_room:
            return C_SCRATCH_FULL
        if tail is None:
            return C_NEEDS_QUEUE
        self.write_sealed(to, parts, size[0])
        tail.push(parts.log_offset, size[0], tags_code(parts, scan))
        return C_DONE

    cdef int write_batch(
        self,
        RecordParts* batch,
        QueueTail tail,
        unsigned char* to,
        Py_ssize_t room,
        Py_ssize_t scratch_room,
        int64_t* offsets,
        Py_ssize_t* records,
        Py_ssize_t* size,
    ) except -1:
        """All messages of a batch, or none: what was written of one that fails is forgotten."""
        cdef RecordParts parts = batch[0]
        cdef PropertyScan scan
        cdef BatchItem item
        cdef const unsigned char* at = batch.body
        cdef Py_ssize_t left = batch.body_length, used = 0, one, number = records[0]
        cdef int64_t first = 0 if tail is None else tail.next_offset
        cdef bint is_plain = not has_special(batch.properties, batch.properties_length)
        while is_plain and left > 0:
            if number >= column.RECORDS_MAX:
                forget_from(tail, first)
                return C_SCRATCH_FULL  # as the first of a run it has more room, if it is not too long
            if not find_item(at, left, &item):
                is_plain = False
                break
            parts.flag = item.flag
            parts.body = at + ITEM_BODY_AT
            parts.body_length = item.body_length
            parts.properties = at + item.properties_at
            parts.properties_length = item.properties_length
            if not self.measure(&parts, &scan):
                is_plain = False
                break
            one = size_of(&parts)
            if tail is not None and used + one + BLANK_BYTES <= room and used + one <= scratch_room:
                parts.log_offset = batch.log_offset + used
                self.write_sealed(to + used, &parts, one)
                tail.push(parts.log_offset, one, tags_code(&parts, &scan))
                offsets[number] = parts.log_offset
                parts.queue_offset += 1
            number += 1
            used += one
            left -= item.size
            at += item.size
        if tail is not None and is_plain and used + BLANK_BYTES <= room and used <= scratch_room:
            records[0] = number
            size[0] = used
            return C_DONE
        forget_from(tail, first)
        if not is_plain:
            return C_NEEDS_GENERAL_PATH
        if used + BLANK_BYTES > room:
            return C_SEGMENT_FULL
        return C_SCRATCH_FULL if used > scratch_room else C_NEEDS_QUEUE


cdef void forget_from(QueueTail tail, int64_t first) noexcept:
    """Forget the entries of a batch that fails, and the room that only they needed."""
    if tail is not None:
        tail.next_offset = first
        if tail.start == first:
            tail.shrink()


cdef inline int64_t tags_code(RecordParts* parts, PropertyScan* scan) noexcept nogil:
    return hash_of(parts.properties + scan.tags_at, scan.tags_length) if scan.tags_length else 0
