# Part of _rows.pyx: Arrow's buffers as they are, and numbers of messages.

# ---- Arrow's buffers --------------------------------------------------------------------------------------------


@cython.final
cdef class Held:
    """A buffer that stays where it is as long as this object is there."""

    cdef Py_buffer view
    cdef bint held

    def __cinit__(self, source):
        PyObject_GetBuffer(source, &self.view, PyBUF_SIMPLE)
        self.held = True

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)

    cdef const uint8_t* at(self) noexcept:
        return <const uint8_t*>self.view.buf


cdef struct Piece:
    const char* data
    Py_ssize_t length


@cython.final
cdef class View:
    """A column: texts, numbers or the spans of lists and maps, with its children."""

    cdef Held validity, places, data
    cdef Py_ssize_t offset
    cdef View items, values

    def __cinit__(self, validity, places, data, offset, View items=None, View values=None):
        self.validity = None if validity is None else Held(validity)
        self.places = None if places is None else Held(places)
        self.data = None if data is None else Held(data)
        self.offset = offset
        self.items = items
        self.values = values

    cdef inline bint is_null(self, Py_ssize_t row) except -1:
        cdef Py_ssize_t at = row + self.offset
        if self.validity is None:
            return False
        if row < 0 or (at >> 3) >= self.validity.view.len:
            raise IndexError("a row that the column does not have")
        return not (self.validity.at()[at >> 3] >> (at & 7)) & 1

    cdef inline int span(self, Py_ssize_t row, Py_ssize_t* begin, Py_ssize_t* end) except -1:
        cdef Py_ssize_t at = row + self.offset
        cdef const int32_t* places = <const int32_t*>self.places.at()
        if row < 0 or (at + 2) * 4 > self.places.view.len:
            raise IndexError("a row that the column does not have")
        begin[0], end[0] = places[at], places[at + 1]
        if begin[0] < 0 or end[0] < begin[0]:
            raise IndexError("a column whose offsets go back")
        return 0

    cdef inline bint text(self, Py_ssize_t row, Piece* found) except -1:
        """False where it is null."""
        cdef Py_ssize_t begin, end
        if self.is_null(row):
            return False
        self.span(row, &begin, &end)
        if end > self.data.view.len:
            raise IndexError("a text behind the end of its column")
        found.data, found.length = <const char*>self.data.at() + begin, end - begin
        return True

    cdef inline bint number(self, Py_ssize_t row, int64_t* found) except -1:
        cdef Py_ssize_t at = row + self.offset
        if self.is_null(row):
            return False
        if row < 0 or (at + 1) * 8 > self.data.view.len:
            raise IndexError("a row that the column does not have")
        found[0] = (<const int64_t*>self.data.at())[at]
        return True


cdef View view_of(column):
    """Of the twin's tuples: five fields are a map, four a text or a list, three numbers."""
    if column is None:
        return None
    if len(column) == 5:
        return View(column[0], column[1], None, column[2], view_of(column[3]), view_of(column[4]))
    if len(column) == 3:
        return View(column[0], None, column[1], column[2])
    if isinstance(column, Texts):
        return View(column[0], column[1], None, column[2], view_of(column[3]))
    return View(column[0], column[1], column[2], column[3])


# ---- numbers of messages -----------------------------------------------------------------------------------------


