"""Commons: what the connections of one server share, or those of one caller.

A server's are bounded, because strangers use them.  A caller knows whom it calls and what for, and has bounds of its
own for what it asks.
"""

import sys

from bolide.model.clock import Clock
from bolide.model.limits import FRAME_BYTES_MAX, HEADER_BYTES_MAX, KEPT_BYTES_MAX, LARGE_FRAMES_BYTES_MAX
from bolide.net.budget import Budget
from bolide.net.large_frames import LargeFrames
from bolide.net.provoked import Provoked
from bolide.net.round import Round
from bolide.wire.frame import Intake


class Commons:
    def __init__(self, clock: Clock, *, serves: bool) -> None:
        provoked = Provoked(clock)
        self.clock = clock
        self.serves = serves
        self.intake = Intake()
        self.header_bytes_max = HEADER_BYTES_MAX if serves else FRAME_BYTES_MAX
        self.budget = Budget(KEPT_BYTES_MAX if serves else sys.maxsize)
        self.large_frames = LargeFrames(provoked, LARGE_FRAMES_BYTES_MAX if serves else sys.maxsize)
        self.round = Round(clock)
        self.provoked = provoked

    @property
    def kept_bytes(self) -> int:
        """What is kept for the connections together."""
        return self.budget.recount() + self.large_frames.kept
