"""What is in a store, told without reading all of it."""

from pathlib import Path

from bolide.offline.survey import count_records, survey
from bolide.store.disk_os import OsDisk
from tests.unit.offline.damaged import MESSAGES, TOPICS, make, original, root, segment
from tests.unit.store.stage import SEGMENT_BYTES, killed, message, opened, put_many

__all__ = ["original", "root"]  # fixtures

EACH = MESSAGES // 4


def test_everything_in_a_store_is_told(root: Path) -> None:
    found = survey(OsDisk(), str(root))
    assert (found.is_clean, found.is_running, found.segment_bytes) == (True, False, SEGMENT_BYTES)
    assert [one.base for one in found.segments] == [0, SEGMENT_BYTES]
    queues = [(one.topic, one.queue_id, one.offset_min, one.offset_max, one.messages) for one in found.queues]
    assert queues == [(topic, number, 0, EACH, EACH) for topic in TOPICS for number in (0, 1)]
    assert found.queues[0].first_ms == 1_700_000_001_000
    assert found.last_ms == 1_700_000_000_000 + 1000 * MESSAGES
    groups = [(one.group, one.topic, one.queue_id, one.offset, one.lag) for one in found.groups]
    assert groups == [("billing", "orders", 0, 7, EACH - 7), ("billing", "orders", 1, 10, EACH - 10)]
    assert [one.entries for one in found.index] == [3 * MESSAGES]
    assert found.checkpoint is not None
    assert found.checkpoint.log_ms == found.last_ms
    assert {name: version and version.counter for name, version in found.tables.items()} == {
        "topics.json": 3,
        "consumerOffset.json": 3,
        "subscriptionGroup.json": 3,
    }
    assert found.size_bytes == sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def test_one_topic_can_be_asked_for(root: Path) -> None:
    found = survey(OsDisk(), str(root), topic="payments")
    assert {one.topic for one in found.queues} == {"payments"}
    assert found.groups == []


def test_the_end_of_the_log_is_found_behind_the_newest_entry(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 60)
    store.append([message(body=b"its entry is only in memory")])
    end = store.log.end
    assert survey(OsDisk(), str(tmp_path)).is_running
    killed(store)
    found = survey(OsDisk(), str(tmp_path))
    assert (found.log_end, found.is_clean, found.is_running) == (end, False, False)


def test_deleted_segments_move_the_first_offset(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 100)
    store.close()
    segment(tmp_path, 0).unlink()
    found = survey(OsDisk(), str(tmp_path))
    assert found.log_start == SEGMENT_BYTES
    assert 30 < found.queues[0].offset_min < 50


def test_an_empty_store_can_be_looked_at(tmp_path: Path) -> None:
    opened(tmp_path).close()
    found = survey(OsDisk(), str(tmp_path))
    assert (found.log_start, found.log_end, found.queues) == (0, 0, [])


def test_counting_reads_all_records(tmp_path: Path) -> None:
    make(tmp_path)
    counts = count_records(OsDisk(), str(tmp_path))
    assert {key: count.records for key, count in counts.items()} == {
        (topic, number): EACH for topic in TOPICS for number in (0, 1)
    }
    assert sum(count.size_bytes for count in counts.values()) > 40 * MESSAGES
