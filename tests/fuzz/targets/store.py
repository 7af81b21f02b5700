"""Files of a store: each parser by itself, and whole stores in which one file is not what it was."""

import functools
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from bolide.model import send_rows as column
from bolide.model.errors import InvalidRequest, StoreError
from bolide.model.filter import EVERYTHING, Filter
from bolide.model.offsets import GroupOffset
from bolide.model.topic import GroupConfig, Subscription, TopicConfig
from bolide.offline import places
from bolide.offline.export import Export, Selection
from bolide.offline.files import Geometry, StoreFiles
from bolide.offline.repair import Repair
from bolide.offline.survey import count_records, survey
from bolide.offline.table_files import Tables
from bolide.offline.verify import verify
from bolide.record.layout import CHECK_LENGTHS, CHECK_SEALED, CHECK_SUMS
from bolide.rules.filters import SQL
from bolide.store import deletions, file_names
from bolide.store.checkpoint import Checkpoint, Checkpoints, Mark, is_foreign
from bolide.store.disk_os import OsDisk
from bolide.store.index_layout import DurableMark, IndexHeader
from bolide.store.queue_entry import ENTRY, ENTRY_BYTES
from bolide.store.store import MessageStore
from bolide.store.tables import (
    DelayOffsetTable,
    FilterTable,
    GroupTable,
    OffsetTable,
    TopicTable,
    WriteTable,
)
from bolide.store.tables.persisted import PersistedTable
from bolide.store.tables.writes import BatchBegun
from bolide.store.timer.point import TimerPoint, decode_point, encode_point
from bolide.wire.frame import scan_frame
from tests.fuzz.memory_disk import MemoryDisk
from tests.fuzz.scratch import scratch
from tests.fuzz.target import Target
from tests.fuzz.targets.record import BASE, GOLDEN, RECORD_TOKENS, logs, make_batch, mend_records, same
from tests.property.test_append_twins import appended
from tests.property.test_index_twins import SLOTS, indexed, new_file
from tests.property.test_walk_twins import walked
from tests.property.twins import APPENDS, COLLECTS, INDEXES
from tests.unit.filters import Contains
from tests.unit.offline.damaged import INDEX, make
from tests.unit.store.stage import LIMITS, QUEUE_FILE_BYTES, SEGMENT_BYTES, HeldClock, options
from tests.unit.wire.stage import send_frame

# ---- walks, pulls and runs: compiled and readable ---------------------------------------------------------


def _walk(data: bytes) -> None:
    for check_crc in (False, True):
        seen = [walked(which, data, BASE, 0, [300, len(data) + 1], check_crc=check_crc) for which in (0, 1)]
        assert seen[0] == seen[1]


def _pulls() -> list[bytes]:
    """How many entries, the entries, then the segment that they point into."""
    found = []
    for segment in logs()[:4]:
        entries, at = [], 0
        while at + 4 <= len(segment):
            size = int.from_bytes(segment[at : at + 4], "big")
            entries.append(ENTRY.pack(BASE + at, size, 3433164))
            at += size
        found.append(struct.pack(">B", len(entries)) + b"".join(entries) + segment)
    return found


def _mend_pull(data: bytes) -> bytes:
    at = 1 + ENTRY_BYTES * data[0] if data else 0
    return data[:at] + mend_records(data[at:])


def _pull(data: bytes) -> None:
    if not data:
        return
    at = 1 + ENTRY_BYTES * data[0]
    entries, segment = data[1:at], memoryview(data)[at:]
    entries = entries[: len(entries) - len(entries) % ENTRY_BYTES]
    end = BASE + len(segment)
    for stop in (end, 2**63 - 1):
        same(COLLECTS, "first_by_code", entries, stop)
    tagged = Filter(frozenset({3433164}))
    for filter in (EVERYTHING, tagged, Filter(None, Contains(b"hello"))):
        same(COLLECTS, "first_wanted", entries, filter, end, lambda place: b"hello" if place % 2 else None)
        for check in (CHECK_LENGTHS, CHECK_SUMS, CHECK_SEALED):
            limits = (32, 200 if check else 10**6, 2**63 - 1, BASE + check)
            same(COLLECTS, "collect", entries, 0, filter, *limits, segment, BASE, b"orders", 0, 0, check)
    same(COLLECTS, "collect", entries, 1, EVERYTHING, 2, 0, end, 0, segment, BASE, b"", 0, 0, CHECK_SUMS)


