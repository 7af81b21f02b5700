# Writing the bytes of frames and their headers; included by _frame.pyx and _pull.pyx.

cdef unsigned char* bytes_of(bytearray area) except? NULL:
    return <unsigned char*>PyByteArray_AS_STRING(area)


cdef inline unsigned char* put(unsigned char* to, const char* text, Py_ssize_t length) noexcept nogil:
    memcpy(to, text, length)
    return to + length


cdef unsigned char* put_number(unsigned char* to, int64_t value) noexcept nogil:
    cdef unsigned char digits[20]
    cdef int used = 0
    if value < 0:
        to[0] = c'-'
        to += 1
        value = -value
    while True:
        digits[used] = <unsigned char>(c'0' + value % 10)
        used += 1
        value //= 10
        if value == 0:
            break
    while used:
        used -= 1
        to[0] = digits[used]
        to += 1
    return to


cdef void put_prefix(unsigned char* to, Py_ssize_t header_length, Py_ssize_t body_length) noexcept nogil:
    store32(to, <uint32_t>(header_length + 4 + body_length))
    store32(to + 4, <uint32_t>header_length)  # its first byte says JSON
