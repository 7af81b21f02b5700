"""An entry of a consume queue: where a message is in the log.  Open this beside a hexdump of a file in `consumequeue/`.

    bytes  position  field
        8         0  log offset of the record
        4         8  size of the record
        8        12  hash of its tags; for a delayed message the time of its delivery

All numbers are big-endian.  `queue_entry.pxd` says the same to compiled code.
"""

import struct

ENTRY = struct.Struct(">qiq")
ENTRY_BYTES = 20
LOG_OFFSET_AT = 0
SIZE_AT = 8
TAGS_CODE_AT = 12

PLACE = struct.Struct(">qi")
"""Its beginning: log offset and size."""

GAP_SIZE = 0x7FFFFFFF
"""The size in an entry that stands for a message that is not there; readers skip it."""
