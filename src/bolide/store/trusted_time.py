"""TrustedTime: how late it is, as far as a wall clock can be believed.

Messages are deleted for their age, and an age needs a wall clock.  A wall clock may jump: an NTP server that is years
ahead, a battery that ran out, a virtual machine restored from a snapshot.  One reading of it must not delete anything.

The rule: **a wall clock is believed only as far as it has been right for as long as messages are kept.**  Its lead is
the difference to the monotonic clock, which never jumps.  The time that ages are measured with is the monotonic clock
plus the *smallest* lead of the last `window_ms` (fileReservedTime).

- A step forward has no effect until it has held for the whole window.  By then every message stored before the step
  is that old indeed, so nothing is ever deleted before its time, whatever the size of the step.
- A step back takes effect at once: ages shrink, and less is deleted.
- What the clock did while the broker was down nobody has seen.  So the first lead is that of the newest message in the
  log: after a start the broker believes the clock only to where the log ends, until it has run for one window.  After
  a normal restart these are seconds.  After a long rest messages stay for as much longer as the rest was.

A disk that fills up does not wait for any of this: see `Trigger.FORCED` in `retention.py`.
"""

from collections import deque

_STEP_MS = 1000
"""Leads are kept to the second: slewing a clock then leaves a few entries per day and not one per reading."""

HISTORY_MS = 90 * 24 * 3600 * 1000
"""So much is remembered, so that a longer fileReservedTime may be set while the broker runs."""


class TrustedTime:
    """One clock.  Give it readings; it never reads a clock by itself."""

    def __init__(self, monotonic_ms: int, newest_stored_ms: int | None) -> None:
        # (when, lead), both rising: a later lead that is smaller or equal makes an earlier one useless.
        self._leads: deque[tuple[int, int]] = deque()
        if newest_stored_ms is not None:
            self._note(monotonic_ms, newest_stored_ms - monotonic_ms)

    def read(self, wall_ms: int, monotonic_ms: int, window_ms: int) -> int:
        """The time to measure ages with; never later than `wall_ms`."""
        lead = wall_ms - monotonic_ms
        self._note(monotonic_ms, lead)
        while self._leads[0][0] < monotonic_ms - HISTORY_MS:
            self._leads.popleft()
        smallest = next(seen for when, seen in self._leads if when >= monotonic_ms - window_ms)
        return monotonic_ms + min(smallest, lead)

    def _note(self, monotonic_ms: int, lead: int) -> None:
        lead -= lead % _STEP_MS
        while self._leads and self._leads[-1][1] >= lead:
            self._leads.pop()
        self._leads.append((monotonic_ms, lead))
