# What compiled code needs to go over properties (`name 0x01 value 0x02`) and to know some of them.  Inline, so that each
# module has its own copy.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp


cdef struct NameText:
    const unsigned char* text
    Py_ssize_t length


cdef inline int fill_names(NameText* names, list texts) except -1:
    """From texts that live as long as the module does."""
    cdef bytes text
    for number, text in enumerate(texts):
        names[number].text = <const unsigned char*>PyBytes_AS_STRING(text)
        names[number].length = PyBytes_GET_SIZE(text)
    return 0


cdef inline int which_name(
    const NameText* names, int count, const unsigned char* name, Py_ssize_t length
) noexcept nogil:
    """Which of these it is; -1 for others."""
    cdef int number
    for number in range(count):
        if length == names[number].length and memcmp(name, names[number].text, length) == 0:
            return number
    return -1


cdef inline Py_ssize_t find_byte(
    const unsigned char* text, Py_ssize_t at, Py_ssize_t end, int wanted
) noexcept nogil:
    """Where the byte is, from `at` on; `end` when it is not there."""
    cdef const void* found = memchr(text + at, wanted, end - at)
    return end if found == NULL else <const unsigned char*>found - text


cdef inline int64_t digits_of(const unsigned char* text, Py_ssize_t length, Py_ssize_t length_max) noexcept nogil:
    """A number in so many digits at most, 18 or fewer, and nothing else; -1 when it is no such text."""
    cdef int64_t value = 0
    cdef Py_ssize_t at
    if not 0 < length <= length_max:
        return -1
    for at in range(length):
        if not c'0' <= text[at] <= c'9':
            return -1
        value = value * 10 + (text[at] - c'0')
    return value
