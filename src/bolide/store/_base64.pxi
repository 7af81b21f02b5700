# Texts for answers: base64 as URLs have it (RFC 4648, section 5), of two pieces as one; and digits.

cdef const char* BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


cdef inline unsigned char* put_bytes(unsigned char* to, const unsigned char* text, Py_ssize_t length) noexcept nogil:
    memcpy(to, text, length)
    return to + length


cdef inline unsigned char* put_digits(unsigned char* to, int64_t number) noexcept nogil:
    """A number that is not below zero."""
    cdef unsigned char[20] digits
    cdef int at = 20
    while True:
        at -= 1
        digits[at] = <unsigned char>(c'0' + number % 10)
        number //= 10
        if number == 0:
            return put_bytes(to, &digits[at], 20 - at)


cdef inline Py_ssize_t base64_length(Py_ssize_t length) noexcept nogil:
    return (length + 2) // 3 * 4


cdef void put_base64(
    unsigned char* to,
    const unsigned char* head,
    Py_ssize_t head_length,
    const unsigned char* tail,
    Py_ssize_t tail_length,
) noexcept nogil:
    cdef Py_ssize_t at = 0, length = head_length + tail_length, left
    cdef int place
    cdef unsigned int group
    while at < length:
        group = 0
        left = length - at
        for place in range(3):
            group <<= 8
            if place < left:
                group |= head[at + place] if at + place < head_length else tail[at + place - head_length]
        for place in range(4):
            to[place] = BASE64[(group >> (18 - 6 * place)) & 63] if place <= left else c'='
        to += 4
        at += 3
