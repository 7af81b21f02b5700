"""What an examination calls damage and what not, and that it goes on behind damage."""

import os
import shutil
import struct
from pathlib import Path

import pytest

from bolide.model.errors import StoreError
from bolide.offline.damage import Damage
from bolide.offline.files import Geometry
from bolide.offline.verify import verify
from bolide.record.layout import MAGIC_BLANK, QUEUE_ID_AT, QUEUE_OFFSET_AT
from bolide.store.disk_os import OsDisk
from bolide.store.queue_entry import ENTRY_BYTES
from tests.unit.offline.damaged import (
    MESSAGES,
    examine,
    index_file,
    make,
    original,
    queue_file,
    root,
    segment,
    write_at,
)
from tests.unit.store.stage import SEGMENT_BYTES, HeldClock, killed, message, opened, put, put_many

__all__ = ["original", "root"]  # fixtures

DELAYED = message("SCHEDULE_TOPIC_XXXX", properties=b"DELAY\x011\x02TAGS\x01t\x02")
RECORD_BYTES = struct.Struct(">i")


def record_at(root: Path, number: int) -> tuple[Path, int, int]:
    """Segment, position and size of the n-th record of the log."""
    at = 0
    for base in range(0, 10):
        path, at = segment(root, base), 0
        data = path.read_bytes()
        while data[at + 4 : at + 8] != MAGIC_BLANK.to_bytes(4, "big"):
            (size,) = RECORD_BYTES.unpack_from(data, at)
            if number == 0:
                return path, at, size
            number -= 1
            at += size
    raise AssertionError("no such record")


def only(root: Path) -> Damage:
    (damage,) = examine(root).findings.damages
    return damage


# ---- sound, though it may not look like it --------------------------------------------------------------------


def test_a_store_after_a_clean_stop_is_sound_and_all_of_it_was_looked_at(root: Path) -> None:
    found = examine(root)
    assert list(found.findings) == []
    assert (found.records, found.entries, found.index_entries) == (MESSAGES, MESSAGES, 3 * MESSAGES)


def test_nothing_is_written(root: Path) -> None:
    before = {
        path: (path.stat().st_mtime_ns, path.read_bytes()) for path in root.rglob("*") if path.is_file()
    }
    write_at(segment(root), 500, b"damage")
    before[segment(root)] = (segment(root).stat().st_mtime_ns, segment(root).read_bytes())
    examine(root)
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in root.rglob("*") if path.is_file()}
    assert before == after


def test_after_a_kill_entries_that_were_not_written_are_normal(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 5)
    store.append([message(body=b"its entry is only in memory")])
    killed(store)
    found = examine(tmp_path)
    assert found.is_sound
    assert any("not written yet" in note.text for note in found.findings.notes)


def test_after_a_kill_a_torn_last_record_and_its_entry_are_normal(tmp_path: Path) -> None:
    store = opened(tmp_path)
    at = int(put_many(store, 5)[-1].log_offset)
    killed(store)
    write_at(segment(tmp_path), at + 90, b"\xff\xff")
    found = examine(tmp_path)
    assert found.is_sound
    assert (found.records, found.log_end) == (4, at)
    assert any("behind the end of the log" in note.text for note in found.findings.notes)


def test_old_records_behind_the_end_that_a_recovery_has_cut_are_normal(tmp_path: Path) -> None:
    store = opened(tmp_path)
    third = int(put_many(store, 10)[3].log_offset)
    killed(store)
    write_at(segment(tmp_path), third + 90, b"\xff\xff")
    store = opened(tmp_path)  # cuts
    put(store, message(body=b"a longer body than before"))
    store.close()
    found = examine(tmp_path)
    assert found.is_sound
    assert found.records == 4


def test_segments_and_queue_files_that_retention_took_are_normal(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 100)
    store.close()
    os.unlink(segment(tmp_path, 0))
    os.unlink(queue_file(tmp_path, "T"))
    assert list(examine(tmp_path).findings) == []


