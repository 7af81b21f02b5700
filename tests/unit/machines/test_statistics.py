"""How much was counted in the last minute, hour and day."""

from bolide.machines.statistics import DAY, SAMPLE_MS, Figure, Statistics


def sample(statistics: Statistics, now_ms: int) -> None:
    for _ in statistics.sampling(lambda: now_ms, 1):
        pass


def test_what_was_never_counted_has_no_figures() -> None:
    assert Statistics(10).figures("PUT", "orders", 0) is None


def test_a_count_shows_at_once() -> None:
    statistics = Statistics(10)
    statistics.count("PUT", "orders", 0).add(30)
    assert statistics.figures("PUT", "orders", 10_000) == (Figure(30, 3.0, 30.0),) * 3


def test_each_span_forgets_what_came_before_it() -> None:
    """One a second for a day: the last minute, hour and day have as many as they have seconds."""
    statistics = Statistics(10)
    count = statistics.count("PUT", "orders", 0)
    for now_ms in range(0, DAY.length_ms + DAY.apart_ms, SAMPLE_MS):
        sample(statistics, now_ms)
        count.add(SAMPLE_MS // 1000)
    now_ms += SAMPLE_MS
    figures = statistics.figures("PUT", "orders", now_ms)
    assert figures is not None
    minute, hour, day = figures
    assert minute == Figure(60, 1.0, 10.0)
    assert 3_000 <= hour.total <= 3_600
    assert 82_800 <= day.total <= 86_400
    assert hour.per_second == day.per_second == 1.0


def test_samples_are_bounded() -> None:
    statistics = Statistics(10)
    count = statistics.count("PUT", "orders", 0)
    for now_ms in range(0, 3 * DAY.length_ms, SAMPLE_MS):
        sample(statistics, now_ms)
        count.add(1)
    (item,) = statistics._items.values()
    for samples, most in zip(item.samples, (8, 8, 26), strict=True):
        assert len(samples._rows) // 3 <= most


def test_what_was_silent_for_a_day_is_forgotten() -> None:
    statistics = Statistics(10)
    statistics.count("PUT", "orders", 0).add(1)
    sample(statistics, 0)
    sample(statistics, DAY.length_ms)
    assert len(statistics) == 1
    sample(statistics, DAY.length_ms + DAY.apart_ms + 1)
    assert len(statistics) == 0


def test_more_than_the_bound_is_counted_for_nobody() -> None:
    statistics = Statistics(1)
    statistics.count("PUT", "orders", 0).add(1)
    statistics.count("PUT", "others", 0).add(7)
    assert statistics.figures("PUT", "others", 0) is None
    assert statistics.figures("PUT", "orders", 0) is not None


def test_what_somebody_still_adds_to_is_never_forgotten() -> None:
    statistics = Statistics(10)
    held = statistics.count("PUT", "orders", 0)
    silent_ms = 3 * DAY.length_ms
    sample(statistics, silent_ms)
    held.add(7)
    assert statistics.count("PUT", "orders", silent_ms) is held
    assert (statistics.figures("PUT", "orders", silent_ms) or ())[0].total == 7
    sample(statistics, silent_ms + SAMPLE_MS)
    del held
    sample(statistics, silent_ms + 2 * SAMPLE_MS)
    assert len(statistics) == 1, "for a day"
    sample(statistics, 2 * silent_ms)
    assert len(statistics) == 0
