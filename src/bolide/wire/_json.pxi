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
    cdef const unsigned char* at = c.at  # here and not in the cursor, which would be written for every character
    cdef const unsigned char* end = c.end
    text.at = at
    text.quoted = True
    text.escaped = False
    while at < end:
        if at[0] == c'"':
            text.length = at - text.at
            c.at = at + 1
            return True
        if at[0] == c'\\':
            text.escaped = True
            c.at = at
            if not skip_escape(c):
                return False
            at = c.at
        elif at[0] < 0x20:
            return False
        else:
            at += 1
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


cdef inline bint named(Text* key, const char* name, Py_ssize_t length) noexcept nogil:
    return key.length == length and memcmp(key.at, name, length) == 0


cdef bint read_integer(Cursor* c, int64_t* value) noexcept nogil:
    cdef Text text
    return read_scalar(c, &text) and not text.quoted and to_number(&text, value)