def test_a_segment_that_was_reserved_and_never_used_is_normal(root: Path) -> None:
    (root / "commitlog" / f"{2 * SEGMENT_BYTES:020d}").write_bytes(bytes(SEGMENT_BYTES))
    assert examine(root).is_sound


def test_a_queue_that_begins_in_the_middle_of_its_file_is_normal(root: Path) -> None:
    """RocketMQ fills the part before with (0, 2147483647, 0)."""
    folder = queue_file(root).parent
    gap = struct.pack(">qiq", 0, 2147483647, 0)
    os.unlink(segment(root, 0))
    entries = b"".join(path.read_bytes() for path in sorted(folder.iterdir()))
    kept = [entries[at : at + 20] for at in range(0, len(entries), 20)]
    first = next(n for n, entry in enumerate(kept) if struct.unpack(">q", entry[:8])[0] >= SEGMENT_BYTES)
    write_at(sorted(folder.iterdir())[0], 0, gap * first)
    assert examine(root).is_sound


def test_records_of_a_deleted_topic_are_normal(root: Path) -> None:
    shutil.rmtree(root / "consumequeue" / "payments")
    topics = root / "config" / "topics.json"
    topics.write_text(topics.read_text().replace('"payments":', '"others":'))
    found = examine(root)
    assert found.is_sound
    assert any("deleted" in note.text for note in found.findings.notes)


def test_a_topic_that_was_deleted_and_made_again_is_normal(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 30)
    put_many(store, 5, "Other")
    store.delete_topic("T")
    put_many(store, 4)
    store.close()
    found = examine(tmp_path)
    assert list(found.findings) == []
    assert found.records == 39


def test_delayed_messages_have_the_time_of_their_delivery_in_their_entries(tmp_path: Path) -> None:
    store = opened(tmp_path)
    delayed = message("SCHEDULE_TOPIC_XXXX", properties=b"DELAY\x013\x02TAGS\x01t\x02")
    put(store, delayed, delayed)
    store.close()
    path = queue_file(tmp_path, "SCHEDULE_TOPIC_XXXX")
    write_at(path, 12, struct.pack(">q", 1_700_000_010_000))
    assert list(examine(tmp_path).findings) == []


@pytest.mark.parametrize("lost", [1, 2])
def test_the_lost_entry_of_a_delayed_message_has_the_delay_of_those_before_it(
    tmp_path: Path, lost: int
) -> None:
    """The levels were others than they are by default: no file says so, but the queue's other entries do."""
    store = opened(tmp_path)
    delayed = message("SCHEDULE_TOPIC_XXXX", properties=b"DELAY\x011\x02")
    put(store, *(delayed for _ in range(3)))
    store.close()
    path = queue_file(tmp_path, "SCHEDULE_TOPIC_XXXX")
    for number in range(3):
        write_at(path, 20 * number + 12, struct.pack(">q", HeldClock().ms + 3_600_000))
    whole = path.read_bytes()
    write_at(path, 20 * lost, bytes(20))
    (fix,) = examine(tmp_path).fixes
    assert bytes(fix.entries) == whole[20 * lost : 20 * lost + 20]


def test_a_delayed_message_that_says_a_wrong_number_stays_due_when_it_was(tmp_path: Path) -> None:
    store = opened(tmp_path)
    wrong = put(store, *[DELAYED] * 4)[2]
    store.close()
    write_at(segment(tmp_path, 0), int(wrong.log_offset) + QUEUE_OFFSET_AT, struct.pack(">q", 64))
    found = examine(tmp_path)
    assert [number for _, number in found.renumbered] == [2]
    assert list(found.fixes) == []


def test_what_stands_for_lost_delayed_messages_says_when_the_one_behind_them_is_due(tmp_path: Path) -> None:
    """Also where that one's entry is lost, too: RocketMQ gives the message out once more, and when it is due."""
    store = opened(tmp_path)
    appended = put(store, *[DELAYED] * 6)
    store.close()
    path = queue_file(tmp_path, DELAYED.topic)
    entry = path.read_bytes()[4 * ENTRY_BYTES : 5 * ENTRY_BYTES]
    for one in appended[2:4]:
        write_at(segment(tmp_path, 0), int(one.log_offset) + QUEUE_ID_AT, struct.pack(">i", 1))
    write_at(path, 4 * ENTRY_BYTES, bytes(ENTRY_BYTES))
    fixes = [fix for fix in examine(tmp_path).fixes if fix.key == (DELAYED.topic, 0)]
    assert b"".join(bytes(fix.entries) for fix in fixes) == entry * 3


