"""Rebuild: which messages of the timer's queue are done, while the index is made again from the whole queue.

Those of slots that are over are, but not all.  When the clock was set back, a message may come when its slot is over
for the timer, and waits in the slot that is being delivered.  It was stored, or filed, after that slot began.  Of
whatever is not done for certain, the log's end tells whether it was delivered (`delivered.py`).
"""

from typing import NamedTuple

from bolide.model.numbers import INT64_MAX


class Rebuild(NamedTuple):
    read_ms: int
    """The slot that was being delivered; those before it are over."""
    mark: int = INT64_MAX
    """Messages before this place of the log were filed when that slot began."""
    queue_offset: int = INT64_MAX
    """Messages before this one were in the index."""
    stored_ms: int = INT64_MAX
    """The same by when they were stored, for who knows no place and no number; along the log it never goes back."""

    def has_done(self, log_offset: int, queue_offset: int, stored_ms: int, slot_ms: int) -> bool:
        """Whether a message was dealt with, which is in this place, has this number and time, and is of this slot."""
        was_there = log_offset < self.mark and queue_offset < self.queue_offset and stored_ms < self.stored_ms
        return was_there and slot_ms < self.read_ms
