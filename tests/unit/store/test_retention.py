"""What is deleted and when (check-list RT-01, RT-02), decided without touching a file; and by which clock."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bolide.model.errors import ConfigError
from bolide.store.retention import (
    HOUR_MS,
    RetentionSettings,
    SegmentTimes,
    Trigger,
    count_expired,
    is_full,
    must_force,
    parse_hours,
    why_clean,
)
from bolide.store.trusted_time import HISTORY_MS, TrustedTime

RULES = RetentionSettings()
KEPT_MS = RULES.reserved_ms
NOW_MS = 1_700_000_000_000
DAY_MS = 24 * HOUR_MS
YEAR_MS = 365 * DAY_MS


# ---- when ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hour", "used", "asked", "why"),
    [
        (4, 0.10, False, Trigger.HOUR),
        (3, 0.10, False, None),
        (3, 0.75, False, None),
        (3, 0.76, False, Trigger.SPACE),
        (4, 0.85, False, Trigger.SPACE),
        (3, 0.86, False, Trigger.FORCED),
        (3, 0.91, False, Trigger.FORCED),
        (3, 0.10, True, Trigger.MANUAL),
        (3, 0.86, True, Trigger.FORCED),
    ],
)
def test_the_hour_the_disk_and_the_operator_each_are_a_reason(
    hour: int, used: float, asked: bool, why: Trigger | None
) -> None:
    """RT-01, RT-02."""
    assert why_clean(RULES, hour=hour, used_ratio=used, asked=asked) is why


def test_without_forced_cleaning_a_full_disk_still_deletes_only_what_is_old() -> None:
    rules = replace(RULES, may_force=False)
    assert why_clean(rules, hour=3, used_ratio=0.99) is Trigger.SPACE
    assert not must_force(rules, 0.99)


def test_a_disk_above_the_warning_level_is_full_and_one_at_it_is_not() -> None:
    """RT-02."""
    assert is_full(RULES, 0.901)
    assert not is_full(RULES, 0.90)
    assert not is_full(replace(RULES, full_percent=100), 1.0)


def test_a_low_warning_level_forces_too() -> None:
    """As in the original: a disk that is too full to write to is cleaned whatever the other ratio says."""
    assert must_force(replace(RULES, full_percent=40), 0.41)


def test_several_hours_are_separated_by_semicolons() -> None:
    assert parse_hours("04") == {4}
    assert parse_hours("2; 14;00") == {0, 2, 14}


@pytest.mark.parametrize("text", ["", ";", "24", "-1", "4,5", "four", "04:00", "٤"])
def test_hours_that_are_none_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="list of hours from 00 to 23 like 04 or 02;14"):
        parse_hours(text)


# ---- how many --------------------------------------------------------------------------------------------------


def expired(*segments: SegmentTimes, wall_ms: int = NOW_MS, trusted_ms: int = NOW_MS, most: int = 10) -> int:
    return count_expired(
        segments, reserved_ms=KEPT_MS, wall_ms=wall_ms, trusted_ms=trusted_ms, count_max=most
    )


def aged(age_ms: int) -> SegmentTimes:
    return SegmentTimes(NOW_MS - age_ms, NOW_MS - age_ms)


def test_a_segment_expires_when_its_newest_message_is_old_enough() -> None:
    assert expired(aged(KEPT_MS)) == 1
    assert expired(aged(KEPT_MS - 1)) == 0


def test_the_first_young_segment_ends_it() -> None:
    assert expired(aged(KEPT_MS + 2), aged(KEPT_MS + 1), aged(5), aged(KEPT_MS + 1)) == 2


def test_one_run_deletes_no_more_than_the_batch() -> None:
    assert expired(*[aged(YEAR_MS)] * 25) == 10
    assert expired(*[aged(YEAR_MS)] * 25, most=3) == 3


def test_segments_behind_the_first_young_one_are_not_even_looked_at() -> None:
    def segments() -> Iterator[SegmentTimes]:
        yield aged(YEAR_MS)
        yield aged(1)
        raise AssertionError("looked too far")

    count = count_expired(segments(), reserved_ms=KEPT_MS, wall_ms=NOW_MS, trusted_ms=NOW_MS, count_max=10)
    assert count == 1


def test_the_later_one_of_message_and_file_counts() -> None:
    """A file that was copied looks new; a file system that does not note writes to mappings makes it look old."""
    old, new = NOW_MS - KEPT_MS - 1, NOW_MS - 5
    assert expired(SegmentTimes(old, old)) == 1
    assert expired(SegmentTimes(old, new)) == 0
    assert expired(SegmentTimes(new, old)) == 0
    assert expired(SegmentTimes(None, old)) == 1
    assert expired(SegmentTimes(old, None)) == 1


def test_a_witness_from_the_future_does_not_count() -> None:
    """A clock that was years ahead for an hour must not keep messages for years."""
    old, future = NOW_MS - KEPT_MS - 1, NOW_MS + YEAR_MS
    assert expired(SegmentTimes(future, old)) == 1
    assert expired(SegmentTimes(old, future)) == 1


def test_a_segment_without_a_sound_witness_is_as_old_as_the_next() -> None:
    lost = SegmentTimes(NOW_MS + YEAR_MS, None)
    assert expired(lost, aged(KEPT_MS + 1)) == 2
    assert expired(lost, aged(5)) == 0
    assert expired(lost, lost) == 0
    assert expired(lost, lost, aged(KEPT_MS + 1), most=2) == 2


def test_ages_are_measured_with_the_trusted_time() -> None:
    jumped = NOW_MS + YEAR_MS
    assert expired(aged(5), wall_ms=jumped, trusted_ms=NOW_MS + 10) == 0
    assert expired(aged(5), wall_ms=jumped, trusted_ms=jumped) == 1


# ---- by which clock --------------------------------------------------------------------------------------------


class Life:
    """A process with its two clocks: time passes on both, steps happen to one."""

    def __init__(self, *, newest_ms: int | None = NOW_MS - 2000, wall_ms: int = NOW_MS) -> None:
        self.wall_ms = wall_ms
        self.monotonic_ms = 123_456
        self.time = TrustedTime(self.monotonic_ms, newest_ms)

    def step(self, ms: int) -> None:
        self.wall_ms += ms

    def live(self, ms: int, every_ms: int = 60_000) -> None:
        for _ in range(ms // every_ms):
            self.wall_ms += every_ms
            self.monotonic_ms += every_ms
            self.read()

    def read(self, window_ms: int = KEPT_MS) -> int:
        return self.time.read(self.wall_ms, self.monotonic_ms, window_ms)

    def behind_ms(self) -> int:
        return self.wall_ms - self.read()


def test_a_steady_clock_is_believed_to_the_second() -> None:
    life = Life()
    assert life.behind_ms() <= 3000  # what passed between the newest message and the start
    life.live(KEPT_MS + HOUR_MS)
    assert life.behind_ms() < 1000


@pytest.mark.parametrize("step_ms", [HOUR_MS, DAY_MS, 20 * YEAR_MS])
def test_a_step_forward_is_believed_only_after_it_has_held_for_as_long_as_messages_are_kept(
    step_ms: int,
) -> None:
    life = Life()
    life.live(DAY_MS)
    life.step(step_ms)
    assert life.behind_ms() >= step_ms
    life.live(KEPT_MS - 60_000)
    assert life.behind_ms() >= step_ms
    life.live(2 * 60_000)
    assert life.behind_ms() < 1000


def test_a_step_forward_that_is_corrected_never_has_an_effect() -> None:
    life = Life()
    life.live(KEPT_MS)
    life.step(5 * YEAR_MS)
    life.live(KEPT_MS // 2)
    life.step(-5 * YEAR_MS)
    for _ in range(100):
        life.live(HOUR_MS)
        assert 0 <= life.behind_ms() < 1000


def test_a_step_back_is_believed_at_once() -> None:
    life = Life()
    life.live(DAY_MS)
    life.step(-YEAR_MS)
    assert life.behind_ms() < 1000


def test_no_message_is_deleted_before_its_time_whatever_the_clock_did() -> None:
    """Goal: the promise itself.  Method: store a message every hour, step forward by more and more, and ask of each
    message that the rule would delete how long ago it was stored in true time."""
    life = Life()
    stored: list[tuple[int, int]] = []  # (store time by the wall clock of then, true time)
    for hour in range(400):
        newest_ms = max((at for at, _ in stored), default=0)
        stored.append((max(newest_ms, life.wall_ms), life.monotonic_ms))
        life.live(HOUR_MS)
        if hour % 30 == 29:
            life.step(hour * DAY_MS)
        if hour % 70 == 69:
            life.step(-hour * DAY_MS // 2)
        for at, truly in stored:
            if life.read() - at >= KEPT_MS:
                assert life.monotonic_ms - truly >= KEPT_MS


def test_after_a_start_the_clock_is_believed_only_to_the_newest_message() -> None:
    """Nobody has seen what the clock did while the broker was down: a long rest, or a jump."""
    life = Life(newest_ms=NOW_MS - 10 * DAY_MS)
    life.live(KEPT_MS)
    assert life.behind_ms() >= 10 * DAY_MS - 1
    life.live(2 * 60_000)
    assert life.behind_ms() < 1000


def test_a_newest_message_from_the_future_is_no_reason_for_anything() -> None:
    life = Life(newest_ms=NOW_MS + YEAR_MS)
    assert life.behind_ms() < 1000


def test_an_empty_log_believes_the_clock() -> None:
    assert Life(newest_ms=None).behind_ms() < 1000


def test_slewing_a_clock_does_not_fill_memory() -> None:
    life = Life()
    for _ in range(200_000):
        life.monotonic_ms += 1000
        life.wall_ms += 1001
        life.read()
    assert len(life.time._leads) < 250
    assert life.behind_ms() <= 1000 + KEPT_MS // 1000


def test_a_longer_retention_set_while_running_looks_further_back() -> None:
    life = Life()
    life.live(2 * HOUR_MS)
    life.step(DAY_MS)
    life.live(2 * HOUR_MS)
    assert life.wall_ms - life.read(HOUR_MS) < 1000
    assert life.wall_ms - life.read(KEPT_MS) >= DAY_MS


def test_steps_that_are_long_past_are_forgotten() -> None:
    life = Life()
    for _ in range(10):
        life.step(DAY_MS)
        life.live(DAY_MS, every_ms=HOUR_MS)
    life.monotonic_ms += HISTORY_MS + 1
    life.wall_ms += HISTORY_MS + 1
    life.read()
    assert len(life.time._leads) == 1
