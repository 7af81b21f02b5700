"""consumerFilter.json: what the original finds there of SQL subscriptions."""

from pathlib import Path

import pytest

from bolide.model import java_json
from bolide.model.limits import FILTER_TABLE_BYTES_MAX
from bolide.model.topic import Subscription
from bolide.rules.bloom import bit_positions
from bolide.store.disk_os import OsDisk
from bolide.store.tables import FilterTable, filters

GOLDEN = Path(__file__).parents[2] / "golden"
DAY_MS = 24 * 3600 * 1000


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.ms = 1_794_850_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> int:
        return self.ms


@pytest.fixture
def clock() -> Hand:
    return Hand()


@pytest.fixture
def table(tmp_path: Path, clock: Hand) -> FilterTable:
    return FilterTable(OsDisk(), str(tmp_path / "consumerFilter.json"), clock)


@pytest.mark.parametrize(
    "text", [b"null", b'{"filterDataByTopic":[1]}', b'{"filterDataByTopic":{"T":7}}', b"\0\0"]
)
def test_a_file_that_is_none_keeps_nobody_from_starting_and_is_kept_aside(
    tmp_path: Path, table: FilterTable, caplog: pytest.LogCaptureFixture, text: bytes
) -> None:
    """What a group gets does not depend on it."""
    path = tmp_path / "consumerFilter.json"
    path.write_bytes(text)
    table.load()
    assert str(path) in caplog.text
    assert [*table] == []
    assert (tmp_path / "consumerFilter.json.damaged").read_bytes() == text
    table.subscribed("g", [sql("T", "a > 1")])
    table.persist()
    again = FilterTable(OsDisk(), str(path), Hand())
    again.load()
    assert [kept.expression for kept in again] == ["a > 1"]


def test_a_copy_that_is_sound_is_taken_and_nothing_moved_aside(tmp_path: Path, table: FilterTable) -> None:
    table.subscribed("g", [sql("T", "a > 1")])
    table.persist()
    (tmp_path / "consumerFilter.json").rename(tmp_path / "consumerFilter.json.bak")
    (tmp_path / "consumerFilter.json").write_bytes(b"null")
    again = FilterTable(OsDisk(), str(tmp_path / "consumerFilter.json"), Hand())
    again.load()
    assert len([*again]) == 1
    assert not [*tmp_path.glob("*.damaged")]


def sql(topic: str, expression: str, version: int = 1) -> Subscription:
    return Subscription.parse(topic, expression, version, "SQL92")


@pytest.mark.parametrize("version", ["4.9.7", "5.5.0"])
def test_bit_positions_are_those_of_the_original(version: str) -> None:
    """FI-04: bit positions equal the fixture."""
    members = java_json.loads((GOLDEN / f"config-{version}" / "consumerFilter.json").read_bytes())
    for topic, row in members["filterDataByTopic"].items():
        for group, kept in row["groupFilterData"].items():
            assert kept["bloomFilterData"] == {"bitNum": 112, "bitPos": bit_positions(group, topic)}


@pytest.mark.parametrize("version", ["4.9.7", "5.5.0"])
def test_a_file_of_the_original_is_written_back_with_all_it_says(
    version: str, tmp_path: Path, clock: Hand
) -> None:
    original = (GOLDEN / f"config-{version}" / "consumerFilter.json").read_bytes()
    (tmp_path / "consumerFilter.json").write_bytes(original)
    table = FilterTable(OsDisk(), str(tmp_path / "consumerFilter.json"), clock)
    table.load()
    table.mark_dirty()
    (tmp_path / "consumerFilter.json").unlink()
    assert table.persist()
    assert java_json.loads((tmp_path / "consumerFilter.json").read_bytes()) == java_json.loads(original)


