"""Records with a checksum of the whole: what was damaged is not handed out, and what is beside it is."""

import logging
from pathlib import Path
from typing import Any

import pytest

from bolide.record.checksum import ABSENT, SOUND, record_checksum
from bolide.record.layout import CHECK_LENGTHS, CHECK_SEALED, CHECK_SUMS
from bolide.store import reading
from bolide.store.reading import PullStatus
from bolide.store.store import MessageStore
from tests.unit.store.stage import (
    LIMITS,
    SEGMENT_BYTES,
    bodies,
    killed,
    message,
    opened,
    put,
    put_many,
    queue_bytes,
    records_of,
)

SEALED: dict[str, Any] = {"sealed": True, "check": CHECK_SUMS}
FLAG_AT = 19  # in a record: nothing but the checksum covers it


def flip(root: Path, log_offset: int, bits: int = 1) -> None:
    base = log_offset - log_offset % SEGMENT_BYTES
    with (root / "commitlog" / f"{base:020d}").open("r+b") as file:
        file.seek(log_offset - base)
        byte = file.read(1)[0]
        file.seek(log_offset - base)
        file.write(bytes((byte ^ bits,)))


def pulled(store: MessageStore, offset: int = 0) -> list[bytes]:
    return records_of(store.reader.pull("T", 0, offset, limits=LIMITS).data)


def test_every_record_gets_a_checksum_and_only_when_asked_for(tmp_path: Path) -> None:
    for name, changes, state in (("plain", {}, ABSENT), ("sealed", SEALED, SOUND)):
        store = opened(tmp_path / name, **changes)
        put(store, message(), message(properties=b""), message(properties=b"K\x01v"))
        assert [record_checksum(record) for record in pulled(store)] == [state] * 3
        store.close()


def test_a_damaged_message_is_passed_over_and_said_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = opened(tmp_path, **SEALED)
    places = put_many(store, 5)
    flip(tmp_path, places[2].log_offset + FLAG_AT)
    with caplog.at_level(logging.ERROR):
        assert bodies(store) == [b"00000", b"00001", b"00003", b"00004"]
    assert "queue 0 of T: 1 messages from 0 on are damaged" in caplog.text
    assert store.figures().damaged_passed_over == 1
    assert store.reader.read_at(places[2].log_offset) is None
    assert store.reader.read_at(places[3].log_offset) is not None
    store.close()


def test_damage_is_said_once_however_often_it_is_met(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PLACE_OFFSETS", 4)
    monkeypatch.setattr(reading, "PLACES_TOLD", 1)
    store = opened(tmp_path, **SEALED)
    places = put_many(store, 8)
    for number in (2, 6):
        flip(tmp_path, places[number].log_offset + FLAG_AT)
    said = []
    for offset in (0, 1, 2, 0, 4, 5, 0):  # the last one is told again: only one place is remembered
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            store.reader.pull("T", 0, offset, limits=LIMITS._replace(hot_count=3))
        said.append(len(caplog.records))
    assert said == [1, 0, 0, 0, 1, 0, 1]
    assert store.figures().damaged_passed_over == 7
    store.close()


def test_a_pull_of_nothing_but_damage_leads_on(tmp_path: Path) -> None:
    store = opened(tmp_path, **SEALED)
    places = put_many(store, 3)
    for place in places[:2]:
        flip(tmp_path, place.log_offset + FLAG_AT)
    limits = LIMITS._replace(hot_count=2)
    result = store.reader.pull("T", 0, 2, limits=limits)
    assert (result.status, result.count) == (PullStatus.FOUND, 1)
    flip(tmp_path, places[2].log_offset + FLAG_AT)
    result = store.reader.pull("T", 0, 0, limits=limits)
    assert (result.status, result.next_offset, result.data) == (PullStatus.MESSAGE_WAS_REMOVING, 3, b"")
    store.close()


@pytest.mark.parametrize(
    ("check", "given"),
    [(CHECK_LENGTHS, [b"old", b"new"]), (CHECK_SUMS, [b"old", b"new"]), (CHECK_SEALED, [b"new"])],
)
def test_messages_from_before_are_handed_out_unless_all_must_have_a_checksum(
    tmp_path: Path, check: int, given: list[bytes]
) -> None:
    store = opened(tmp_path)
    put(store, message(body=b"old"))
    store.close()
    store = opened(tmp_path, sealed=True, check=check)
    put(store, message(body=b"new"))
    assert bodies(store) == given
    store.close()


def test_recovery_ends_the_log_before_damage_that_no_other_checksum_covers(tmp_path: Path) -> None:
    store = opened(tmp_path, **SEALED)
    places = put_many(store, 8)
    killed(store)
    flip(tmp_path, places[5].log_offset + FLAG_AT)
    store = opened(tmp_path, **SEALED)
    assert store.log.end == places[5].log_offset
    assert bodies(store) == [b"%05d" % number for number in range(5)]
    store.close()


@pytest.mark.parametrize("changes", [{}, SEALED], ids=["plain", "sealed"])
def test_entries_of_another_queue_hand_out_nothing(tmp_path: Path, changes: dict[str, Any]) -> None:
    """What two queues have at the same place of their files is swapped: every entry points at a sound record."""
    store = opened(tmp_path, **changes)
    for topic, queue_id in (("A", 0), ("B", 0), ("A", 1)):
        put_many(store, 5, topic, queue_id)
    store.close()
    folder = tmp_path / "consumequeue"
    for first, second in (("A/0", "B/0"), ("A/0", "A/1")):
        paths = [next((folder / name).iterdir()) for name in (first, second)]
        contents = [path.read_bytes() for path in paths]
        for path, other in zip(paths, reversed(contents), strict=True):
            path.write_bytes(other)
    assert len(queue_bytes(tmp_path, "A", 1)) > 0
    store = opened(tmp_path, **changes)
    assert [bodies(store, topic, queue_id) for topic, queue_id in (("A", 0), ("B", 0), ("A", 1))] == [[]] * 3
    assert store.reader.damaged == 15
    store.close()


def test_a_light_queue_may_point_at_messages_of_other_topics(tmp_path: Path) -> None:
    """The original's %LMQ% queues have entries of their own for messages of ordinary topics."""
    store = opened(tmp_path)
    places = put_many(store, 3, "A")
    size = places[1].log_offset - places[0].log_offset
    tail = store.queues.get("%LMQ%light", 0).tail
    for place in places[1:]:
        tail.append(place.log_offset, size, 0)
    assert bodies(store, "%LMQ%light") == [b"00001", b"00002"]
    store.close()
