"""What a store tells of itself, as numbers.  Whoever shows them gives them the names that their readers know."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """Where a store stands.  Counts begin with the process."""

    log_start: int
    log_end: int
    undurable_bytes: int
    unindexed_bytes: int
    messages_appended: int
    damaged_passed_over: int  # records that readers met, did not believe and left out
    rolls: int
    rolls_in_place: int  # those that had to wait for the next segment
    disk_used_ratio: float