def _runs() -> list[bytes]:
    batch = make_batch([(1, b"one", b"UNIQ_KEY\x01A\x02"), (2, b"two", b"UNIQ_KEY\x01B\x02WAIT\x01true")])
    return [
        send_frame(1),
        send_frame(2, batch, m="true"),
        send_frame(3, b"x" * 300, e="-1", i="UNIQ_KEY\x01K\x02KEYS\x01a b\x02TAGS\x01"),
        send_frame(4, i="UNIQ_KEY\x01K\x02WAIT\x01false\x02", f="256"),
    ]


def _run(data: bytes) -> None:
    """Whatever a scan makes of a frame, both append alike; bodies and properties beside it as they come."""
    run = scan_frame(data, b"")
    requests = [
        {
            "body": run.body(row),
            "properties": bytes(run.properties[run.column(row, column.PROPERTIES_AT) :])[
                : run.column(row, column.PROPERTIES_LENGTH)
            ],
            "topic": row % 2,
            "queue_id": run.column(row, column.QUEUE_ID),
            "sys_flag": run.column(row, column.SYS_FLAG),
            "kind": run.column(row, column.KIND),
        }
        for row in range(run.count)
    ]
    plain = {"topic": 0, "queue_id": 0, "sys_flag": 0}
    half = len(data) // 2
    requests.append({**plain, "body": data[:half], "properties": data[half:], "kind": column.KIND_BATCH})
    requests.append({**plain, "body": b"b", "properties": b"UNIQ_KEY\x01K\x02" + data, "kind": 0})
    for sealed in (False, True):
        results = [appended(module, requests, 4096, bytes(8), sealed=sealed) for module in APPENDS]
        assert results[0] == results[1]


# ---- the key index ----------------------------------------------------------------------------------------

INDEX_ENTRIES = 12


def _index_log(data: bytes) -> None:
    results = [indexed(module, data, [3, INDEX_ENTRIES, 40]) for module in INDEXES]
    assert results[0] == results[1]
    same(INDEXES, "record_hashes", data)


def _index_files() -> list[bytes]:
    """Made of logs, whose places begin where those of that module do."""
    found = []
    for log in logs()[:5]:
        moved = mend_records(log)
        file = new_file(INDEX_ENTRIES)
        INDEXES[0].index_records(moved, 0, len(moved), len(moved), BASE, file, SLOTS, INDEX_ENTRIES, 0)
        found.append(bytes(file))
    return found


def _index_file(data: bytes) -> None:
    """Only files of the right size are ever opened."""
    size = len(new_file(INDEX_ENTRIES))
    file = data[:size].ljust(size, b"\0")
    for wanted in {
        0,
        1,
        2**31 - 1,
        *(ENTRY_HASH.unpack_from(file, at)[0] & 0x7FFF_FFFF for at in (88, 108, 128)),
    }:
        for window in ((0, 2**62), (1_700_000_000_000, 1_700_000_001_000)):
            found = same(
                INDEXES, "find_offsets", memoryview(bytearray(file)), SLOTS, wanted, 5, *window, 9, 0
            )
            assert found[0] == "gave"
    for count, log_end in ((INDEX_ENTRIES, 2**40), (2**31 - 1, BASE + 300), (0, 0)):
        mended = [memoryview(bytearray(file)) for _ in INDEXES]
        ends = [
            module.rebuild_slots(one, SLOTS, count, log_end)
            for module, one in zip(INDEXES, mended, strict=True)
        ]
        assert ends[0] == ends[1]
        assert mended[0] == mended[1]
    IndexHeader.read(memoryview(file))


ENTRY_HASH = struct.Struct(">i")


def _mark(data: bytes) -> DurableMark | None:
    return DurableMark.decode(data[:20].ljust(20, b"\0"))


def _hold_mark(mark: DurableMark | None) -> None:
    assert mark is None or DurableMark.decode(mark.encode()) == mark


def _mend_mark(data: bytes) -> bytes:
    return data[:16].ljust(16, b"\0") + struct.pack(">I", zlib.crc32(data[:16].ljust(16, b"\0")))


# ---- small files ------------------------------------------------------------------------------------------


def _checkpoint(data: bytes) -> Checkpoint:
    checkpoints = Checkpoints(MemoryDisk({"root/checkpoint": data}), "root")
    found = checkpoints.load()
    assert found.safe_ms >= 0
    assert checkpoints.is_odd == (bool(data) and found.mark is None)
    assert checkpoints.is_odd or not is_foreign(data)
    return found


def _hold_checkpoint(found: Checkpoint) -> None:
    assert Checkpoint.decode(found.encode()) == found


def _mend_checkpoint(data: bytes) -> bytes:
    filled = data[:1056].ljust(1056, b"\0") + 2 * struct.pack(">I", zlib.crc32(data[:40].ljust(40, b"\0")))
    return filled + struct.pack(">I", zlib.crc32(filled[1024:])) + bytes(4096 - 1068)


