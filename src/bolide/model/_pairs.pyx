"""The compiled twin of pairs_twin.py: the same pairs and the same text."""
# cython: language_level=3

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8AndSize, PyUnicode_DecodeASCII
from libc.string cimport memchr, memcmp, memcpy

from bolide.model.pairs_twin import join_properties
from bolide.model.pairs_twin import parse_properties as parse_any

cdef enum:
    NAME_END = 1
    PAIR_END = 2


def parse_properties(str text not None):
    cdef Py_ssize_t length = 0
    cdef const char* at
    cdef const char* end
    cdef const char* pair_end
    cdef const char* name_end
    cdef dict properties
    if not text.isascii():
        return parse_any(text)
    at = PyUnicode_AsUTF8AndSize(text, &length)
    end = at + length
    properties = {}
    while at < end:
        pair_end = <const char*>memchr(at, PAIR_END, end - at)
        if pair_end == NULL:
            pair_end = end
        name_end = <const char*>memchr(at, NAME_END, pair_end - at)
        if name_end != NULL and name_end > at and name_end + 1 < pair_end:
            properties[PyUnicode_DecodeASCII(at, name_end - at, NULL)] = PyUnicode_DecodeASCII(
                name_end + 1, pair_end - name_end - 1, NULL
            )
        at = pair_end + 1
    return properties


cdef bint is_named(const char* at, Py_ssize_t length, list names) except -1:
    """Whether this pair has one of these names, and a sign that ends the name."""
    cdef const char* name_end = <const char*>memchr(at, NAME_END, length)
    cdef bytes name
    if name_end == NULL:
        return False
    for name in names:
        if PyBytes_GET_SIZE(name) == name_end - at and memcmp(PyBytes_AS_STRING(name), at, name_end - at) == 0:
            return True
    return False


def with_pairs(bytes properties not None, dict pairs not None):
    cdef list names = [(<str?>name).encode() for name in pairs]
    cdef bytes written = join_properties({name: text for name, text in pairs.items() if text is not None}).encode()
    cdef Py_ssize_t size = PyBytes_GET_SIZE(properties), one
    cdef bytes made = PyBytes_FromStringAndSize(NULL, size + 1 + PyBytes_GET_SIZE(written))
    cdef char* begin = PyBytes_AS_STRING(made)
    cdef char* to = begin
    cdef const char* at = PyBytes_AS_STRING(properties)
    cdef const char* end = at + size
    cdef const char* pair_end
    while at < end:
        pair_end = <const char*>memchr(at, PAIR_END, end - at)
        one = (end if pair_end == NULL else pair_end + 1) - at
        if not is_named(at, one, names):
            memcpy(to, at, one)
            to += one
        at += one
    if to > begin and (to - 1)[0] != PAIR_END:
        to[0] = PAIR_END
        to += 1
    memcpy(to, PyBytes_AS_STRING(written), PyBytes_GET_SIZE(written))
    to += PyBytes_GET_SIZE(written)
    return made[: to - begin]


cdef class Examiner:
    """What looks at the properties of a stored message, and at nothing else of it."""

    cdef bint takes(self, const unsigned char* properties, Py_ssize_t length) except -1:
        raise TypeError(f"{type(self).__name__} does not say what it takes")
