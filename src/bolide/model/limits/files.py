"""What files and settings may hold."""

from typing import Final

from bolide.model.limit import MIB, Limit, Where

DELETIONS_MAX: Final = Limit(
    100_000,
    Where.FILES,
    "deleted topics that still have messages in the log; a host adds no more than stay free for others",
    "no more of them are deleted until some have expired",
)
SETTINGS_FILE_BYTES_MAX: Final = Limit(
    MIB, Where.FILES, "bytes of a file with settings, given with `-c`", "it is refused"
)
LINE_BYTES_MAX: Final = Limit(
    16 * MIB,
    Where.FILES,
    "bytes of one line that `bolide send` reads",
    "it ends there, and says what is stored",
)
SMALL_FILE_BYTES_MAX: Final = Limit(
    256 * MIB,
    Where.FILES,
    "bytes of a table, a checkpoint or another small file",
    "it is not read, and named",
)
STORE_FILE_BYTES_MAX: Final = Limit(
    2**31 - 1,
    Where.FILES,
    "bytes of a segment, a queue file or an index file",
    "it is not taken for one, and named",
)
SEGMENTS_MISSING_MAX: Final = Limit(
    1024,
    Where.FILES,
    "segments missing in a log, for the offline tools",
    "what lies behind is not of the same log",
)
QUEUE_FILES_MISSING_MAX: Final = Limit(
    16,
    Where.FILES,
    "files missing in a queue, for the offline tools",
    "what lies behind is not of the same queue",
)
