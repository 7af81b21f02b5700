"""The compiled twin of texts_twin.py: records looked over for what their frame and their body do not tell."""

from bolide.record._checksum cimport CHECKSUM_ABSENT, checksum_state
from bolide.record._codec cimport SOUND_RECORD, look_at
from bolide.record.layout cimport CHECK_LENGTHS, RecordLook

FINE = 0
ODD_PROPERTIES = 1
LOST_CHECKSUM = 2
LAST_UNSEALED = 3

cdef enum:
    C_FINE = 0
    C_ODD_PROPERTIES = 1
    C_LOST_CHECKSUM = 2
    C_LAST_UNSEALED = 3


cdef bint are_pairs(const unsigned char* text, Py_ssize_t length) noexcept nogil:
    cdef Py_ssize_t at = 0, name_end
    while at < length:
        if text[at] == 2:  # nothing between two separators
            at += 1
            continue
        name_end = at
        while name_end < length and text[name_end] != 1 and text[name_end] != 2:
            name_end += 1
        if name_end == at or name_end == length or text[name_end] == 2:
            return False
        at = name_end
        while at < length and text[at] != 2:
            at += 1
        at += 1
    return True


def check_texts(const unsigned char[::1] segment, Py_ssize_t position, Py_ssize_t limit, bint sealed):
    cdef RecordLook look, following
    cdef const unsigned char* record
    cdef Py_ssize_t end = segment.shape[0], behind
    cdef bint has_checksum
    if position < 0:
        raise ValueError("a position is not negative")
    while position < limit and position < end:
        record = &segment[0] + position
        if look_at(record, end - position, CHECK_LENGTHS, &look) != SOUND_RECORD:
            break
        has_checksum = checksum_state(record, look.size) != CHECKSUM_ABSENT
        if sealed and not has_checksum:
            behind = position + look.size
            if behind >= end or look_at(record + look.size, end - behind, CHECK_LENGTHS, &following) != SOUND_RECORD:
                return position, C_LAST_UNSEALED, True
            if checksum_state(record + look.size, following.size) != CHECKSUM_ABSENT:
                return position, C_LOST_CHECKSUM, True
        sealed = has_checksum
        if not are_pairs(record + look.properties_at, look.properties_length):
            return position, C_ODD_PROPERTIES, sealed
        position += look.size
    return position, C_FINE, sealed
