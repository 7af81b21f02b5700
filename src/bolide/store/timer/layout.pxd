# The numbers of layout.py for compiled code; tests/unit/store/test_layouts.py compares the two.

cdef enum:
    SLOT_BYTES = 32
    SLOT_COUNTS_AT = 24
    SLOTS = 1209600
    WHEEL_BYTES = 38707200
    UNIT_BYTES = 52
    UNIT_PREVIOUS_AT = 4
    UNIT_TIMES_AT = 16
    DUE = 1
    BLANK_BYTES = 16
    OWN_AT = 64
    POINT_FILE_BYTES = 4096