_DELETIONS = b"bolide deletions 1\n4096 orders\n81920 payments\n"


def _deletions(data: bytes) -> deletions.Deletions | None:
    """What a damaged file says is nothing."""
    if deletions.decode_deletions(data) is None:
        return None
    found = deletions.Deletions(MemoryDisk({"root/deletions": data}), "root")
    found.load(is_foreign=False)
    found.covers(b"orders", 5000)
    return found


def _hold_deletions(found: deletions.Deletions | None) -> None:
    """Written again it says the same."""
    if found is None:
        return
    before = found.by_name()
    disk = MemoryDisk({})
    again = deletions.Deletions(disk, "root")
    for topic, place in before.items():
        again.note(topic.decode(), place)
    again.save()
    reread = deletions.Deletions(disk, "root")
    reread.load(is_foreign=False)
    assert reread.by_name() == before


def _mend_deletions(data: bytes) -> bytes:
    text = data.partition(b"crc32 ")[0]
    return text + b"crc32 %08x\n" % zlib.crc32(text)


def _file_name(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _hold_file_name(name: str) -> None:
    place, ordinal = file_names.place_of(name), file_names.ordinal_of(name)
    assert place is None or file_names.name_of(place) == name
    assert ordinal is None or str(ordinal) == name
    assert file_names.queue_id_of(name) in (None, ordinal)


def _table(kind: Callable[..., PersistedTable], name: str) -> Target:
    """A table as it is read at a start; what it writes then, it reads."""
    path = f"config/{name}"

    def read(data: bytes) -> PersistedTable:
        table = kind(MemoryDisk({path: data}), path, HeldClock())
        table.load()
        Tables().take(name, data or b"{}")
        return table

    def holds(table: PersistedTable) -> None:
        written = b"".join(table.pieces())
        again = kind(MemoryDisk({path: written}), path, HeldClock())
        again.load()
        assert b"".join(again.pieces()) == written
        assert b"".join(again.answer_pieces()) == b"".join(table.answer_pieces())

    def corpus() -> list[bytes]:
        files = [GOLDEN / folder / name for folder in ("config-4.9.7", "config-5.5.0")]
        return [*(file.read_bytes() for file in files if file.exists()), *_small_tables(name)]

    tokens = (
        b'"dataVersion":',
        b'"offsetTable":',
        b'"T@g":{0:1}',
        b'"attributes":',
        b'"topicConfigTable":',
        b"@",
    )
    return Target(
        f"tables.{name}", corpus, read, (StoreError, InvalidRequest), holds, tokens=tokens, share=25
    )


def _small_tables(name: str) -> Iterator[bytes]:
    offsets = OffsetTable(MemoryDisk({}), "f", HeldClock())
    groups = GroupTable(MemoryDisk({}), "f", HeldClock())
    topics = TopicTable(MemoryDisk({}), "f", HeldClock())
    offsets.commit("g", "T", 0, 5, 9)
    offsets.note_pull("g", "T", 1, GroupOffset(7))
    groups.put(GroupConfig("g"))
    topics.put(TopicConfig("T"))
    delays = DelayOffsetTable(MemoryDisk({}), "f", HeldClock())
    delays.move(3, 12)
    filters = FilterTable(MemoryDisk({}), "f", HeldClock())
    filters.subscribed("g", [Subscription("T", "a > 1", expression_type=SQL)])
    writes = WriteTable(MemoryDisk({}), "f", HeldClock())
    writes.put("query", BatchBegun(3, 4096, frozenset({"broker-a"})))
    table: PersistedTable = {
        "bulkWrites.json": writes,
        "consumerFilter.json": filters,
        "consumerOffset.json": offsets,
        "delayOffset.json": delays,
        "subscriptionGroup.json": groups,
        "topics.json": topics,
    }[name]
    yield b"".join(table.pieces())
    yield b"".join(table.answer_pieces())


def _points() -> list[bytes]:
    ours = TimerPoint(1_000_000, 52 * 9, 9, 4096, 1000)
    return [encode_point(point, 5, 9) for point in (ours, ours._replace(mark=-1, step_ms=0))]


def _point_is_read_again(point: TimerPoint | None) -> None:
    assert point is None or decode_point(encode_point(point, 0, 0)) == point


# ---- whole stores -----------------------------------------------------------------------------------------

GEOMETRY = Geometry(SEGMENT_BYTES, QUEUE_FILE_BYTES, INDEX.slots, INDEX.entries)


@functools.cache
def _sound_store() -> dict[str, bytes]:
    root = scratch() / "sound"
    make(root, count=14)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _stores() -> list[bytes]:
    """The name of a file, and what is in it instead."""
    return [
        name.encode() + b"\n" + data.rstrip(b"\0")
        for name, data in _sound_store().items()
        if not name.endswith((".bak", "lock"))
    ]


def _mend_store(data: bytes) -> bytes:
    name, _, content = data.partition(b"\n")
    if name.startswith(b"commitlog/"):
        return name + b"\n" + mend_records(content)
    if name == b"checkpoint":
        return name + b"\n" + _mend_checkpoint(content)
    return data


def _spoiled(data: bytes) -> Path:
    """A store with this file in the place of the sound one, as long as it was where that counts."""
    name, _, content = data.partition(b"\n")
    sound = _sound_store()
    root = scratch() / "spoiled"
    shutil.rmtree(root, ignore_errors=True)
    key = name.decode("utf-8", "replace")
    if key in sound and not key.startswith("config/") and len(content) % 7:
        content = content[: len(sound[key])].ljust(len(sound[key]), b"\0")
    for file, bytes_of in {**sound, **({key: content} if key in sound else {})}.items():
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes_of)
    return root


