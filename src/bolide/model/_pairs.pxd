# The C-level face of the pairs, for compiled modules of rooms above.


cdef class Examiner:
    # Half of a filter (filter.py) that compiled code can ask without making an object of the record.
    cdef bint takes(self, const unsigned char* properties, Py_ssize_t length) except -1
