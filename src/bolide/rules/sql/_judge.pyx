"""The compiled twin of judge_twin.py: an expression as a tree of C objects that look at the stored bytes.

A property stays where it lies in the record, and becomes a number only where it is compared with one.  One walk over
the properties finds all that an expression names.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint64_t
from libc.string cimport memchr, memcmp, memcpy

from bolide.model._pairs cimport Examiner
from bolide.record.layout cimport NAME_END, PAIR_END, RecordLook, find_parts

from bolide.rules.sql import tree
from bolide.rules.sql.numbers import decimal
from bolide.rules.sql.parse import parse

cdef extern from "string.h":
    void* memmem(const void* text, size_t text_length, const void* part, size_t part_length) nogil

include "_values.pxi"

cdef struct Name:
    const unsigned char* at  # its bytes and NAME_END behind them
    Py_ssize_t length


# ---- the tree ----------------------------------------------------------------------------------------------


cdef class Node:
    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        value.kind = NOTHING
        return DECIDED


cdef class One(Node):
    """What is said of one other."""

    cdef Node operand

    def __init__(self, node, dict names):
        self.operand = planted(node.operand, names)


cdef class Constant(Node):
    cdef Value value
    cdef bytes text

    def __init__(self, node, dict names):
        given = node.value
        if given is None:
            self.value.kind = NOTHING
        elif isinstance(given, bool):
            set_truth(&self.value, given)
        elif isinstance(given, str):
            self.text = given.encode("utf-8", "surrogateescape")
            self.value.kind = TEXT
            self.value.text = <const unsigned char*>PyBytes_AS_STRING(self.text)
            self.value.length = PyBytes_GET_SIZE(self.text)
        elif isinstance(given, float):
            self.value.kind = REAL
            self.value.real = given
        else:
            self.value.kind = INT32 if isinstance(given, tree.Int32) else INT64
            self.value.whole = given

    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        value[0] = self.value
        return DECIDED


cdef class Property(Node):
    cdef Py_ssize_t slot

    def __init__(self, node, dict names):
        self.slot = names.setdefault(node.name, len(names))

    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        value[0] = slots[self.slot]
        return DECIDED


cdef class Negative(One):
    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        if self.operand.evaluate(slots, value) == UNDECIDABLE:
            return UNDECIDABLE
        if value.kind == REAL:
            value.real = -value.real
        elif value.kind == INT32 or value.kind == INT64:
            value.whole = -value.whole
        else:
            value.kind = NOTHING
        return DECIDED


cdef class Flag(One):
    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        self.operand.evaluate(slots, value)
        if value.kind != NOTHING:
            set_truth(value, False)
        return DECIDED


cdef class Not(One):
    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        if self.operand.evaluate(slots, value) == UNDECIDABLE:
            return UNDECIDABLE
        if value.kind != NOTHING:
            set_truth(value, not value.whole)
        return DECIDED


cdef class Terms(Node):
    """AND and OR: decided as soon as one term says the decisive; else one that says nothing keeps the whole open."""

    cdef list terms
    cdef bint decisive

    def __init__(self, node, dict names):
        self.terms = [planted(term, names) for term in node.terms]
        self.decisive = isinstance(node, tree.Or)

    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        cdef bint is_open = False
        cdef Node term
        for term in self.terms:
            if term.evaluate(slots, value) == UNDECIDABLE:
                return UNDECIDABLE
            if value.kind == NOTHING:
                is_open = True
            elif value.whole == self.decisive:
                return DECIDED
        if is_open:
            value.kind = NOTHING
        else:
            set_truth(value, not self.decisive)
        return DECIDED


cdef class Equal(Node):
    cdef Node left
    cdef Node right

    def __init__(self, node, dict names):
        self.left = planted(node.left, names)
        self.right = planted(node.right, names)

    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        cdef Value right
        cdef int order
        if self.left.evaluate(slots, value) == UNDECIDABLE:
            return UNDECIDABLE
        if self.right.evaluate(slots, &right) == UNDECIDABLE:
            return UNDECIDABLE
        if value.kind == NOTHING:  # not symmetric, as in the original
            if right.kind == NOTHING:
                set_truth(value, True)
        elif right.kind == NOTHING:
            set_truth(value, False)
        elif value.kind == TEXT and right.kind == TEXT:
            set_truth(value, same_text(value, &right))
        elif compared(value, &right, &order) == UNDECIDABLE:
            return UNDECIDABLE
        else:
            set_truth(value, order == 0)
        return DECIDED


cdef class Order(Node):
    cdef Node left
    cdef Node right
    cdef bint less
    cdef bint equal
    cdef bint greater

    def __init__(self, node, dict names):
        self.left = planted(node.left, names)
        self.right = planted(node.right, names)
        self.less = node.less
        self.equal = node.equal
        self.greater = node.greater

    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        cdef int order = 0
        if self.left.evaluate(slots, value) == UNDECIDABLE:
            return UNDECIDABLE
        if value.kind == NOTHING:
            return DECIDED
        if ordered(value[0], self.right, slots, &order) == UNDECIDABLE:
            return UNDECIDABLE
        if order == NO_ORDER:
            value.kind = NOTHING
        else:
            set_truth(value, self.less if order < 0 else self.greater if order > 0 else self.equal)
        return DECIDED


cdef class Between(Node):
    cdef Node value
    cdef Node low
    cdef Node high
    cdef bint is_negated

    def __init__(self, node, dict names):
        self.value = planted(node.value, names)
        self.low = planted(node.low, names)
        self.high = planted(node.high, names)
        self.is_negated = node.is_negated

    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        cdef int low = 0, high = 0
        if self.value.evaluate(slots, value) == UNDECIDABLE:
            return UNDECIDABLE
        if value.kind == NOTHING:
            return DECIDED
        if ordered(value[0], self.low, slots, &low) == UNDECIDABLE:
            return UNDECIDABLE
        if low < 0:
            set_truth(value, self.is_negated)
            return DECIDED
        if ordered(value[0], self.high, slots, &high) == UNDECIDABLE:
            return UNDECIDABLE
        if 0 < high < NO_ORDER:
            set_truth(value, self.is_negated)
        elif low == NO_ORDER or high == NO_ORDER:
            value.kind = NOTHING
        else:
            set_truth(value, not self.is_negated)
        return DECIDED


cdef int ordered(Value left, Node node, const Value* slots, int* order) except -1:
    """Below, at or above 0, or `NO_ORDER` beside nothing.  The left one is a copy: a text becomes a number here."""
    cdef Value right
    cdef double left_number = 0, right_number = 0
    if node.evaluate(slots, &right) == UNDECIDABLE:
        return UNDECIDABLE
    if right.kind == NOTHING:
        order[0] = NO_ORDER
        return DECIDED
    if left.kind != TEXT or right.kind != TEXT:
        return compared(&left, &right, order)
    if real_of(&left, &left_number) == UNDECIDABLE or real_of(&right, &right_number) == UNDECIDABLE:
        return UNDECIDABLE
    order[0] = order_of_reals(left_number, right_number)
    return DECIDED


cdef class IsNull(One):
    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        if self.operand.evaluate(slots, value) == UNDECIDABLE:
            return UNDECIDABLE
        set_truth(value, value.kind == NOTHING)
        return DECIDED


cdef class In(Node):
    cdef Node operand
    cdef frozenset texts
    cdef bint is_negated

    def __init__(self, node, dict names):
        self.operand = planted(node.operand, names)
        self.texts = frozenset(text.encode("utf-8", "surrogateescape") for text in node.texts)
        self.is_negated = node.is_negated

    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        self.operand.evaluate(slots, value)
        if value.kind != NOTHING:
            set_truth(value, (value.text[: value.length] in self.texts) != self.is_negated)
        return DECIDED


cdef class Has(Node):
    cdef Node operand
    cdef bytes text
    cdef bint at_start
    cdef bint at_end
    cdef bint is_negated

    def __init__(self, node, dict names):
        self.operand = planted(node.operand, names)
        self.text = node.text.encode("utf-8", "surrogateescape")
        self.at_start = node.at_start
        self.at_end = node.at_end
        self.is_negated = node.is_negated

    cdef int evaluate(self, const Value* slots, Value* value) except -1:
        if self.operand.evaluate(slots, value) == UNDECIDABLE:
            return UNDECIDABLE
        if not self.text or value.kind != TEXT:
            set_truth(value, False)
        else:
            set_truth(value, self.finds(value) != self.is_negated)
        return DECIDED

    cdef bint finds(self, Value* value) noexcept:
        cdef const unsigned char* text = <const unsigned char*>PyBytes_AS_STRING(self.text)
        cdef Py_ssize_t length = PyBytes_GET_SIZE(self.text)
        cdef const unsigned char* at = value.text
        cdef const unsigned char* last = value.text + value.length - length  # where it may begin
        if length > value.length:
            return False
        if self.at_start:
            return memcmp(at, text, length) == 0
        if self.at_end:
            return memcmp(last, text, length) == 0
        return memmem(at, value.length, text, length) != NULL


cdef dict SPECIES = {
    tree.Constant: Constant,
    tree.Property: Property,
    tree.Negative: Negative,
    tree.Flag: Flag,
    tree.Not: Not,
    tree.And: Terms,
    tree.Or: Terms,
    tree.Equal: Equal,
    tree.Order: Order,
    tree.Between: Between,
    tree.IsNull: IsNull,
    tree.In: In,
    tree.Has: Has,
}


cdef Node planted(node, dict names):
    return SPECIES[type(node)](node, names)


# ---- the judge ---------------------------------------------------------------------------------------------


@cython.final
cdef class Judge(Examiner):
    cdef readonly str expression
    cdef readonly int weight
    cdef Node root
    cdef list texts
    cdef Name names[NAMES_MAX]
    cdef Py_ssize_t count

    def __init__(self, str expression not None):
        cdef dict names = {}
        cdef bytes text
        self.expression = expression
        root, self.weight = parse(expression)
        self.root = planted(root, names)
        self.texts = [name.encode() + bytes((NAME_END,)) for name in names]
        self.count = 0
        for text in self.texts:
            assert self.count < NAMES_MAX, "the parser allows no more names"
            self.names[self.count].at = <const unsigned char*>PyBytes_AS_STRING(text)
            self.names[self.count].length = PyBytes_GET_SIZE(text)
            self.count += 1

    def __call__(self, record):
        cdef Py_buffer view
        cdef RecordLook look
        PyObject_GetBuffer(record, &view, PyBUF_SIMPLE)
        try:
            return find_parts(<const unsigned char*>view.buf, view.len, &look) and self.takes(
                <const unsigned char*>view.buf + look.properties_at, look.properties_length
            )
        finally:
            PyBuffer_Release(&view)

    def wants(self, bytes properties not None):
        return self.takes(<const unsigned char*>PyBytes_AS_STRING(properties), len(properties))

    cdef bint takes(self, const unsigned char* properties, Py_ssize_t length) except -1:
        cdef Value slots[NAMES_MAX]
        cdef Value value
        self.fill(slots, properties, properties + length)
        return self.root.evaluate(slots, &value) == DECIDED and value.kind == TRUTH and value.whole != 0

    cdef void fill(self, Value* slots, const unsigned char* at, const unsigned char* end) noexcept:
        """The last of several pairs of one name counts, and one without a value is none."""
        cdef const unsigned char* pair_end
        cdef Py_ssize_t number, length
        for number in range(self.count):
            slots[number].kind = NOTHING
        while at < end:
            pair_end = <const unsigned char*>memchr(at, PAIR_END, end - at)
            if pair_end == NULL:
                pair_end = end
            for number in range(self.count):
                length = self.names[number].length
                if pair_end - at > length and memcmp(at, self.names[number].at, length) == 0:
                    slots[number].kind = TEXT
                    slots[number].text = at + length
                    slots[number].length = pair_end - at - length
                    break
            at = pair_end + 1

    def __eq__(self, other):
        return isinstance(other, Judge) and self.expression == other.expression

    def __hash__(self):
        return hash(self.expression)