def _examine(data: bytes) -> None:
    """The offline tools look at it, and each ends; a repair leaves a store that they find nothing wrong with."""
    root = str(_spoiled(data))
    disk = OsDisk()
    verify(disk, root, geometry=GEOMETRY)
    survey(disk, root)
    count_records(disk, root)
    store = StoreFiles(disk, root)
    try:
        for _ in Export(store, Selection()).blocks():
            pass
        parts = places.cuts(store, store.log.start, places.log_end(store), SEGMENT_BYTES // 4)
        assert parts == sorted(parts)
    finally:
        store.close()


def _recover(data: bytes) -> None:
    """A start: the store opens or says why not, and gives what it has."""
    root = _spoiled(data)
    store = MessageStore(OsDisk(), options(root, index=INDEX), HeldClock(1_700_001_000_000))
    store.open()
    try:
        for topic in ("orders", "payments"):
            for queue_id in (0, 1):
                offset, end = store.reader.queue_range(topic, queue_id)
                if offset < end:
                    store.reader.pull(topic, queue_id, int(offset), limits=LIMITS)
    finally:
        if store.index is not None:
            store.index._forget_files()
        store.abandon()


def _repair(data: bytes) -> None:
    root = str(_spoiled(data))
    plan = Repair(OsDisk(), root, HeldClock(1_700_001_000_000), geometry=GEOMETRY)
    try:
        plan.apply()
    finally:
        plan.close()


STORE = [
    Target("store.walk", logs, _walk, mend=mend_records, tokens=RECORD_TOKENS, share=40),
    Target("store.pull", _pulls, _pull, mend=_mend_pull, tokens=RECORD_TOKENS, share=40),
    Target("store.append", _runs, _run, tokens=RECORD_TOKENS, share=10),
    Target("index.log", logs, _index_log, mend=mend_records, tokens=RECORD_TOKENS, share=50),
    Target("index.file", _index_files, _index_file, share=50),
    Target("index.mark", lambda: [DurableMark(5, 4096).encode()], _mark, holds=_hold_mark, mend=_mend_mark),
    Target(
        "checkpoint",
        lambda: [Checkpoint(1, 2, 3, 4, 5, Mark(4096, 90, 7)).encode()],
        _checkpoint,
        holds=_hold_checkpoint,
        mend=_mend_checkpoint,
        share=50,
    ),
    Target(
        "deletions",
        lambda: [_mend_deletions(_DELETIONS)],
        _deletions,
        holds=_hold_deletions,
        mend=_mend_deletions,
    ),
    Target(
        "file_names",
        lambda: [b"00000000000000004096", b"7", b"00000000009223372036854775807"],
        _file_name,
        holds=_hold_file_name,
    ),
    _table(TopicTable, "topics.json"),
    _table(GroupTable, "subscriptionGroup.json"),
    _table(OffsetTable, "consumerOffset.json"),
    _table(DelayOffsetTable, "delayOffset.json"),
    _table(FilterTable, "consumerFilter.json"),
    _table(WriteTable, "bulkWrites.json"),
    Target("timer.point", _points, decode_point, (), _point_is_read_again),
    Target(
        "offline.store", _stores, _examine, (StoreError,), mend=_mend_store, tokens=RECORD_TOKENS, share=2
    ),
    Target(
        "store.recover", _stores, _recover, (StoreError,), mend=_mend_store, tokens=RECORD_TOKENS, share=2
    ),
    Target(
        "offline.repair", _stores, _repair, (StoreError,), mend=_mend_store, tokens=RECORD_TOKENS, share=2
    ),
]
