# Names of properties that have a meaning, from the table of model/properties.py, as compiled code compares them.

cdef inline bint is_name(const unsigned char* name, Py_ssize_t length, const char* wanted, Py_ssize_t size) noexcept nogil:
    return length == size and memcmp(name, wanted, size) == 0


cdef struct SpecialName:
    const unsigned char* text
    Py_ssize_t length
    bint is_family                # stands for all longer names that begin like it


cdef enum:
    SPECIAL_MAX = 64
    NAMES_MAX = 32

# The names that leave the fast path, from the table of model/properties.py, in order; and by the first byte of a name
# the first of them that begins so.
cdef list SPECIAL_TEXTS = sorted(
    [*NOT_PLAIN_FAMILIES, *(name for name in NOT_PLAIN if not name.startswith(NOT_PLAIN_FAMILIES))]
)
cdef SpecialName SPECIAL[SPECIAL_MAX]
cdef int SPECIAL_COUNT = len(SPECIAL_TEXTS)
cdef int FIRST_SPECIAL[256]       # -1: none


cdef fill_special_names():
    cdef bytes text
    cdef int number
    assert SPECIAL_COUNT <= SPECIAL_MAX
    for number in range(256):
        FIRST_SPECIAL[number] = -1
    for number in range(SPECIAL_COUNT - 1, -1, -1):
        text = SPECIAL_TEXTS[number]
        SPECIAL[number].text = <const unsigned char*>PyBytes_AS_STRING(text)
        SPECIAL[number].length = len(text)
        SPECIAL[number].is_family = text in NOT_PLAIN_FAMILIES
        FIRST_SPECIAL[SPECIAL[number].text[0]] = number


fill_special_names()


cdef inline bint is_special(const unsigned char* name, Py_ssize_t length) noexcept nogil:
    """Names that change how the broker must treat the message, or that it would have to replace."""
    return length > 0 and FIRST_SPECIAL[name[0]] >= 0 and is_among_special(name, length)


cdef bint is_among_special(const unsigned char* name, Py_ssize_t length) noexcept nogil:
    cdef SpecialName* special
    cdef int number
    for number in range(FIRST_SPECIAL[name[0]], SPECIAL_COUNT):
        special = &SPECIAL[number]
        if special.text[0] != name[0]:
            return False
        if (length > special.length if special.is_family else length == special.length) and memcmp(
            name, special.text, special.length
        ) == 0:
            return True
    return False


cdef struct Names:
    const unsigned char* texts[NAMES_MAX]
    Py_ssize_t lengths[NAMES_MAX]
    int count


cdef Names ASKING
cdef Names OF_BROKER
cdef list ASKING_TEXTS = [name.encode() for name in NOT_IN_A_BATCH]
cdef list OF_BROKER_TEXTS = [name.encode() for name in WRITTEN_BY_THE_BROKER]


cdef fill_names(Names* names, list texts):
    cdef bytes text
    assert len(texts) <= NAMES_MAX
    for number, text in enumerate(texts):
        names.texts[number] = <const unsigned char*>PyBytes_AS_STRING(text)
        names.lengths[number] = len(text)
    names.count = len(texts)


fill_names(&ASKING, ASKING_TEXTS)
fill_names(&OF_BROKER, OF_BROKER_TEXTS)


cdef bint is_one_of(const Names* names, const unsigned char* name, Py_ssize_t length) noexcept nogil:
    cdef int number
    for number in range(names.count):
        if names.lengths[number] == length and memcmp(name, names.texts[number], length) == 0:
            return True
    return False
