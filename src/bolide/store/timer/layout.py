"""The files of the timer, byte for byte the original's.  Open this beside a hexdump of them.

`timerwheel` is a ring of slots, one for each step of time (RocketMQ: timerPrecisionMs), fourteen days of seconds:

    bytes  position  field of a slot
        8         0  its time, in steps since the epoch: a slot that says another time is empty
        8         8  where its first unit is in `timerlog/`
        8        16  where its last one is
        4        24  how many messages it holds
        4        28  how many recalls it holds; the original keeps what is here, and has no use for it

`timerlog/` has a unit for each message, in files of equal size that are named as segments of the log are:

    bytes  position  field of a unit
        4         0  its size, 52
        8         4  where the unit before it in its slot is, -1 for the first
        4        12  what it is: `DUE`, and `ROLL` or `DELETE` or both
        8        16  when it was written, in whole steps
        4        24  how many milliseconds later it is due
        8        28  log offset of the record
        4        36  size of the record
        4        40  Java's hash of the topic that it goes to
        8        44  not used

The end of a file is filled by a blank: the bytes that are left (4), zero (8), `BLANK` (4).

`config/timercheck` says how far it has come:

    bytes  position  field
        8         0  all slots before this time, in milliseconds, have been delivered
        8         8  the units before this place are durable
        8        16  the messages of the timer's queue before this one have units
        8        24  the same again
       24        32  state version, time and counter of the last change
        8        64  `OURS`: what follows is of a broker of this house, and nobody has written to the file since
        8        72  no message of the slot that is being delivered was delivered before this place of the log
        8        80  milliseconds of a step
        8        88  how many slots behind the one that is being delivered held something
        4        96  CRC-32 of bytes 0 to 55 and 64 to 95

`OLDER` in the place of `OURS` has no count of slots, and its CRC-32 at 88.

All numbers are big-endian.
"""

import struct

SLOT = struct.Struct(">qqqii")
SLOT_TIME_AND_LAST = struct.Struct(">q8xq8x")
SLOT_BYTES = 32
SLOT_COUNTS_AT = 24
SLOTS = 2 * 7 * 24 * 3600
WHEEL_BYTES = SLOTS * SLOT_BYTES

UNIT = struct.Struct(">iqiqiqiiq")
UNIT_BYTES = 52
UNIT_PREVIOUS_AT = 4
UNIT_TIMES_AT = 16
PREVIOUS = struct.Struct(">q")
TIMES = struct.Struct(">qi")

DUE, ROLL, DELETE = 1, 2, 4
KINDS_MASK = 0xF
"""The original takes any unit whose kind has no other bits."""

BLANK = struct.Struct(">iqI")
BLANK_BYTES = 16
BLANK_MAGIC = 0xCBD43194

POINT = struct.Struct(">qqqqqqq")
OWN_AT = 64
OWN = struct.Struct(">8sqqq")
OURS = b"bolide-2"
OLDER_OWN = struct.Struct(">8sqq")
OLDER = b"bolide-1"
SUM = struct.Struct(">I")
POINT_FILE_BYTES = 4096
"""The original maps a whole page."""

NOWHERE = -1
