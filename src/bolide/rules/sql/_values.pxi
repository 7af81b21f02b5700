# Part of _judge.pyx: what the parts of an expression give, and how two of them are compared.

cdef extern from "Python.h":
    double PyOS_string_to_double(const char* text, char** end, object overflow) except? -1.0

cdef enum Kind:
    NOTHING
    TRUTH
    INT32
    INT64
    REAL
    TEXT

cdef enum:
    DECIDED = 0
    UNDECIDABLE = 1  # what cannot be compared was compared
    NO_ORDER = 2  # beside nothing; others are -1, 0 and 1
    NUMBER_LENGTH_MAX = 63  # of the numbers that are read here; longer ones are left to Python
    NAMES_MAX = 32  # model/limits: SQL_NAMES_MAX

cdef struct Value:
    Kind kind
    int64_t whole  # also a truth
    double real
    const unsigned char* text
    Py_ssize_t length


cdef inline void set_truth(Value* value, bint truth) noexcept:
    value.kind = TRUTH
    value.whole = truth


cdef inline int whole_of(Value* text, int64_t lowest, int64_t highest, int64_t* number) noexcept:
    """Read a text as a whole number (numbers.py: `whole_64`)."""
    cdef Py_ssize_t at = 0
    cdef uint64_t total = 0
    cdef unsigned int digit
    cdef bint negative = False
    if text.length and (text.text[0] == b"-" or text.text[0] == b"+"):
        negative = text.text[0] == b"-"
        at = 1
    if at == text.length:
        return UNDECIDABLE
    while at < text.length:
        digit = <unsigned int>text.text[at] - 48
        if digit > 9 or total > 922337203685477580:
            return UNDECIDABLE
        total = total * 10 + digit
        at += 1
    if negative:
        if total > <uint64_t>1 << 63:
            return UNDECIDABLE
        number[0] = <int64_t>(0 - total)
    else:
        if total > <uint64_t>INT64_MAX:
            return UNDECIDABLE
        number[0] = <int64_t>total
    return DECIDED if lowest <= number[0] <= highest else UNDECIDABLE


cdef int real_of(Value* text, double* number) except -1:
    """Read a text as a decimal number (numbers.py: `decimal`); common ones without Python."""
    cdef char copy[NUMBER_LENGTH_MAX + 1]
    cdef Py_ssize_t at
    cdef unsigned char letter
    cdef object found
    cdef bint is_common = 0 < text.length <= NUMBER_LENGTH_MAX
    if is_common:
        for at in range(text.length):
            letter = text.text[at]
            if not (48 <= letter <= 57 or letter == b"." or (at == 0 and letter == b"-")):
                is_common = False
                break
    if is_common:
        memcpy(copy, text.text, text.length)
        copy[text.length] = 0
        try:
            number[0] = PyOS_string_to_double(copy, NULL, None)
        except ValueError:
            return UNDECIDABLE
        return DECIDED
    found = decimal(text.text[: text.length].decode("utf-8", "surrogateescape"))
    if found is None:
        return UNDECIDABLE
    number[0] = found
    return DECIDED


cdef int number_like(Value* text, Value* other) except -1:
    """Make a text a number of the other's kind."""
    cdef int64_t whole = 0
    cdef double real = 0
    cdef int outcome
    if other.kind == INT32:
        outcome = whole_of(text, -2147483648, 2147483647, &whole)
    elif other.kind == INT64:
        outcome = whole_of(text, INT64_MIN, INT64_MAX, &whole)
    else:
        outcome = real_of(text, &real)
    text.kind = other.kind
    text.whole = whole
    text.real = real
    return outcome


cdef inline int rank_of(double number) noexcept:
    if number != number:
        return 2
    return 0 if number == 0 and 1 / number < 0 else 1


cdef inline int order_of_reals(double left, double right) noexcept:
    if left < right:
        return -1
    if left > right:
        return 1
    return rank_of(left) - rank_of(right)


cdef inline double as_real(Value* value) noexcept:
    return value.real if value.kind == REAL else <double>value.whole


cdef inline bint is_true_word(Value* text) noexcept:
    return (
        text.length == 4
        and text.text[0] | 32 == b"t"
        and text.text[1] | 32 == b"r"
        and text.text[2] | 32 == b"u"
        and text.text[3] | 32 == b"e"
    )


cdef int compared(Value* left, Value* right, int* order) except -1:
    """Set below, at or above 0, after a text was read as what the other is; below 0 for what is never equal."""
    order[0] = -1
    if left.kind == TRUTH:
        if right.kind == TEXT:  # only the other way round, in the original
            return UNDECIDABLE
        if right.kind == TRUTH:
            order[0] = left.whole - right.whole
        return DECIDED
    if right.kind == TRUTH:
        if left.kind == TEXT:
            order[0] = <int>is_true_word(left) - <int>right.whole
        return DECIDED
    if left.kind == TEXT and number_like(left, right) == UNDECIDABLE:
        return UNDECIDABLE
    if right.kind == TEXT and number_like(right, left) == UNDECIDABLE:
        return UNDECIDABLE
    if left.kind == REAL or right.kind == REAL:
        order[0] = order_of_reals(as_real(left), as_real(right))
    else:
        order[0] = (left.whole > right.whole) - (left.whole < right.whole)
    return DECIDED


cdef inline bint same_text(Value* left, Value* right) noexcept:
    return left.length == right.length and memcmp(left.text, right.text, left.length) == 0
