"""The readable twin of `_faults.pyx`: pages of mapped files that cannot be had.

Whoever reads a page of a mapped file gets a bus error instead of an `OSError` when the file was cut short, when its
disk cannot read, or when it is a hole and a full tmpfs has no page left for it.  The compiled module hears that, puts
zeros in the page's place and counts.  Python cannot: a signal is given to it after the instruction that the signal
is about, which never ends.  So here nothing is heard, and a bus error ends the process.
"""


def watch(view: memoryview) -> int:
    """Hear of pages of a mapping that cannot be had; returns its number, -1 when nobody listens."""
    return -1


def lost_pages(place: int) -> int:
    """How many pages of a watched mapping were replaced by zeros so far."""
    return 0


def forget(place: int) -> None:
    """Before the mapping is closed."""
