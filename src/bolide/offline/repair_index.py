"""The key index of a store made again from its log, while no broker runs."""

import os

from bolide.model.clock import Clock
from bolide.store.disk import Disk
from bolide.store.index_file import IndexSizes
from bolide.store.index_keys import KeyIndex, LogState
from bolide.store.log import CommitLog

_EVERYTHING = 2**62


def rebuild_index(
    disk: Disk, root: str, sizes: IndexSizes, segment_bytes: int, end: int, clock: Clock
) -> None:
    """Index all records before `end`; the folder must not hold index files any more."""
    commit_log = CommitLog(disk, os.path.join(root, "commitlog"), segment_bytes)
    index = KeyIndex(disk, os.path.join(root, "index"), sizes, clock)
    commit_log.open()
    try:
        index.open(LogState(commit_log.start, end, clean=True, full_files_ms=0, head_at=commit_log.head_at))
        index.catch_up(commit_log, end, _EVERYTHING)
    finally:
        commit_log.close()
    index.close(commit_log)  # which has nothing left to index
