"""The time of a delayed message, from properties that anybody may have written."""

import pytest

from bolide.store.deliver_time import deliver_time_of


@pytest.mark.parametrize(
    ("level", "delay_ms"), [(b"1", 1000), (b"3", 10_000), (b"18", 7_200_000), (b"99", 7_200_000)]
)
def test_a_level_is_a_delay_from_when_the_message_was_stored(level: bytes, delay_ms: int) -> None:
    assert deliver_time_of(b"A\x01b\x02DELAY\x01%s\x02" % level, 5) == 5 + delay_ms


@pytest.mark.parametrize("level", [b"0", b"-1", b"", b"x", b"9" * 5000, "٤".encode(), b"\xff"])
def test_what_is_no_level_is_no_delay(level: bytes) -> None:
    """A recovery meets such a record in the log and goes on."""
    assert deliver_time_of(b"DELAY\x01%s\x02" % level, 5) is None


def test_the_time_fits_its_place_in_an_entry() -> None:
    assert deliver_time_of(b"DELAY\x013\x02", 2**63 - 1) == 2**63 - 1


def test_the_last_of_several_levels_counts() -> None:
    assert deliver_time_of(b"DELAY\x013\x02DELAY\x011\x02", 5) == 1005
    assert deliver_time_of(b"DELAY\x013\x02DELAY\x010\x02", 5) is None
