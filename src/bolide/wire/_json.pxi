# JSON, as much of it as the headers of hot requests use; included by _frame.pyx and _pull.pyx.
#
# Plain are objects whose values are text, whole numbers or literals and whose keys have no escapes.

cdef struct Text:
    # A JSON string's inside, or the text of a number or literal.
    const unsigned char* at
    Py_ssize_t length
    bint quoted
    bint escaped


cdef struct Cursor:
    const unsigned char* at
    const unsigned char* end


cdef inline void skip_blank(Cursor* c) noexcept nogil:
    while c.at < c.end and (c.at[0] == 32 or c.at[0] == 9 or c.at[0] == 10 or c.at[0] == 13):
        c.at += 1


cdef inline bint take(Cursor* c, unsigned char mark) noexcept nogil:
    skip_blank(c)
    if c.at < c.end and c.at[0] == mark:
        c.at += 1
        return True
    return False


cdef inline bint is_at_end(Cursor* c) noexcept nogil:
    skip_blank(c)
    return c.at == c.end


cdef bint read_string(Cursor* c, Text* text) noexcept nogil:
    """The inside of a string; the cursor is behind its opening quote."""
    cdef const unsigned char* start = c.at
    text.quoted = True
    text.escaped = False
    while c.at < c.end:
        if c.at[0] == c'"':
            text.at = start
            text.length = c.at - start
            c.at += 1
            return True
        if c.at[0] == c'\\':
            text.escaped = True
            if not skip_escape(c):
                return False
        elif c.at[0] < 0x20:
            return False
        else:
            c.at += 1
    return False


cdef bint skip_escape(Cursor* c) noexcept nogil:
    """Over an escape, which must be a legal one: surrogates come in pairs."""
    cdef int unit
    if c.end - c.at < 2:
        return False
    if c.at[1] != c'u':
        if simple_escape(c.at[1]) < 0:
            return False
        c.at += 2
        return True
    unit = read_unit(c.at + 2, c.end)
    c.at += 6
    if unit < 0 or 0xDC00 <= unit <= 0xDFFF:
        return False
    if 0xD800 <= unit <= 0xDBFF:
        if c.end - c.at < 2 or c.at[0] != c'\\' or c.at[1] != c'u':
            return False
        unit = read_unit(c.at + 2, c.end)
        c.at += 6
        return 0xDC00 <= unit <= 0xDFFF
    return True


cdef inline bint read_key(Cursor* c, Text* key) noexcept nogil:
    """A member's name and the colon behind it."""
    return take(c, c'"') and read_string(c, key) and not key.escaped and take(c, c':')


cdef bint read_scalar(Cursor* c, Text* text) noexcept nogil:
    """A string, number or literal.  Objects and arrays are not plain."""
    skip_blank(c)
    if c.at >= c.end:
        return False
    if c.at[0] == c'"':
        c.at += 1
        return read_string(c, text)
    text.at = c.at
    text.quoted = False
    text.escaped = False
    while c.at < c.end and (
        c.at[0] == c'-' or c.at[0] == c'+' or c.at[0] == c'.'
        or c'0' <= c.at[0] <= c'9' or c'a' <= c.at[0] <= c'z' or c'A' <= c.at[0] <= c'Z'
    ):
        c.at += 1
    text.length = c.at - text.at
    return is_literal(text) or is_number(text)


cdef bint is_literal(Text* text) noexcept nogil:
    return (
        (text.length == 4 and (memcmp(text.at, b"true", 4) == 0 or memcmp(text.at, b"null", 4) == 0))
        or (text.length == 5 and memcmp(text.at, b"false", 5) == 0)
    )


cdef bint is_number(Text* text) noexcept nogil:
    """A whole number as JSON writes it: no plus, no leading zero."""
    cdef Py_ssize_t at = 0, digits
    if text.length and text.at[0] == c'-':
        at = 1
    digits = text.length - at
    if digits < 1 or (digits > 1 and text.at[at] == c'0'):
        return False
    while at < text.length:
        if not c'0' <= text.at[at] <= c'9':
            return False
        at += 1
    return True


