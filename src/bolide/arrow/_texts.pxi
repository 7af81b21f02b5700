# Part of _columns.pyx: properties, text and hosts.

# ---- properties -----------------------------------------------------------------------------------------------

cdef struct Pair:
    Bytes name
    Py_ssize_t name_length
    Bytes value
    Py_ssize_t value_length


@cython.final
cdef class Properties:
    """The pairs of one record: each name once, at its first place, with its last value."""

    cdef Pair* pairs
    cdef Py_ssize_t count
    cdef Py_ssize_t capacity
    cdef bytes kept  # repaired text that the pairs point into

    def __dealloc__(self):
        free(self.pairs)

    cdef int read(self, Bytes text, Py_ssize_t length) except -1:
        if not is_utf8(text, length):
            self.kept = repaired(text, length)
            text = <Bytes>PyBytes_AS_STRING(self.kept)
            length = PyBytes_GET_SIZE(self.kept)
        if not self.scan(text, length, True):
            self.kept = without_repeats(PyBytes_FromStringAndSize(<const char*>text, length))
            self.scan(<Bytes>PyBytes_AS_STRING(self.kept), PyBytes_GET_SIZE(self.kept), False)
        return 0

    cdef int scan(self, Bytes text, Py_ssize_t length, bint unite) except -1:
        """Whether all pairs were read; comparing each name with all before is only done for so many."""
        cdef Bytes end = text + length
        cdef Bytes pair_end
        cdef Bytes name_end
        self.count = 0
        while text < end:
            pair_end = <Bytes>memchr(text, 2, end - text)
            if pair_end == NULL:
                pair_end = end
            name_end = <Bytes>memchr(text, 1, pair_end - text)
            if name_end != NULL and name_end > text and name_end + 1 < pair_end:
                if unite and self.count == PAIRS_INLINE:
                    return False
                self.put(text, name_end - text, name_end + 1, pair_end - name_end - 1, unite)
            text = pair_end + 1
        return True

    cdef int put(
        self, Bytes name, Py_ssize_t name_length, Bytes value, Py_ssize_t value_length, bint unite
    ) except -1:
        cdef Pair* pair = self.find(name, name_length) if unite else NULL
        cdef Pair* pairs
        if pair == NULL:
            if self.count == self.capacity:
                pairs = <Pair*>realloc(self.pairs, (self.capacity + PAIRS_INLINE) * sizeof(Pair))
                if pairs == NULL:
                    raise MemoryError()
                self.pairs = pairs
                self.capacity += PAIRS_INLINE
            pair = &self.pairs[self.count]
            pair.name = name
            pair.name_length = name_length
            self.count += 1
        pair.value = value
        pair.value_length = value_length
        return 0

    cdef Pair* find(self, const void* name, Py_ssize_t length) noexcept:
        cdef Py_ssize_t at
        for at in range(self.count):
            if self.pairs[at].name_length == length and memcmp(self.pairs[at].name, name, length) == 0:
                return &self.pairs[at]
        return NULL


def without_repeats(bytes text):
    pairs = parse_properties(text.decode())
    return "".join([f"{name}\x01{value}\x02" for name, value in pairs.items()]).encode()


# ---- texts ----------------------------------------------------------------------------------------------------


cdef bint is_utf8(Bytes text, Py_ssize_t length) noexcept nogil:
    """Exactly what Python takes for UTF-8: nothing overlong, no surrogates, nothing above U+10FFFF."""
    cdef Bytes end = text + length
    cdef uint64_t word
    cdef unsigned char first
    while text < end:
        if end - text >= 8:
            memcpy(&word, text, 8)
            if not word & HIGH_BITS:
                text += 8
                continue
        first = text[0]
        if first < 0x80:
            text += 1
        elif first < 0xC2 or first > 0xF4:
            return False
        elif first < 0xE0:
            if end - text < 2 or not is_tail(text[1], 0x80, 0xBF):
                return False
            text += 2
        elif first < 0xF0:
            if end - text < 3 or not is_tail(text[2], 0x80, 0xBF):
                return False
            if not is_tail(text[1], 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF):
                return False
            text += 3
        else:
            if end - text < 4 or not is_tail(text[2], 0x80, 0xBF) or not is_tail(text[3], 0x80, 0xBF):
                return False
            if not is_tail(text[1], 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF):
                return False
            text += 4
    return True


cdef inline bint is_tail(unsigned char byte, unsigned char low, unsigned char high) noexcept nogil:
    return low <= byte <= high


cdef bytes repaired(Bytes text, Py_ssize_t length):
    return PyBytes_FromStringAndSize(<const char*>text, length).decode("utf-8", "replace").encode()


cdef struct HostText:
    # A host in both forms: consecutive records mostly share theirs.
    unsigned char host[HOST_V6_BYTES]
    Py_ssize_t host_length
    char text[HOST_TEXT_BYTES]
    Py_ssize_t length


cdef int write_host(HostText* known, Bytes host, Py_ssize_t length) except -1:
    cdef bytes text
    if length == known.host_length and memcmp(host, known.host, length) == 0:
        return 0
    if length == HOST_V4_BYTES:
        known.length = snprintf(
            known.text, HOST_TEXT_BYTES, b"%u.%u.%u.%u:%u",
            <unsigned int>host[0], <unsigned int>host[1], <unsigned int>host[2], <unsigned int>host[3],
            <unsigned int>load32(host + 4),
        )
    else:
        text = format_host(PyBytes_FromStringAndSize(<const char*>host, length)).encode()
        assert len(text) < HOST_TEXT_BYTES
        memcpy(known.text, PyBytes_AS_STRING(text), len(text))
        known.length = len(text)
    memcpy(known.host, host, length)
    known.host_length = length
    return 0


cdef inline char* write_hex(char* to, Bytes data, Py_ssize_t length) noexcept nogil:
    cdef Py_ssize_t at
    for at in range(length):
        memcpy(to, &HEX_PAIRS[2 * data[at]], 2)
        to += 2
    return to


cdef char HEX_PAIRS[512]
memcpy(HEX_PAIRS, PyBytes_AS_STRING(bytes(range(256)).hex().upper().encode()), 512)
