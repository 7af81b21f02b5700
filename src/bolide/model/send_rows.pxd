# The numbers of send_rows.py for compiled code; tests/unit/model/test_send_rows.py compares the two.

cdef enum:
    OPAQUE = 0
    TOPIC = 1
    QUEUE_ID = 2
    SYS_FLAG = 3
    BORN_TIMESTAMP = 4
    FLAG = 5
    PROPERTIES_AT = 6
    PROPERTIES_LENGTH = 7
    BODY_AT = 8
    BODY_LENGTH = 9
    RECONSUME_TIMES = 10
    KIND = 11
    FRAME_AT = 12
    FRAME_LENGTH = 13
    QUEUE_OFFSET = 14
    RECORDS_AT = 15
    RECORDS_COUNT = 16
    UNIQUE_KEY_AT = 17
    UNIQUE_KEY_LENGTH = 18
    RECALL_HANDLE_AT = 19
    RECALL_HANDLE_LENGTH = 20
    COLUMNS = 21
    KIND_ONE_WAY = 1
    KIND_BATCH = 2
    ROWS_MAX = 1024
    RUN_TOPICS_MAX = 64
    RECORDS_MAX = 16384