cdef bint to_number(Text* text, int64_t* value) noexcept nogil:
    """At most 18 digits, so it cannot overflow."""
    cdef Py_ssize_t at = 0
    cdef int64_t total = 0
    cdef bint negative = False
    if text.length and text.at[0] == c'-':
        negative = True
        at = 1
    if text.length - at < 1 or text.length - at > 18:
        return False
    while at < text.length:
        if not c'0' <= text.at[at] <= c'9':
            return False
        total = total * 10 + (text.at[at] - c'0')
        at += 1
    value[0] = -total if negative else total
    return True


cdef int hex_of(unsigned char mark) noexcept nogil:
    if c'0' <= mark <= c'9':
        return mark - c'0'
    if c'a' <= mark <= c'f':
        return mark - c'a' + 10
    if c'A' <= mark <= c'F':
        return mark - c'A' + 10
    return -1


cdef int read_unit(const unsigned char* at, const unsigned char* end) noexcept nogil:
    """Four hex digits, or -1."""
    cdef int value = 0, digit, number
    if end - at < 4:
        return -1
    for number in range(4):
        digit = hex_of(at[number])
        if digit < 0:
            return -1
        value = value * 16 + digit
    return value


cdef int simple_escape(unsigned char mark) noexcept nogil:
    if mark == c'"' or mark == c'\\' or mark == c'/':
        return mark
    if mark == c'n':
        return 10
    if mark == c't':
        return 9
    if mark == c'r':
        return 13
    if mark == c'b':
        return 8
    if mark == c'f':
        return 12
    return -1


cdef bint is_utf8(const unsigned char* at, Py_ssize_t length) noexcept nogil:
    """Strict: no overlong forms, no surrogates, nothing beyond U+10FFFF."""
    cdef const unsigned char* end = at + length
    cdef Py_ssize_t more
    cdef unsigned char first
    cdef uint64_t eight
    while at < end:
        while end - at >= 8:  # most headers are plain ASCII
            memcpy(&eight, at, 8)
            if eight & 0x8080808080808080ULL:
                break
            at += 8
        if at == end:
            break
        first = at[0]
        at += 1
        if first < 0x80:
            continue
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
        elif 0xF0 <= first <= 0xF4:
            more = 3
        else:
            return False
        if end - at < more:
            return False
        if (
            (first == 0xE0 and at[0] < 0xA0) or (first == 0xED and at[0] > 0x9F)
            or (first == 0xF0 and at[0] < 0x90) or (first == 0xF4 and at[0] > 0x8F)
        ):
            return False
        while more:
            if at[0] & 0xC0 != 0x80:
                return False
            at += 1
            more -= 1
    return True


# ---- the head of a request ------------------------------------------------------------------------------------

cdef struct Head:
    # What requests have in common.
    int64_t code
    int64_t flag
    bint has_flag
    bint has_fields
    Text opaque


ctypedef bint (*KnowsCode)(int64_t code) noexcept nogil
ctypedef bint (*TakeField)(void* fields, int64_t code, Text* name, Text* value) noexcept nogil


cdef inline bint named(Text* key, const char* name, Py_ssize_t length) noexcept nogil:
    return key.length == length and memcmp(key.at, name, length) == 0


cdef bint read_integer(Cursor* c, int64_t* value) noexcept nogil:
    cdef Text text
    return read_scalar(c, &text) and not text.quoted and to_number(&text, value)


cdef bint read_fields(Cursor* c, int64_t code, TakeField take_field, void* fields) noexcept nogil:
    """The object of fields; False when it is not plain, or `take_field` does not take one of them."""
    cdef Text name, value
    if not take(c, c'{'):
        return False
    if take(c, c'}'):
        return True
    while True:
        if not read_key(c, &name) or not read_scalar(c, &value) or not take_field(fields, code, &name, &value):
            return False
        if not take(c, c','):
            return take(c, c'}')


cdef bint read_head(
    Cursor* c, Head* head, KnowsCode knows_code, TakeField take_field, void* fields
) noexcept nogil:
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
            if not head.code or head.has_fields or not read_fields(c, head.code, take_field, fields):
                return False
            head.has_fields = True
        elif not read_scalar(c, &value):
            return False
        if not take(c, c','):
            break
    return take(c, c'}') and is_at_end(c) and head.has_fields and head.has_flag and head.opaque.at != NULL
