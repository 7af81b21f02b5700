"""The columns of a run of send requests: the plain table that the wire fills and the store completes.

One socket read often carries hundreds of sends.  They are scanned into one flat array of 64-bit numbers, `COLUMNS`
per request, so that compiled code of two rooms can work on it without an object per message.  Positions named
`…_AT` are byte positions in the receive buffer, except `PROPERTIES_AT`, which points into the run's own buffer of
unescaped property text.  `send_rows.pxd` repeats these numbers for compiled code; a test compares the two.
"""

from bolide.model import limits

# ---- filled from the request
OPAQUE = 0
TOPIC = 1  # index into SendRun.topics
QUEUE_ID = 2  # negative: the broker chooses
SYS_FLAG = 3
BORN_TIMESTAMP = 4
FLAG = 5
PROPERTIES_AT = 6
PROPERTIES_LENGTH = 7
BODY_AT = 8
BODY_LENGTH = 9
RECONSUME_TIMES = 10
KIND = 11  # bits below
FRAME_AT = 12
FRAME_LENGTH = 13

# ---- filled by the append
QUEUE_OFFSET = 14  # of the first record
RECORDS_AT = 15  # index of its first record in SendRun.log_offsets
RECORDS_COUNT = 16
UNIQUE_KEY_AT = 17  # in the property buffer
UNIQUE_KEY_LENGTH = 18
RECALL_HANDLE_AT = 19  # likewise; of a message that waits for a time of its own
RECALL_HANDLE_LENGTH = 20  # 0 from the request on

COLUMNS = 21

KIND_ONE_WAY = 1
KIND_BATCH = 2

ROWS_MAX = 1024
"""Requests per run: bounds the memory of a run and how long the loop stays in one."""

RUN_TOPICS_MAX = 64
"""Topics per run: each row is looked for among them, and rows that a run could not use are scanned again."""

RECORDS_MAX = int(limits.BATCH_MESSAGES_MAX)
"""Records per run: a batch frame holds many."""
