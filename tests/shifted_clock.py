"""The suite on a machine that was booted at another moment: `BOLIDE_TEST_CLOCK=PHASE:UPTIME make unit`, both in ms.

Two things about a machine's clocks are chance, and no test may depend on them: how far the seconds of the wall clock
and those of the monotonic clock are apart (the phase), and how long the machine has been running (the uptime, which
is what a monotonic clock of Linux tells).
"""

import time

from bolide.net.clock import SystemClock


def shift(text: str) -> None:
    """Give every `SystemClock` of this process another phase and uptime."""
    phase_ms, _, uptime_ms = text.partition(":")
    wall_ns, booted_ns = time.time_ns(), time.monotonic_ns()  # noqa: TID251
    ahead_ms = int(uptime_ms or 0) - booted_ns // 1_000_000
    lead_ms = wall_ns // 1_000_000 - (booted_ns // 1_000_000 + ahead_ms)
    late_ms = (int(phase_ms) - lead_ms) % 1000
    SystemClock.now_ms = lambda self: time.time_ns() // 1_000_000 + late_ms  # type: ignore[method-assign] # noqa: TID251
    SystemClock.monotonic_ms = lambda self: time.monotonic_ns() // 1_000_000 + ahead_ms  # type: ignore[method-assign]
