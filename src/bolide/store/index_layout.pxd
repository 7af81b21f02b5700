# The numbers of index_layout.py for compiled code; tests/unit/store/test_layouts.py compares the two.

cdef enum:
    # ---- the header
    BEGIN_MS_AT = 0
    END_MS_AT = 8
    BEGIN_OFFSET_AT = 16
    END_OFFSET_AT = 24
    SLOTS_USED_AT = 32
    NEXT_ENTRY_AT = 36
    HEADER_BYTES = 40
    SLOT_BYTES = 4
    # ---- an entry
    HASH_AT = 0
    LOG_OFFSET_AT = 4
    SECONDS_AT = 12
    OLDER_AT = 16
    ENTRY_BYTES = 20


cdef inline Py_ssize_t slot_at(Py_ssize_t number) noexcept nogil:
    return HEADER_BYTES + SLOT_BYTES * number


cdef inline Py_ssize_t entry_at(Py_ssize_t slots, Py_ssize_t number) noexcept nogil:
    return slot_at(slots) + ENTRY_BYTES * number
