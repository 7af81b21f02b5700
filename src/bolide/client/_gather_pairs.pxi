# Part of _gather.pyx: the properties of a message as a batch carries them.

cdef bint put_own(Growing pairs, given, bint takes_key) except -1:
    """`takes_key`: whether a sharding key may be among them."""
    if type(given) is not dict:
        return False
    if not given:
        return True
    for name, value in (<dict>given).items():
        if type(name) is not str or type(value) is not str or name.startswith(MEANING_FAMILIES):
            return False
        if name in MEANING and not (takes_key and name == SHARDING_KEY):
            return False
        if not name or name.isspace():
            return False
        if not value:
            if has_ends(name):
                return False
            continue
        if not put_text(pairs, name):
            return False
        pairs.put_byte(1)
        if not put_text(pairs, value):
            return False
        pairs.put_byte(2)
    return True


cdef bint has_ends(str text):
    return "\x01" in text or "\x02" in text


cdef bint put_text(Growing pairs, str text) except -1:
    """Text of the application's own; False when it is no UTF-8 or has one of the signs that end it."""
    cdef Py_ssize_t length = 0, at
    cdef const char* data
    try:
        data = PyUnicode_AsUTF8AndSize(text, &length)
    except UnicodeEncodeError:
        return False
    for at in range(length):
        if <uint8_t>data[at] == 1 or <uint8_t>data[at] == 2:
            return False
    pairs.put(data, length)
    return True


cdef bint put_pair(Growing pairs, str name, text, bint blanks) except -1:
    if text is None or (type(text) is str and not text):
        return True
    if type(text) is not str:
        return False
    put_name(pairs, name)
    if not put_word(pairs, text, blanks):
        return False
    pairs.put_byte(2)
    return True


cdef bint put_keys(Growing pairs, keys) except -1:
    cdef bint first = True
    if type(keys) is str:
        return put_pair(pairs, KEYS, keys, True)
    if type(keys) is not tuple and type(keys) is not list:
        return False
    if not keys:
        return True
    for key in keys:
        if type(key) is not str:
            return False
    if not " ".join(keys):
        return True
    put_name(pairs, KEYS)
    for key in keys:
        if not first:
            pairs.put_byte(c" ")
        first = False
        if not put_word(pairs, key, False):
            return False
    pairs.put_byte(2)
    return True


cdef int put_name(Growing pairs, str name) except -1:
    cdef Py_ssize_t length = 0
    cdef const char* data = PyUnicode_AsUTF8AndSize(name, &length)
    pairs.put(data, length)
    return pairs.put_byte(1)


cdef bint put_word(Growing pairs, str text, bint blanks) except -1:
    cdef Py_ssize_t length = 0, at
    cdef uint8_t lowest = 0x20 if blanks else 0x21
    cdef const char* data
    if not text.isascii():
        return False
    data = PyUnicode_AsUTF8AndSize(text, &length)
    if length == 1 and data[0] == c"*":
        return False
    for at in range(length):
        if not lowest <= <uint8_t>data[at] < 0x7F or data[at] == c"|":
            return False
    pairs.put(data, length)
    return True