@pytest.mark.parametrize("version", ["4.9.7", "5.5.0"])
def test_what_the_original_knew_is_known_and_dead_until_a_heartbeat(version: str, clock: Hand) -> None:
    table = FilterTable(OsDisk(), str(GOLDEN / f"config-{version}" / "consumerFilter.json"), clock)
    table.load()
    kept = table.get("Orders", "billing")
    assert kept is not None
    assert kept.is_dead
    assert kept.expression == "price > 100 AND region IN ('de', 'fr')"
    wanted = sql("Orders", kept.expression, kept.client_version)
    table.subscribed("billing", [wanted])
    again = table.get("Orders", "billing")
    assert again is not None
    assert not again.is_dead
    assert again.born_ms == kept.born_ms
    refunds = table.get("Refunds", "billing")
    assert refunds is not None
    assert refunds.is_dead


def test_a_filter_that_was_alive_when_the_broker_stopped_is_dead_after_the_start(
    table: FilterTable, tmp_path: Path, clock: Hand
) -> None:
    table.subscribed("g", [sql("T", "a = 1")])
    table.persist()
    clock.ms += DAY_MS
    again = FilterTable(OsDisk(), str(tmp_path / "consumerFilter.json"), clock)
    again.load()
    kept = again.get("T", "g")
    assert kept is not None
    assert kept.dead_ms == clock.ms - 30_000


def test_another_expression_is_born_anew_and_the_same_one_is_not(table: FilterTable, clock: Hand) -> None:
    table.subscribed("g", [sql("T", "a = 1", 1)])
    born = clock.ms
    clock.ms += 1000
    table.subscribed("g", [sql("T", "a = 1", 2)])
    kept = table.get("T", "g")
    assert kept is not None
    assert (kept.born_ms, kept.client_version) == (born, 2)
    table.subscribed("g", [sql("T", "a = 2", 2)])
    kept = table.get("T", "g")
    assert kept is not None
    assert kept.born_ms == clock.ms


def test_a_topic_that_the_group_no_longer_has_is_dead_and_forgotten_after_a_day(
    table: FilterTable, clock: Hand
) -> None:
    table.subscribed("g", [sql("T", "a = 1"), sql("U", "a = 1")])
    clock.ms += 1
    table.subscribed("g", [sql("T", "a = 1")])
    kept = table.get("U", "g")
    assert kept is not None
    assert kept.dead_ms == clock.ms
    clock.ms += DAY_MS - 1
    table.forget_dead(DAY_MS)
    assert table.get("U", "g") is not None
    clock.ms += 1
    table.forget_dead(DAY_MS)
    assert [one.topic for one in table] == ["T"]


def test_a_group_that_is_gone_has_no_living_filter(table: FilterTable, clock: Hand) -> None:
    table.subscribed("g", [sql("T", "a = 1")])
    table.subscribed("g", ())
    assert all(kept.is_dead for kept in table)
    died = [kept.dead_ms for kept in table]
    clock.ms += 5
    table.subscribed("g", ())
    assert [kept.dead_ms for kept in table] == died


def test_the_longest_dead_make_room_and_the_living_stay(table: FilterTable, clock: Hand) -> None:
    long = "a = '" + "x" * 4000 + "'"
    table.subscribed("living", [sql("T", "a = 1")])
    for number in range(FILTER_TABLE_BYTES_MAX // (4 * len(long)) + 10):
        clock.ms += 1
        table.subscribed(f"g{number}", [sql("T", long)])
        table.subscribed(f"g{number}", ())
    assert table.get("T", "g0") is None
    assert table.get("T", "living") is not None
    assert sum(one.kept_bytes for one in table) <= FILTER_TABLE_BYTES_MAX


def test_a_filter_for_which_there_is_no_room_does_not_make_the_file_be_written(
    table: FilterTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.subscribed("living", [sql("T", "a = 1")])
    table.persist()
    monkeypatch.setattr(filters, "FILTER_TABLE_BYTES_MAX", table._bytes)
    table.subscribed("late", [sql("T", "a = 1")])
    assert table.get("T", "late") is None
    assert not table.is_dirty
    table.subscribed("living", [sql("T", "a = 1 AND longer IS NOT NULL")])
    assert table.get("T", "living") is None
    assert table.is_dirty, "one that has grown too large is gone"