@cython.final
cdef class IdSet:
    """See the twin.  Open addressing; 0 is a free slot."""

    cdef uint64_t* slots
    cdef Py_ssize_t size
    cdef Py_ssize_t count

    def __cinit__(self):
        self.slots = NULL
        self.size = 0
        self.count = 0

    def __dealloc__(self):
        free(self.slots)

    def __len__(self):
        return self.count

    def __contains__(self, uint64_t number):
        return self.has(number)

    def add(self, uint64_t number):
        return self.put(number)

    def add_keys(self, keys, Py_ssize_t rows, str prefix):
        cdef View column = view_of(keys)
        cdef bytes begin = prefix.encode()
        cdef Piece key
        cdef Py_ssize_t row, at, found = 0
        cdef uint64_t number
        cdef int digit
        if PyBytes_GET_SIZE(begin) != PREFIX_DIGITS:
            raise ValueError("a prefix has 16 digits")
        for row in range(rows):
            if not column.text(row, &key) or key.length != KEY_DIGITS:
                continue
            if memcmp(key.data, PyBytes_AS_STRING(begin), PREFIX_DIGITS) != 0:
                continue
            number = 0
            for at in range(PREFIX_DIGITS, KEY_DIGITS):
                digit = key.data[at]
                if c"0" <= digit <= c"9":
                    digit -= c"0"
                elif c"A" <= digit <= c"F":
                    digit -= c"A" - 10
                else:
                    number = 0
                    break
                number = number << 4 | <uint64_t>digit
            if number != 0:
                self.put(number)
                found += 1
        return found

    cdef inline Py_ssize_t slot(self, uint64_t number) noexcept:
        cdef Py_ssize_t at = <Py_ssize_t>((number * K2) >> 20) & (self.size - 1)
        while self.slots[at] != 0 and self.slots[at] != number:
            at = (at + 1) & (self.size - 1)
        return at

    cdef inline bint has(self, uint64_t number) noexcept:
        return self.count > 0 and self.slots[self.slot(number)] == number

    cdef bint put(self, uint64_t number) except -1:
        cdef Py_ssize_t at
        if self.count * 4 >= self.size * 3:
            self.grow()
        at = self.slot(number)
        if self.slots[at] == number:
            return False
        if self.count >= IDS_MAX:
            raise too_many()
        self.slots[at] = number
        self.count += 1
        return True

    cdef int grow(self) except -1:
        cdef uint64_t* old = self.slots
        cdef Py_ssize_t size = self.size, at
        cdef uint64_t* slots = <uint64_t*>calloc(size * 2 if size else FIRST_SLOTS, 8)
        if slots == NULL:
            raise MemoryError()
        self.slots = slots
        self.size = size * 2 if size else FIRST_SLOTS
        for at in range(size):
            if old[at] != 0:
                self.slots[self.slot(old[at])] = old[at]
        free(old)
        return 0


@cython.final
cdef class Repeats:
    """How often numbers have come again, those that have.  Open addressing: a number and its count, 0 is a free slot."""

    cdef uint64_t* slots
    cdef Py_ssize_t size
    cdef Py_ssize_t count

    def __cinit__(self):
        self.slots = NULL
        self.size = 0
        self.count = 0

    def __dealloc__(self):
        free(self.slots)

    cdef uint64_t next(self, uint64_t number) except 0:
        cdef uint64_t* slot
        if self.count * 4 >= self.size * 3:
            self.grow()
        slot = self.slot(number)
        if slot[0] == 0:
            slot[0] = number
            self.count += 1
        slot[1] += 1
        return slot[1]

    cdef inline uint64_t* slot(self, uint64_t number) noexcept:
        cdef Py_ssize_t at = <Py_ssize_t>((number * K2) >> 20) & (self.size - 1)
        while self.slots[2 * at] != 0 and self.slots[2 * at] != number:
            at = (at + 1) & (self.size - 1)
        return self.slots + 2 * at

    cdef int grow(self) except -1:
        cdef uint64_t* old = self.slots
        cdef uint64_t* slot
        cdef Py_ssize_t size = self.size, at
        cdef uint64_t* slots = <uint64_t*>calloc(size * 2 if size else FIRST_SLOTS, 16)
        if slots == NULL:
            raise MemoryError()
        self.slots = slots
        self.size = size * 2 if size else FIRST_SLOTS
        for at in range(size):
            if old[2 * at] != 0:
                slot = self.slot(old[2 * at])
                slot[0], slot[1] = old[2 * at], old[2 * at + 1]
        free(old)
        return 0


cdef extern from *:
    """
    #if defined(__SIZEOF_INT128__)
    static inline uint64_t bolide_fold(uint64_t one, uint64_t other) {
        unsigned __int128 product = (unsigned __int128)one * other;
        return (uint64_t)product ^ (uint64_t)(product >> 64);
    }
    #else
    static inline uint64_t bolide_fold(uint64_t one, uint64_t other) {
        uint64_t a = one >> 32, b = one & 0xFFFFFFFFULL, c = other >> 32, d = other & 0xFFFFFFFFULL;
        uint64_t low = b * d, cross = a * d + (low >> 32), middle = b * c + (cross & 0xFFFFFFFFULL);
        return ((middle << 32) | (low & 0xFFFFFFFFULL)) ^ (a * c + (cross >> 32) + (middle >> 32));
    }
    #endif
    """
    uint64_t fold "bolide_fold"(uint64_t one, uint64_t other) noexcept nogil


cdef inline uint64_t mixed(uint64_t state, const char* data, Py_ssize_t length) noexcept nogil:
    cdef uint64_t word
    cdef Py_ssize_t at = 0
    while at + 8 <= length:
        memcpy(&word, data + at, 8)
        state = fold(state ^ word, K1)
        at += 8
    if at < length:
        word = 0
        memcpy(&word, data + at, length - at)
        state = fold(state ^ word, K1)
    return fold(state ^ <uint64_t>length, K2)


cdef inline uint64_t finished(uint64_t state) noexcept nogil:
    state *= K3
    state ^= state >> 32
    return state if state else 1
