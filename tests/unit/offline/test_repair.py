"""A repaired store is sound again, has everything that was not lost, opens, and takes more messages."""

import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from bolide.model.errors import StoreError
from bolide.offline.repair import FILLER_BYTES_MAX, FILLER_BYTES_MIN, Repair, fillers
from bolide.record.codec import RecordHead, inspect_record
from bolide.store.disk_os import OsDisk
from bolide.store.store import MessageStore
from tests.unit.offline.damaged import (
    INDEX,
    MESSAGES,
    TOPICS,
    examine,
    index_file,
    make,
    original,
    queue_file,
    root,
    segment,
    write_at,
)
from tests.unit.offline.test_verify import record_at
from tests.unit.store.stage import (
    SEGMENT_BYTES,
    HeldClock,
    bodies,
    killed,
    message,
    opened,
    put,
    put_many,
    queue_bytes,
)

__all__ = ["original", "root"]  # fixtures


def repaired(root: Path) -> list[str]:
    """Repair and look again; returns what was done."""
    plan = Repair(OsDisk(), str(root), HeldClock())
    plan.apply()
    plan.close()
    found = examine(root)
    assert found.findings.damages == []
    return [step.what for step in plan.steps]


def everything(store: MessageStore) -> set[bytes]:
    return {body for topic in TOPICS for queue_id in (0, 1) for body in bodies(store, topic, queue_id)}


def expected(*lost: int) -> set[bytes]:
    return {b"body of message %05d" % number for number in range(MESSAGES) if number not in lost}


def damage_body(root: Path, number: int) -> None:
    path, at, _ = record_at(root, number)
    write_at(path, at + 90, b"!")


def test_a_plan_alone_writes_nothing(root: Path) -> None:
    damage_body(root, 5)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    plan = Repair(OsDisk(), str(root), HeldClock())
    plan.close()
    assert plan.steps
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_a_sound_store_needs_nothing(root: Path) -> None:
    plan = Repair(OsDisk(), str(root), HeldClock())
    plan.close()
    assert plan.steps == []


def test_a_running_broker_keeps_its_store(root: Path) -> None:
    store = opened(root, index=INDEX)
    with pytest.raises(StoreError, match="stop it"):
        Repair(OsDisk(), str(root), HeldClock())
    store.close()


def test_a_broker_that_starts_after_the_plan_keeps_its_store(root: Path) -> None:
    damage_body(root, 5)
    plan = Repair(OsDisk(), str(root), HeldClock())
    store = opened(root, index=INDEX)
    with pytest.raises(StoreError, match="stop it"):
        plan.apply()
    plan.close()
    store.close()


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "after a kill"])
def test_a_damaged_record_is_bridged_and_nothing_behind_it_is_lost(root: Path, clean: bool) -> None:
    """Even when recovery walks over it: without the bridge it would cut the log there."""
    damage_body(root, 5)
    repaired(root)
    if not clean:
        (root / "abort").write_text("1")
    store = opened(root, index=INDEX)
    assert everything(store) == expected(5)
    put(store, message("orders", b"new"))
    assert b"new" in bodies(store, "orders")
    store.close()
    assert examine(root).is_sound


def test_what_was_replaced_is_kept(root: Path) -> None:
    path, at, size = record_at(root, 5)
    damage_body(root, 5)
    record = path.read_bytes()[at : at + size]
    queue = queue_file(root, "payments", 0).read_bytes()
    plan = Repair(OsDisk(), str(root), HeldClock())
    kept = Path(plan.apply())
    plan.close()
    assert (kept / "commitlog" / f"{path.name}.at-{at}").read_bytes() == record
    assert (kept / "consumequeue/payments/0/00000000000000000000").read_bytes() == queue.rstrip(b"\0")


def test_the_last_record_of_a_clean_store_does_not_give_its_number_away(root: Path) -> None:
    damage_body(root, MESSAGES - 1)
    repaired(root)
    store = opened(root, index=INDEX)
    assert everything(store) == expected(MESSAGES - 1)
    last = put(store, message("payments", b"new", 1))[0]
    assert last.queue_offset == MESSAGES // 4
    store.close()


