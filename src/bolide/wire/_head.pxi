# The head of a request, read in one walk; included by _frame.pyx and _pull.pyx behind _json.pxi.
#
# Each of them says what is its own: `Fields`, where the values of its fields go; `knows_code`, which requests are meant;
# and `take_field`, which puts one value in its place, or returns False for one that is not plain.

from bolide.model.limits import HEADER_FIELDS_MAX

cdef Py_ssize_t FIELDS_MAX = HEADER_FIELDS_MAX


cdef struct Head:
    # What requests have in common.
    int64_t code
    int64_t flag
    bint has_flag
    bint has_fields
    Text opaque


cdef inline bint read_fields(Cursor* c, int64_t code, Fields* fields) noexcept nogil:
    """The object of fields; False when it is not plain, has too many, or `take_field` does not take one of them."""
    cdef Text name, value
    cdef Py_ssize_t count = 0
    if not take(c, c'{'):
        return False
    if take(c, c'}'):
        return True
    while True:
        count += 1
        if count > FIELDS_MAX:
            return False
        if not read_key(c, &name) or not read_scalar(c, &value) or not take_field(fields, code, &name, &value):
            return False
        if not take(c, c','):
            return take(c, c'}')


cdef bint read_head(Cursor* c, Head* head, Fields* fields) noexcept nogil:
    """A whole header; False when it is not plain, or of a code that is not known.

    The code must come before the fields, because it decides how they are spelled; Java sorts it first.  What counts
    may be there only once.
    """
    cdef Text name, value
    if not is_utf8(c.at, c.end - c.at) or not take(c, c'{'):
        return False
    while True:
        if not read_key(c, &name):
            return False
        if named(&name, b"code", 4):
            if head.code or not read_integer(c, &head.code) or not knows_code(head.code):
                return False
        elif named(&name, b"flag", 4):
            if head.has_flag or not read_integer(c, &head.flag):
                return False
            head.has_flag = True
        elif named(&name, b"opaque", 6):
            if head.opaque.at != NULL or not read_scalar(c, &head.opaque) or head.opaque.quoted:
                return False
        elif named(&name, b"extFields", 9):
            if not head.code or head.has_fields or not read_fields(c, head.code, fields):
                return False
            head.has_fields = True
        elif not read_scalar(c, &value):
            return False
        if not take(c, c','):
            break
    return take(c, c'}') and is_at_end(c) and head.has_fields and head.has_flag and head.opaque.at != NULL
