"""The time of a delayed message, from properties that anybody may have written."""

from pathlib import Path
from typing import Any

import pytest

from bolide.model.delay_levels import DEFAULT_LEVELS, DelayLevels
from bolide.store.deliver_time import deliver_time_of
from tests.unit.store.stage import killed, message, opened, put


@pytest.mark.parametrize(
    ("level", "delay_ms"), [(b"1", 1000), (b"3", 10_000), (b"18", 7_200_000), (b"99", 7_200_000)]
)
def test_a_level_is_a_delay_from_when_the_message_was_stored(level: bytes, delay_ms: int) -> None:
    assert deliver_time_of(b"A\x01b\x02DELAY\x01%s\x02" % level, 5, DEFAULT_LEVELS) == 5 + delay_ms


@pytest.mark.parametrize("level", [b"0", b"-1", b"", b"x", b"9" * 5000, "٤".encode(), b"\xff"])
def test_what_is_no_level_is_no_delay(level: bytes) -> None:
    """A recovery meets such a record in the log and goes on."""
    assert deliver_time_of(b"DELAY\x01%s\x02" % level, 5, DEFAULT_LEVELS) is None


def test_the_time_fits_its_place_in_an_entry() -> None:
    assert deliver_time_of(b"DELAY\x013\x02", 2**63 - 1, DEFAULT_LEVELS) == 2**63 - 1


def test_the_last_of_several_levels_counts() -> None:
    assert deliver_time_of(b"DELAY\x013\x02DELAY\x011\x02", 5, DEFAULT_LEVELS) == 1005
    assert deliver_time_of(b"DELAY\x013\x02DELAY\x010\x02", 5, DEFAULT_LEVELS) is None


def test_a_time_of_delivery_that_was_torn_is_made_again(tmp_path: Path) -> None:
    """Power loss has kept the first bytes of an entry, up to the end of a sector: its time would be too early."""
    changes: dict[str, Any] = {"queue_file_bytes": 2000, "delay_levels": DelayLevels.parse("10s 200d")}
    store = opened(tmp_path, **changes)
    delayed = message("SCHEDULE_TOPIC_XXXX", queue_id=2, properties=b"DELAY\x012\x02")
    for _ in range(90):
        put(store, delayed)
    killed(store)
    path = tmp_path / "consumequeue" / "SCHEDULE_TOPIC_XXXX" / "2" / f"{0:020d}"
    whole = path.read_bytes()
    for sector in range(512, 100 * 20, 512):
        path.write_bytes((whole[:sector] + bytes(512) + whole[sector + 512 :])[:2000])
        killed(opened(tmp_path, **changes))
        assert path.read_bytes() == whole


def test_a_level_without_a_value_is_not_there() -> None:
    """Whoever decides that a message waits does not see such a pair either."""
    assert deliver_time_of(b"DELAY\x013\x02DELAY\x02", 5, DEFAULT_LEVELS) == 10_005
    assert deliver_time_of(b"DELAY\x013\x02DELAY\x01\x02", 5, DEFAULT_LEVELS) == 10_005
