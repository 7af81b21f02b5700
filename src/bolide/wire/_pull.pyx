"""The compiled twin of pull_twin.py: a pull request is scanned in place, and answered without an object per field."""

from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from bolide.model.big_endian cimport load32, store32

from bolide.wire.command import LANGUAGE, VERSION

include "_json.pxi"
include "_bytes.pxi"
include "_head.pxi"

cdef enum:
    PULL_MESSAGE = 11
    LITE_PULL_MESSAGE = 361

cdef bytes FOUND_MIDDLE = f'"}},"flag":1,"language":"{LANGUAGE}","opaque":'.encode()
cdef bytes FOUND_END = f',"serializeTypeCurrentRPC":"JSON","version":{VERSION},"remark":"FOUND"}}'.encode()


cdef struct Fields:
    Text queue_offset
    Text commit_offset


cdef inline bint knows_code(int64_t code) noexcept nogil:
    return code == PULL_MESSAGE or code == LITE_PULL_MESSAGE


cdef inline bint take_field(Fields* fields, int64_t code, Text* name, Text* value) noexcept nogil:
    """The two numbers may be there only once; all others belong to the shape."""
    cdef Text* place
    if named(name, b"queueOffset", 11):
        place = &fields.queue_offset
    elif named(name, b"commitOffset", 12):
        place = &fields.commit_offset
    else:
        return True
    if place.at != NULL or not value.quoted:
        return False
    place[0] = value[0]
    return True


cdef bytes shape_of(const unsigned char* header, Py_ssize_t length, Head* head, Fields* fields):
    """The header without its three numbers."""
    cdef Text* first = &fields.queue_offset
    cdef Text* second = &fields.commit_offset
    cdef Text* third = &head.opaque
    if first.at > second.at:
        first, second = second, first
    if second.at > third.at:
        second, third = third, second
    if first.at > second.at:
        first, second = second, first
    cdef bytes shape = PyBytes_FromStringAndSize(NULL, length - first.length - second.length - third.length)
    cdef unsigned char* to = <unsigned char*>PyBytes_AS_STRING(shape)
    cdef const unsigned char* at = header
    to = put(to, <const char*>at, first.at - at)
    at = first.at + first.length
    to = put(to, <const char*>at, second.at - at)
    at = second.at + second.length
    to = put(to, <const char*>at, third.at - at)
    at = third.at + third.length
    put(to, <const char*>at, header + length - at)
    return shape


def scan_pull(bytearray buffer not None, Py_ssize_t start, Py_ssize_t end):
    cdef const unsigned char* frame = bytes_of(buffer) + start
    cdef Py_ssize_t length
    cdef int64_t opaque, queue_offset, commit_offset
    cdef Head head
    cdef Fields fields
    cdef Cursor cursor
    if start < 0 or end > len(buffer):
        raise ValueError("the frame lies outside the buffer")
    if end - start < 8:
        return None
    length = load32(frame)
    if load32(frame + 4) + 4 != <uint32_t>length or end - start < 4 + length or length < 4:
        return None
    memset(&head, 0, sizeof(Head))
    memset(&fields, 0, sizeof(Fields))
    cursor.at = frame + 8
    cursor.end = frame + 4 + length
    if not read_head(&cursor, &head, &fields):
        return None
    if head.flag != 0 or fields.queue_offset.at == NULL or fields.commit_offset.at == NULL:
        return None
    if not (
        to_number(&head.opaque, &opaque) and -0x80000000LL <= opaque <= 0x7FFFFFFFLL
        and to_number(&fields.queue_offset, &queue_offset) and queue_offset >= 0
        and to_number(&fields.commit_offset, &commit_offset)
    ):
        return None
    return shape_of(frame + 8, length - 4, &head, &fields), opaque, queue_offset, commit_offset, start + 4 + length


def encode_found(int64_t opaque, int64_t next_offset, int64_t offset_min, int64_t offset_max, Py_ssize_t body_length):
    cdef unsigned char head[512]
    cdef unsigned char* to
    cdef Py_ssize_t header_length
    to = put(head + 8, b'{"code":0,"extFields":{"suggestWhichBrokerId":"0","nextBeginOffset":"', 69)
    to = put_number(to, next_offset)
    to = put(to, b'","minOffset":"', 15)
    to = put_number(to, offset_min)
    to = put(to, b'","maxOffset":"', 15)
    to = put_number(to, offset_max)
    to = put(to, PyBytes_AS_STRING(FOUND_MIDDLE), len(FOUND_MIDDLE))
    to = put_number(to, opaque)
    to = put(to, PyBytes_AS_STRING(FOUND_END), len(FOUND_END))
    header_length = to - head - 8
    put_prefix(head, header_length, body_length)
    return PyBytes_FromStringAndSize(<const char*>head, 8 + header_length)
