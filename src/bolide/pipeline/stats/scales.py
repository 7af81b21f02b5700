"""Where values and moments lie on a chart, and which marks its axes have."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bolide.pipeline.stats.windows import NICE_MS

TIME_MARKS_MAX = 6
VALUE_MARKS_MAX = 4


@dataclass(frozen=True)
class Scale:
    """Values from 0 to `top` as heights from 0 to 1; `is_log` has a decade as high as the next, and zero in it."""

    top: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """
        >>> Scale(10)(5), Scale(9, is_log=True)(9)
        (0.5, 1.0)
        """
        part = math.log1p(max(0.0, value)) / math.log1p(self.top) if self.is_log else value / self.top
        return min(1.0, max(0.0, part))

    def marks(self) -> list[float]:
        """
        >>> Scale(1000).marks(), Scale(1000, is_log=True).marks()
        ([0, 500, 1000], [0, 1, 10, 100, 1000])
        """
        if self.is_log:
            decades = [10**power for power in range(math.floor(math.log10(max(1.0, self.top))) + 1)]
            return [0, *decades[:: -(-len(decades) // (VALUE_MARKS_MAX + 1))]]
        step = _nice_step(self.top)
        return [step * number for number in range(int(self.top / step + 1e-9) + 1)]


def scale_for(values: Sequence[float], *, is_log: bool = False) -> Scale:
    """From 0 to a round number that is not below any of the values.

    >>> scale_for([3, 870]).top, scale_for([]).top, scale_for([0.2], is_log=True).top
    (1000, 1, 1)
    """
    most = max(values, default=0)
    if most <= 0:
        return Scale(1, is_log)
    if is_log:
        return Scale(max(1, most), is_log)
    step = _nice_step(most)
    return Scale(step * math.ceil(most / step - 1e-9), is_log)


def _nice_step(most: float) -> float:
    """1, 2 or 5 times a power of ten, so that some steps reach up to `most`."""
    rough = most / VALUE_MARKS_MAX
    power = 10 ** math.floor(math.log10(rough))
    found = next(count * power for count in (1, 2, 5, 10) if count * power >= rough * (1 - 1e-9))
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
