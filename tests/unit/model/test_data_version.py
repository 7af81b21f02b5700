"""Data versions: their order and their JSON."""

import pytest

from bolide.model.data_version import DataVersion
from bolide.model.errors import InvalidRequest


def test_state_version_outranks_counter_and_counter_outranks_time() -> None:
    old = DataVersion(state_version=1, counter=9, timestamp_ms=9)
    assert old < DataVersion(state_version=2, counter=0, timestamp_ms=0)
    assert old < DataVersion(state_version=1, counter=10, timestamp_ms=0)
    assert old < DataVersion(state_version=1, counter=9, timestamp_ms=10)


def test_next_counts_one_change_and_keeps_the_state_version() -> None:
    version = DataVersion(state_version=4, counter=2, timestamp_ms=100).next(now_ms=250)
    assert version == DataVersion(state_version=4, counter=3, timestamp_ms=250)


def test_json_goes_there_and_back_and_missing_members_are_zero() -> None:
    version = DataVersion(state_version=1, counter=2, timestamp_ms=3)
    assert DataVersion.from_json(version.as_json()) == version
    assert DataVersion.from_json({"counter": 5}) == DataVersion(counter=5)


@pytest.mark.parametrize("value", [None, [], {"counter": "x"}, {"counter": 2**63}, {"timestamp": 1.5}])
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(InvalidRequest):
        DataVersion.from_json(value)


def test_a_counter_at_its_end_begins_again_and_can_still_be_read() -> None:
    version = DataVersion(counter=2**63 - 1).next(now_ms=1)
    assert version.counter == -(2**63)
    assert DataVersion.from_json(version.as_json()) == version
    with pytest.raises(InvalidRequest):
        DataVersion(counter=2**63)