def test_a_running_broker_is_noticed(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 3)
    assert any("running" in note.text for note in examine(tmp_path).findings.notes)
    store.close()


# ---- the log ----------------------------------------------------------------------------------------------


def test_a_damaged_body_is_named_with_its_place_and_the_message_that_is_lost(root: Path) -> None:
    path, at, _ = record_at(root, 10)
    write_at(path, at + 90, b"!")
    damage = only(root)
    assert (damage.file, damage.at) == (f"commitlog/{path.name}", at)
    assert "checksum" in damage.what
    assert "orders/1 offset 2" in damage.consequence


@pytest.mark.parametrize(
    ("position", "data", "word"),
    [
        (0, b"\0\0\0\0", "bytes"),
        (4, b"\0\0\0\0", "magic"),
        (28, b"\1", "says it is at"),
        (84, b"\0\0\0\1", "lengths"),
    ],
)
def test_a_record_without_its_frame_is_passed_over(root: Path, position: int, data: bytes, word: str) -> None:
    path, at, _ = record_at(root, 5)
    write_at(path, at + position, data)
    found = examine(root)
    assert found.records == MESSAGES - 1
    assert word in found.findings.damages[0].what


def test_a_page_of_zeros_is_one_hole_and_everything_behind_it_is_still_looked_at(root: Path) -> None:
    path, at, size = record_at(root, 5)
    write_at(path, at, bytes(4 * size - 20))
    found = examine(root)
    assert found.records == MESSAGES - 4
    assert len(found.holes) == 1
    assert len(found.holes[0].lost) == 4


def test_a_missing_segment_is_damage(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 100)
    store.close()
    os.unlink(segment(tmp_path, 1))
    found = examine(tmp_path)
    assert any("missing" in damage.what for damage in found.findings.damages)
    assert 50 < found.records < 100


def test_a_segment_of_another_length_is_damage(root: Path) -> None:
    with segment(root, 0).open("r+b") as file:
        file.truncate(1000)
    found = examine(root)
    assert any("1000 bytes" in damage.what for damage in found.findings.damages)
    assert found.records > 10


def test_the_last_record_of_a_clean_store_is_missed(root: Path) -> None:
    path, at, _ = record_at(root, MESSAGES - 1)
    write_at(path, at + 90, b"!")
    assert any("behind the end of the log" in damage.what for damage in examine(root).findings.damages)


def test_a_wrong_blank_record_is_damage(root: Path) -> None:
    data = segment(root, 0).read_bytes()
    at = data.index(MAGIC_BLANK.to_bytes(4, "big"))
    write_at(segment(root, 0), at - 4, b"\0\0\0\x09")
    assert "blank" in only(root).what


# ---- queues -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "data", "word"),
    [
        (7, b"\x01", "points to another place"),
        (11, b"\x01", "points to another place"),
        (19, b"\x01", "tags"),
        (0, bytes(20), "is empty"),
        (0, struct.pack(">qiq", 0, 2147483647, 0), "gap"),
    ],
)
def test_a_wrong_entry_is_named(root: Path, at: int, data: bytes, word: str) -> None:
    write_at(queue_file(root), 5 * 20 + at, data)
    damage = only(root)
    assert (damage.file, damage.at) == ("consumequeue/orders/0/00000000000000000000", 100)
    assert "entry 5 of orders/0" in damage.what
    assert word in damage.what


