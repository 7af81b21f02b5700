# Numbers as frames and files hold them, the highest byte first.  Inline, so that every compiled module has its own copy
# and a compiler makes one instruction of each.

from libc.stdint cimport uint32_t, uint64_t


cdef inline Py_ssize_t load16(const unsigned char* at) noexcept nogil:
    return (<Py_ssize_t>at[0] << 8) | at[1]


cdef inline uint32_t load32(const unsigned char* at) noexcept nogil:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3]


cdef inline uint64_t load64(const unsigned char* at) noexcept nogil:
    return (<uint64_t>load32(at) << 32) | load32(at + 4)


cdef inline void store16(unsigned char* at, Py_ssize_t value) noexcept nogil:
    at[0] = <unsigned char>(value >> 8)
    at[1] = <unsigned char>value


cdef inline void store32(unsigned char* at, uint32_t value) noexcept nogil:
    at[0] = <unsigned char>(value >> 24)
    at[1] = <unsigned char>(value >> 16)
    at[2] = <unsigned char>(value >> 8)
    at[3] = <unsigned char>value


cdef inline void store64(unsigned char* at, uint64_t value) noexcept nogil:
    store32(at, <uint32_t>(value >> 32))
    store32(at + 4, <uint32_t>value)
