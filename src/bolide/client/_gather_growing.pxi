# Part of _gather.pyx: bytes that grow at their end.

cdef class Growing:
    cdef char* data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    def __dealloc__(self):
        free(self.data)

    cdef int reserve(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t capacity
        cdef char* data
        if self.size + more <= self.capacity:
            return 0
        capacity = max(self.capacity * 2, self.size + more, FIRST_BYTES)
        data = <char*>realloc(self.data, capacity)
        if data == NULL:
            raise MemoryError()
        self.data, self.capacity = data, capacity
        return 0

    cdef inline int put(self, const char* data, Py_ssize_t length) except -1:
        self.reserve(length)
        memcpy(self.data + self.size, data, length)
        self.size += length
        return 0

    cdef inline int put_byte(self, char one) except -1:
        self.reserve(1)
        self.data[self.size] = one
        self.size += 1
        return 0