def test_an_entry_of_no_record_is_damage(root: Path) -> None:
    count = MESSAGES // 4
    write_at(queue_file(root, number=count // 10 - 1), 180, struct.pack(">qiq", 77, 100, 0))
    queue_file(root, number=1).write_bytes(struct.pack(">qiq", 77, 100, 0) + bytes(180))
    found = examine(root)
    assert any("is of no record" in damage.what for damage in found.findings.damages)


def test_a_missing_queue_of_a_topic_that_exists_is_damage(root: Path) -> None:
    shutil.rmtree(root / "consumequeue" / "payments")
    damages = examine(root).findings.damages
    assert len(damages) == 2
    assert all("entries 0 to 9" in damage.what for damage in damages)


# ---- index, checkpoint, tables ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "word"),
    [
        (0, "header"),
        (15, "header"),
        (23, "header"),
        (31, "header"),
        (35, "slots"),
        (36, "entries"),
        (40 + 200 + 5 * 20, "instead of"),  # the hash of entry 5 leads to another slot
        (40 + 200 + 5 * 20 + 10, "no record begins"),
        (40 + 200 + 5 * 20 + 15, "behind the first"),
        (40 + 200 + 5 * 20 + 19, "chain"),
        (40 + 200, "entry 0"),
    ],
)
def test_a_wrong_byte_of_an_index_file_is_named(root: Path, at: int, word: str) -> None:
    path = index_file(root)
    value = path.read_bytes()[at]
    write_at(path, at, bytes((value ^ 0x15,)))
    damages = examine(root).findings.damages
    assert damages
    assert all(damage.file == f"index/{path.name}" for damage in damages)
    assert any(word in damage.what for damage in damages), damages


def test_a_wrong_slot_is_named(root: Path) -> None:
    path = index_file(root)
    data = path.read_bytes()
    used = next(at for at in range(40, 240, 4) if any(data[at : at + 4]))
    write_at(path, used, bytes(4))
    assert "slot" in only(root).what


def test_an_index_of_a_wrong_length_is_damage(root: Path) -> None:
    with index_file(root).open("r+b") as file:
        file.truncate(100)
    assert "no index file" in only(root).what


def test_times_that_no_message_has_are_no_checkpoint(root: Path) -> None:
    write_at(root / "checkpoint", 0, struct.pack(">q", 2**50))
    assert "time of the log" in only(root).what


def test_a_checkpoint_of_a_wrong_length_is_damage(root: Path) -> None:
    (root / "checkpoint").write_bytes(b"short")
    assert only(root).file == "checkpoint"


@pytest.mark.parametrize("text", ["", "{", '{"topicConfigTable":[]}', "[]", '{"topicConfigTable":{"a":1}}'])
def test_a_table_that_cannot_be_read_is_damage(root: Path, text: str) -> None:
    (root / "config" / "topics.json").write_text(text)
    damage = only(root)
    assert damage.file == "config/topics.json"
    assert "older copy" in damage.consequence


@pytest.mark.parametrize(
    ("name", "consequence"),
    [
        ("delayOffset.json", "the broker does not start"),
        ("consumerFilter.json", "the broker begins without it"),
    ],
)
def test_a_table_without_a_copy_is_damage_by_what_the_broker_needs_of_it(
    root: Path, name: str, consequence: str
) -> None:
    (root / "config" / name).write_text("null")
    assert only(root).consequence == consequence


def test_a_group_behind_the_end_of_its_queue_is_damage(root: Path) -> None:
    path = root / "config" / "consumerOffset.json"
    path.write_text(path.read_text().replace("0:7", "0:700"))
    assert "billing is at 700" in only(root).what


def test_sizes_may_be_given_where_the_files_cannot_tell(root: Path) -> None:
    found = verify(OsDisk(), str(root), geometry=Geometry(segment_bytes=2 * SEGMENT_BYTES))
    assert any(f"{SEGMENT_BYTES} bytes" in damage.what for damage in found.findings.damages)


def test_a_directory_without_a_log_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store directory"):
        examine(tmp_path)


def test_a_data_directory_with_the_store_in_it_will_do(tmp_path: Path) -> None:
    make(tmp_path / "store")
    assert examine(tmp_path).records == MESSAGES
