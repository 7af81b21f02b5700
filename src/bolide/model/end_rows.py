"""The columns of the ends of transactions that came with a run of sends: what the wire finds in each.

A producer's ends lie between its half messages in one socket read.  They are scanned with them, so that neither cuts
the other's run short.  `FRAME_AT` is a byte position in the receive buffer; texts are in the run's own buffer of
unescaped text.  `end_rows.pxd` repeats these numbers for compiled code; a test compares the two.
"""

FRAME_AT = 0
FRAME_LENGTH = 1
HALF_AT = 2  # of the half message, in the log
HALF_NUMBER = 3  # and in its queue
VERDICT = 4
GROUP_AT = 5
GROUP_LENGTH = 6
TRANSACTION_ID_AT = 7
TRANSACTION_ID_LENGTH = 8
MESSAGE_ID_AT = 9
MESSAGE_ID_LENGTH = 10

COLUMNS = 11

ENDS_MAX = 64
"""With one run: all of them are served in one turn."""
