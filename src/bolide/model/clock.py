"""Clock: where time comes from.  Everything that needs the time is given one of these."""

from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since the epoch; may step."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment; never steps back.  For deadlines."""
