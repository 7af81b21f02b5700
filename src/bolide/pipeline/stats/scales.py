"""Where values and moments lie on a chart, and which marks its axes have."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bolide.pipeline.stats.windows import NICE_MS

TIME_MARKS_MAX = 6
VALUE_MARKS_MAX = 4
HEADROOM = 1.3
"""Above the largest value of a scale by decades, where no mark is."""


@dataclass(frozen=True)
class Scale:
    """Values from 0 to `top` as heights from 0 to 1, with a mark at every `step`.  Without one it goes by decades, each
    as high as the next, and zero is below them."""

    top: float
    step: float | None

    def __call__(self, value: float) -> float:
        """
        >>> Scale(10, 5)(5), Scale(9, None)(9)
        (0.5, 1.0)
        """
        if self.step is None:
            part = math.log1p(max(0.0, value)) / math.log1p(self.top)
        else:
            part = value / self.top
        return min(1.0, max(0.0, part))

    def marks(self) -> list[float]:
        """
        >>> Scale(1000, 500).marks(), Scale(1300, None).marks()
        ([0, 500, 1000], [0, 1, 10, 100, 1000])
        """
        if self.step is None:
            decades = [10**power for power in range(math.floor(math.log10(max(1.0, self.top))) + 1)]
            return [0, *decades[:: -(-len(decades) // (VALUE_MARKS_MAX + 1))]]
        return [self.step * number for number in range(round(self.top / self.step) + 1)]


def scale_for(values: Sequence[float], *, is_log: bool = False, is_span: bool = False) -> Scale:
    """From 0 to a round number that is not below any of the values; `is_span` for milliseconds.

    >>> scale_for([3, 870]), scale_for([200_000], is_span=True)
    (Scale(top=1000, step=500), Scale(top=240000, step=60000))
    """
    most = max((1, *values)) if is_log or max(values, default=0) <= 0 else max(values)
    if is_log:
        return Scale(most * HEADROOM, None)
    step = _nice_step(most / VALUE_MARKS_MAX, is_span)
    return Scale(step * math.ceil(most / step - 1e-9), step)


def _nice_step(least: float, is_span: bool) -> float:
    """1, 2 or 5 times a power of ten; of milliseconds, what is nice in minutes or hours."""
    if is_span and least > NICE_MS[0]:
        return next((width for width in NICE_MS if width >= least), math.ceil(least))
    power = 10 ** math.floor(math.log10(least))
    found = next(count * power for count in (1, 2, 5, 10) if count * power >= least * (1 - 1e-9))
    return int(found) if found >= 1 else found


@dataclass(frozen=True)
class TimeSpan:
    """Moments from the left side of a chart to the right."""

    low_ms: int
    high_ms: int

    def __call__(self, moment_ms: float) -> float:
        return (moment_ms - self.low_ms) / max(1, self.high_ms - self.low_ms)

    def step_ms(self) -> int:
        length_ms = self.high_ms - self.low_ms
        nice = (width for width in NICE_MS if length_ms // width < TIME_MARKS_MAX)
        return next(nice, max(1, length_ms // TIME_MARKS_MAX))

    def marks(self) -> list[int]:
        """
        >>> TimeSpan(500, 3_500).marks()
        [1000, 2000, 3000]
        """
        step = self.step_ms()
        first = -(-self.low_ms // step) * step
        return list(range(first, self.high_ms + 1, step))
