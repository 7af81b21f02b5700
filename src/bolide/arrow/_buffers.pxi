# Part of _columns.pyx: the columns and the memory they grow in.

# ---- memory that grows, and is handed over without a copy ------------------------------------------------------


@cython.final
cdef class Growing:
    """Bytes that only grow.  Once its buffer is given away the builder has no hand on it any more."""

    cdef char* data
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    def __dealloc__(self):
        free(self.data)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data if self.data != NULL else <void*>b"", self.size, 1, flags)

    cdef int grow(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t capacity = self.capacity * 2 if self.capacity else FIRST_BYTES
        cdef char* data
        if self.size + more > INT_MAX:
            raise OverflowError("a column is larger than Arrow's offsets reach")
        if capacity < self.size + more:
            capacity = self.size + more
        data = <char*>realloc(self.data, capacity)
        if data == NULL:
            raise MemoryError()
        self.data = data
        self.capacity = capacity
        return 0

    cdef int reserve(self, Py_ssize_t size) except -1:
        """Room for so much at once: growing by and by costs more than everything that is then put there."""
        if size > self.capacity:
            self.grow(size - self.size)
        return 0

    cdef inline int put(self, const void* value, Py_ssize_t length) except -1:
        if length == 0:  # there may be no memory yet, and C does not copy even nothing to nowhere
            return 0
        if length > self.capacity - self.size:
            self.grow(length)
        memcpy(self.data + self.size, value, length)
        self.size += length
        return 0

    cdef inline int put32(self, int32_t value) except -1:
        return self.put(&value, 4)

    cdef inline int put64(self, int64_t value) except -1:
        return self.put(&value, 8)


@cython.final
cdef class Validity:
    """A bitmap, least significant bit first.  Nothing is written before the first null."""

    cdef Growing bits
    cdef Py_ssize_t rows
    cdef Py_ssize_t nulls

    def __cinit__(self):
        self.bits = Growing()

    cdef inline int put(self, bint valid) except -1:
        if valid and self.nulls == 0:
            self.rows += 1
            return 0
        return self.put_bit(valid)

    cdef int put_bit(self, bint valid) except -1:
        cdef uint8_t ones = 0xFF
        cdef uint8_t none = 0
        cdef uint8_t before
        if self.nulls == 0:  # everything so far was there
            while self.bits.size < self.rows // 8:
                self.bits.put(&ones, 1)
            if self.rows % 8:
                before = <uint8_t>((1 << (self.rows % 8)) - 1)
                self.bits.put(&before, 1)
        if self.rows % 8 == 0:
            self.bits.put(&none, 1)
        if valid:
            self.bits.data[self.bits.size - 1] |= <char>(1 << (self.rows % 8))
        else:
            self.nulls += 1
        self.rows += 1
        return 0

    cdef object buffer(self):
        return memoryview(self.bits) if self.nulls else None


# ---- columns, each with the buffers of one Arrow layout --------------------------------------------------------


cdef class Column:
    cdef tuple buffers(self):
        raise AssertionError("every kind of column has its own")

    cdef tuple memory(self):
        """What grows with every row, in an order of the class."""
        raise AssertionError("every kind of column has its own")


@cython.final
cdef class Numbers(Column):
    cdef Growing values

    def __cinit__(self):
        self.values = Growing()

    cdef tuple buffers(self):
        return None, memoryview(self.values)

    cdef tuple memory(self):
        return (self.values,)


@cython.final
cdef class Times(Column):
    """Milliseconds in, microseconds out; null where they do not fit."""

    cdef Growing values
    cdef Validity validity

    def __cinit__(self):
        self.values = Growing()
        self.validity = Validity()

    cdef inline int put(self, int64_t time_ms) except -1:
        cdef bint fits = -TIME_MS_MAX <= time_ms <= TIME_MS_MAX
        self.values.put64(time_ms * 1000 if fits else 0)
        return self.validity.put(fits)

    cdef tuple buffers(self):
        return self.validity.buffer(), memoryview(self.values)

    cdef tuple memory(self):
        return (self.values,)


@cython.final
cdef class Texts(Column):
    """Texts or bytes: where each ends, and all of them in a row."""

    cdef Growing offsets
    cdef Growing data
    cdef Validity validity

    def __cinit__(self):
        self.offsets = Growing()
        self.offsets.put32(0)
        self.data = Growing()
        self.validity = Validity()

    cdef inline int put(self, const void* text, Py_ssize_t length) except -1:
        self.data.put(text, length)
        self.offsets.put32(<int32_t>self.data.size)
        return self.validity.put(True)

    cdef int put_null(self) except -1:
        self.offsets.put32(<int32_t>self.data.size)
        return self.validity.put(False)

    cdef int put_nulls_up_to(self, Py_ssize_t rows) except -1:
        """For a column that hardly any row has: those without need not be told of one by one."""
        while self.validity.rows < rows:
            self.put_null()
        return 0

    cdef tuple buffers(self):
        return self.validity.buffer(), memoryview(self.offsets), memoryview(self.data)

    cdef tuple memory(self):
        return self.offsets, self.data


@cython.final
cdef class TextLists(Column):
    cdef Growing offsets
    cdef Texts items
    cdef int32_t count

    def __cinit__(self):
        self.offsets = Growing()
        self.offsets.put32(0)
        self.items = Texts()

    cdef int put_words(self, Bytes text, Py_ssize_t length) except -1:
        """The words of a text, separated by any number of spaces."""
        cdef Py_ssize_t start = 0, at
        for at in range(length + 1):
            if at == length or text[at] == c' ':
                if at > start:
                    self.items.put(text + start, at - start)
                    self.count += 1
                start = at + 1
        return self.offsets.put32(self.count)

    cdef tuple buffers(self):
        return (None, memoryview(self.offsets)) + self.items.buffers()

    cdef tuple memory(self):
        return (self.offsets,) + self.items.memory()


@cython.final
cdef class TextMaps(Column):
    """A map is a list of pairs; the pair has a bitmap of its own, and so have names and values."""

    cdef Growing offsets
    cdef Texts names
    cdef Texts values
    cdef int32_t count

    def __cinit__(self):
        self.offsets = Growing()
        self.offsets.put32(0)
        self.names = Texts()
        self.values = Texts()

    cdef int put(self, Properties properties) except -1:
        cdef Py_ssize_t at
        cdef Pair* pair
        for at in range(properties.count):
            pair = &properties.pairs[at]
            self.names.put(pair.name, pair.name_length)
            self.values.put(pair.value, pair.value_length)
        self.count += <int32_t>properties.count
        return self.offsets.put32(self.count)

    cdef tuple buffers(self):
        return (None, memoryview(self.offsets), None) + self.names.buffers() + self.values.buffers()

    cdef tuple memory(self):
        return (self.offsets,) + self.names.memory() + self.values.memory()
