"""Which windows a report chooses."""

import pytest

from bolide.model.limits.spark import STATS_WINDOWS_MAX
from bolide.pipeline.stats.windows import LOOKED_AT_MAX, slot_width, window_width

HOUR_MS = 3_600_000
YEAR_MS = 365 * 24 * HOUR_MS


@pytest.mark.parametrize("span_ms", [0, 1, 999, 60_000, HOUR_MS, 37 * HOUR_MS, YEAR_MS, 10 * YEAR_MS, 10**15])
@pytest.mark.parametrize("asked_ms", [None, 1000, 1500, 60_000, 300_000, 7 * HOUR_MS])
def test_windows_are_whole_slots_and_few_enough(span_ms: int, asked_ms: int | None) -> None:
    for first_ms in (0, 1_700_000_000_123):
        width_ms = window_width(asked_ms, first_ms, first_ms + span_ms)
        count = (first_ms + span_ms) // width_ms - first_ms // width_ms + 1
        assert width_ms % slot_width(asked_ms) == 0
        assert count <= (LOOKED_AT_MAX if asked_ms is None else STATS_WINDOWS_MAX)


def test_what_was_asked_for_is_kept_where_it_can_be() -> None:
    assert window_width(300_000, 0, 999 * 300_000) == 300_000
    assert window_width(300_000, 0, 1000 * 300_000) == 600_000


@pytest.mark.parametrize(
    ("span_ms", "width_ms"),
    [(10_000, 1000), (HOUR_MS, 60_000), (24 * HOUR_MS, 900_000), (30 * 24 * HOUR_MS, 12 * HOUR_MS)],
)
def test_a_report_chooses_widths_that_people_think_in(span_ms: int, width_ms: int) -> None:
    assert window_width(None, 0, span_ms) == width_ms
