# The numbers of end_rows.py for compiled code; tests/unit/model/test_send_rows.py compares the two.

cdef enum:
    FRAME_AT = 0
    FRAME_LENGTH = 1
    HALF_AT = 2
    HALF_NUMBER = 3
    VERDICT = 4
    GROUP_AT = 5
    GROUP_LENGTH = 6
    TRANSACTION_ID_AT = 7
    TRANSACTION_ID_LENGTH = 8
    MESSAGE_ID_AT = 9
    MESSAGE_ID_LENGTH = 10
    COLUMNS = 11
    ENDS_MAX = 64