def test_a_lost_segment_is_bridged(tmp_path: Path) -> None:
    store = opened(tmp_path)
    put_many(store, 100)
    store.close()
    lost = segment(tmp_path, 1).read_bytes()
    os.unlink(segment(tmp_path, 1))
    repaired(tmp_path)
    store = opened(tmp_path)
    found = bodies(store)
    assert found == [b"%05d" % number for number in range(100) if b"%05d" % number not in lost]
    assert len(found) > 50
    store.close()


def test_a_segment_cut_short_gets_its_length_back(root: Path) -> None:
    with segment(root, 0).open("r+b") as file:
        file.truncate(2000)
    repaired(root)
    assert segment(root, 0).stat().st_size == SEGMENT_BYTES
    store = opened(root, index=INDEX)
    found = everything(store)
    assert found < expected()
    assert {b"body of message 00000", b"body of message %05d" % (MESSAGES - 1)} <= found
    store.close()


def test_a_lost_blank_record_is_written_again(root: Path) -> None:
    data = segment(root, 0).read_bytes()
    at = data.index(b"\xcb\xd4\x31\x94") - 4
    write_at(segment(root, 0), at, b"\xff" * 8)
    repaired(root)
    assert segment(root, 0).read_bytes()[: at + 8] == data[: at + 8]


@pytest.mark.parametrize(
    "damage",
    [
        lambda root: shutil.rmtree(root / "consumequeue" / "orders"),
        lambda root: shutil.rmtree(root / "consumequeue"),
        lambda root: write_at(queue_file(root), 40, bytes(60)),
        lambda root: write_at(queue_file(root), 43, b"\x09"),
        lambda root: os.truncate(queue_file(root), 110),
    ],
    ids=["a topic", "all", "entries", "a byte", "a tail"],
)
def test_queues_are_written_again_byte_for_byte(root: Path, damage: Callable[[Path], None]) -> None:
    keys = [(topic, number) for topic in TOPICS for number in (0, 1)]
    before = [queue_bytes(root, *key).rstrip(b"\0") for key in keys]
    damage(root)
    repaired(root)
    assert [queue_bytes(root, *key).rstrip(b"\0") for key in keys] == before


def test_index_files_are_made_again(root: Path) -> None:
    before = index_file(root).read_bytes()
    write_at(index_file(root), 300, b"\xff" * 50)
    assert repaired(root) == ["make the index again from the log: 1 files"]
    assert index_file(root).read_bytes() == before


def test_a_damaged_table_gets_its_copy_back(root: Path) -> None:
    path = root / "config" / "topics.json"
    before = path.read_bytes()
    path.write_bytes(before[:-5])
    repaired(root)
    assert path.read_bytes() == before


def test_a_damaged_copy_is_taken_away_and_a_damaged_checkpoint_written_again(root: Path) -> None:
    before = (root / "checkpoint").read_bytes()
    (root / "config" / "topics.json.bak").write_bytes(b"{")
    write_at(root / "checkpoint", 0, struct.pack(">q", 2**50))
    repaired(root)
    assert not (root / "config" / "topics.json.bak").exists()
    assert (root / "checkpoint").read_bytes()[:16] == before[:16]


def test_a_torn_tail_is_cut(tmp_path: Path) -> None:
    make(tmp_path, clean=False)
    path, at, _ = record_at(tmp_path, MESSAGES - 1)
    write_at(path, at + 90, b"\xff\xff")
    repaired(tmp_path)
    assert path.read_bytes()[at:].strip(b"\0") == b""
    store = opened(tmp_path, index=INDEX)
    assert everything(store) == expected(MESSAGES - 1)
    killed(store)


def test_what_cannot_be_repaired_stays_named(root: Path) -> None:
    for suffix in ("", ".bak"):
        (root / "config" / f"topics.json{suffix}").write_text("{")
    plan = Repair(OsDisk(), str(root), HeldClock())
    plan.close()
    assert plan.steps == []
    assert len(plan.found.findings.damages) == 2


@pytest.mark.parametrize("size", [FILLER_BYTES_MIN, 111, 112, 113, 5000, FILLER_BYTES_MAX + 1, 9_000_000])
def test_filler_records_are_sound_and_fill_exactly(size: int) -> None:
    data = b"".join(fillers(1000, 1000 + size, 5))
    assert len(data) == size
    at = 0
    while at < size:
        head = inspect_record(data, at, size, True)
        assert isinstance(head, RecordHead)
        assert (head.log_offset, head.store_timestamp_ms) == (1000 + at, 5)
        at += head.size
