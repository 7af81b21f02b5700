"""Records into index files, and keys found in them.  Chooses the compiled module or its readable twin."""

from typing import TYPE_CHECKING

from bolide.compiled import use_compiled

if TYPE_CHECKING or not use_compiled("bolide.store._index"):
    from bolide.store.index_twin import (
        AT_BLANK,
        DONE,
        NO_RECORD,
        NO_ROOM,
        find_offsets,
        index_records,
        rebuild_slots,
        record_hashes,
    )
else:
    from bolide.store._index import (
        AT_BLANK,
        DONE,
        NO_RECORD,
        NO_ROOM,
        find_offsets,
        index_records,
        rebuild_slots,
        record_hashes,
    )

__all__ = [
    "AT_BLANK",
    "DONE",
    "NO_RECORD",
    "NO_ROOM",
    "find_offsets",
    "index_records",
    "rebuild_slots",
    "record_hashes",
]
