"""Stored records: in the log, in the answer to a pull, and on their way into columns."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bolide.model.delay_levels import DEFAULT_LEVELS
from bolide.model.errors import BadBody, MalformedRecord, MessageIllegal, ProtocolError
from bolide.model.message import SysFlag
from bolide.record import decode
from bolide.record.checksum_twin import seal_record
from bolide.record.codec import encode_record
from bolide.record.compress import pack_body, unpack_body
from bolide.record.layout import (
    BODY_CRC_AT,
    CHECK_LENGTHS,
    CHECK_SEALED,
    CHECK_SUMS,
    LOG_OFFSET_AT,
    MAGIC_V2,
    RECORD_CHECKSUM_NAME,
    OpenRecord,
    open_record,
)
from bolide.record.stored import StoredMessage
from bolide.store.deliver_time import deliver_time_of
from tests.fuzz.target import Target
from tests.property.twins import CHECKSUMS, CODECS, COLUMNS, TEXTS, outcome

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
BASE = 4096
"""Where logs of the targets begin."""

UNPACKED_BYTES_MAX = 64 * 1024
V4 = bytes((127, 0, 0, 1, 0, 0, 42, 159))
V6 = bytes(range(16)) + bytes((0, 0, 42, 159))
NOW_MS = 1_700_000_000_000
MAGICS = (b"\xda\xa3\x20\xa7", b"\xda\xa3\x20\xab", b"\xcb\xd4\x31\x94")
RECORD_TOKENS = (
    *MAGICS,
    b"TAGS\x01",
    b"KEYS\x01",
    b"UNIQ_KEY\x01",
    b"DELAY\x01",
    b"WAIT\x01true\x02",
    b"__CRC32#\x01",
)


def make_record(log_offset: int, **changes: Any) -> bytes:
    parts: dict[str, Any] = {
        "topic": b"orders",
        "body": b"hello",
        "properties": b"TAGS\x01paid\x02KEYS\x0142 43\x02UNIQ_KEY\x01ABC\x02",
        "queue_id": 0,
        "flag": 9,
        "queue_offset": 0,
        "log_offset": log_offset,
        "sys_flag": 0,
        "born_timestamp_ms": NOW_MS,
        "born_host": V4,
        "store_timestamp_ms": NOW_MS + 1,
        "store_host": V4,
        "reconsume_times": 0,
        "prepared_offset": 0,
    }
    return encode_record(**(parts | changes))


def row_of(*records: dict[str, Any]) -> bytes:
    data = b""
    for number, changes in enumerate(records):
        data += make_record(BASE + len(data), **({"queue_offset": number} | changes))
    return data


def logs() -> list[bytes]:
    """Pieces of log as we write them, and as the original did."""
    packed = {"body": pack_body(b"packed " * 9), "sys_flag": int(SysFlag.COMPRESSED)}
    delayed = {"topic": b"SCHEDULE_TOPIC_XXXX", "properties": b"DELAY\x013\x02REAL_TOPIC\x01T\x02"}
    sealed, wide = {"sealed": True}, {"topic": b"x" * 130, "born_host": V6, "store_host": V6}
    ours = [
        row_of({}),
        row_of({}, {}, sealed),
        row_of(sealed, sealed, sealed),
        row_of(wide, packed, delayed),
        row_of({"body": b"", "properties": b""}, {"sys_flag": 4}),
        row_of({}) + struct.pack(">II", 4096, 0xCBD43194),
    ]
    return ours + [path.read_bytes()[:2000] for path in sorted(GOLDEN.glob("*/commitlog")) if path.is_file()]


def answers() -> list[bytes]:
    """What a pull may bring.  Bodies of this kind are asked for much memory before they are looked at."""
    lz4 = int(SysFlag.COMPRESSED | SysFlag.COMPRESSION_LZ4)
    return [*logs(), row_of({"body": pack_body(b"packed " * 9, SysFlag.COMPRESSION_LZ4), "sys_flag": lz4})]


def mend_records(data: bytes) -> bytes:
    """Places and checksums as they must be, as far as lengths lead to records."""
    mended = bytearray(data)
    at = 0
    while True:
        try:
            record = open_record(mended, at, len(mended))
        except MalformedRecord:
            return bytes(mended)
        struct.pack_into(">q", mended, at + LOG_OFFSET_AT, BASE + at)
        crc = CHECKSUMS[1].masked_crc32(mended[record.body_at : record.body_end])
        struct.pack_into(">I", mended, at + BODY_CRC_AT, crc)
        if mended[record.end - 20 : record.end].startswith(RECORD_CHECKSUM_NAME):
            sealed = mended[at : record.end]
            seal_record(sealed)
            mended[at : record.end] = sealed
        at = record.end


# ---- both codecs --------------------------------------------------------------------------------------------


def same(module_pair: tuple[Any, Any], name: str, *parts: Any) -> tuple[str, Any]:
    """What both give or raise, which must be the same."""
    compiled, readable = (outcome(getattr(module, name), *parts) for module in module_pair)
    assert compiled == readable, f"{name}: {compiled!r} and {readable!r}"
    return compiled


def _seen(head: Any) -> Any:
    if head is None or isinstance(head, int):
        return head
    return tuple(getattr(head, name) for name in CODECS[1].RecordHead.__slots__)


def _inspect(data: bytes) -> None:
    for check in (CHECK_LENGTHS, CHECK_SUMS, CHECK_SEALED):
        for at in (0, 1, len(data) // 2):
            seen = [_seen(module.inspect_record(data, at, len(data), check)) for module in CODECS]
            assert seen[0] == seen[1], (check, at, seen)
    for end in (len(data) - 1, 91, 8):
        if 0 <= end <= len(data):
            seen = [_seen(module.inspect_record(data, 0, end, CHECK_SUMS)) for module in CODECS]
            assert seen[0] == seen[1], (end, seen)


def _open_all(data: bytes) -> list[tuple[bytes, OpenRecord]]:
    found, at = [], 0
    while at < len(data):
        record = open_record(data, at, len(data))
        found.append((data, record))
        at = record.end
    return found


def _hold_records(found: list[tuple[bytes, OpenRecord]]) -> None:
    """What is in a record makes the same record."""
    for data, one in found:
        start = one.end - one.size
        topic = data[one.topic_at : one.topic_end]
        if max(len(topic), one.end - one.properties_at) > 32767:  # lengths that Java would read as negative
            continue
        again = encode_record(
            topic=topic,
            body=data[one.body_at : one.body_end],
            properties=data[one.properties_at : one.end],
            **{
                name: getattr(one, name)
                for name in (
                    *("queue_id", "flag", "queue_offset", "log_offset", "sys_flag", "born_timestamp_ms"),
                    *("born_host", "store_timestamp_ms", "store_host", "reconsume_times", "prepared_offset"),
                )
            },
        )
        is_wide = int.from_bytes(data[start + 4 : start + 8], "big") == MAGIC_V2
        if is_wide == (len(topic) > 127):
            assert again[12:] == data[start + 12 : one.end]
            assert again[:8] == data[start : start + 8]


def _split(data: bytes) -> Any:
    kind, found = same(CODECS, "split_batch", data)
    if kind == "raised":
        raise found[0](found[1])
    return found


def _hold_items(items: list[tuple[int, bytes, bytes]]) -> None:
    assert same(CODECS, "split_batch", make_batch(items))[1] == items


def make_batch(items: list[tuple[int, bytes, bytes]]) -> bytes:
    return b"".join(
        struct.pack(">IIIiI", 22 + len(body) + len(text), 0, 0, flag, len(body))
        + body
        + struct.pack(">H", len(text))
        + text
        for flag, body, text in items
    )


def _checksums(data: bytes) -> None:
    same(CHECKSUMS, "masked_crc32", data)
    same(CHECKSUMS, "record_checksum", data)
    sealed = [bytearray(data) for _ in CHECKSUMS]
    ends = [outcome(module.seal_record, one) for module, one in zip(CHECKSUMS, sealed, strict=True)]
    assert ends[0] == ends[1]
    assert sealed[0] == sealed[1]


# ---- messages and bodies ------------------------------------------------------------------------------------


def _messages(data: bytes) -> list[StoredMessage]:
    """All three ways over an answer tell the same."""
    some = decode.decode_some(data, "b")
    assert some.broken is None or not some.messages or some.next_offset is not None
    messages = decode.decode_messages(data, "b")
    assert list(decode.each_message(data, "b")) == messages == some.messages
    return messages


def _unpack(data: bytes) -> bytes:
    """The first byte chooses the way."""
    kind = (0, 0x100, 0x200, 0x300, 0x400)[data[0] % 5] if data else 0
    return unpack_body(data[1:], kind | SysFlag.COMPRESSED, UNPACKED_BYTES_MAX)


def _hold_body(body: bytes) -> None:
    assert len(body) <= UNPACKED_BYTES_MAX
    for kind in (SysFlag.COMPRESSION_ZLIB, SysFlag.COMPRESSION_LZ4, SysFlag.COMPRESSION_ZSTD):
        assert unpack_body(pack_body(body, kind), kind | SysFlag.COMPRESSED, UNPACKED_BYTES_MAX) == body


def _bodies() -> Iterator[bytes]:
    for number, kind in enumerate(
        (SysFlag.COMPRESSION_LZ4, SysFlag.COMPRESSION_ZSTD, SysFlag.COMPRESSION_ZLIB), 1
    ):
        for body in (b"", b"a body " * 20, bytes(3000)):
            yield bytes((number,)) + pack_body(body, kind)


def _deliver_time(data: bytes) -> int | None:
    return deliver_time_of(data, NOW_MS, DEFAULT_LEVELS)


def _hold_time(due_ms: int | None) -> None:
    assert due_ms is None or NOW_MS < due_ms <= NOW_MS + 7_200_000


# ---- columns and texts --------------------------------------------------------------------------------------

_COLUMNS = (
    *(
        "topic",
        "brokerName",
        "queueId",
        "queueOffset",
        "body",
        "bodyError",
        "tags",
        "keys",
        "properties",
        "msgId",
    ),
    *(
        "offsetMsgId",
        "bornTimestamp",
        "storeTimestamp",
        "bornHost",
        "storeHost",
        "reconsumeTimes",
        "flag",
        "sysFlag",
    ),
    "logOffset",
    "key",
)


def _built(module: Any, data: bytes, **options: Any) -> Any:
    builder = module.ColumnBuilder("b", _COLUMNS, **options)
    ended = outcome(builder.append, data, 0, -(2**63), 2**63 - 1)
    counts = (builder.rows, builder.size_bytes, builder.skipped, builder.found, builder.full)
    taken = {
        name: tuple(part if part is None else bytes(part) for part in parts)
        for name, parts in builder.take().items()
    }
    return ended, counts, taken


def _built_of_log(module: Any, data: bytes) -> Any:
    builder = module.ColumnBuilder("b", ("queueOffset", "logOffset", "tags"), keys=["k1"])
    wanted = module.LogFilter(lambda topic, queue_id: len(topic) * queue_id, until_ms=2**41)
    ended = outcome(builder.append_log, data, 0, len(data), 0, wanted)
    return ended, builder.rows, [bytes(part[1]) for part in builder.take().values()]


def _columns(data: bytes) -> None:
    compiled, readable = (_built_of_log(module, data) for module in COLUMNS)
    assert compiled == readable, (compiled[:2], readable[:2])
    for options in (
        {},
        {"bad_bodies": "fail", "tags": ["paid"], "keys": ["42"]},
        {"bad_bodies": "skip", "rows_max": 2},
        {"queue": ("orders", 0)},
    ):
        compiled, readable = (_built(module, data, **options) for module in COLUMNS)
        assert compiled == readable, (options, compiled[:2], readable[:2])
        if compiled[0][0] == "raised":
            assert compiled[0][1][0] in (MalformedRecord, BadBody, ProtocolError), compiled[0]


def _texts(data: bytes) -> None:
    view = memoryview(data)
    for sealed in (False, True):
        same(TEXTS, "check_texts", view, 0, len(data), sealed)
    same(TEXTS, "check_texts", view, len(data) // 2, len(data) + 50, True)


RECORD = [
    Target("record.inspect", logs, _inspect, mend=mend_records, tokens=RECORD_TOKENS, share=60),
    Target("record.open", logs, _open_all, (MalformedRecord,), _hold_records, mend_records, RECORD_TOKENS),
    Target(
        "record.batch",
        lambda: [
            make_batch([(1, b"one", b"a\x01b\x02"), (0, b"", b"")]),
            make_batch([(7, b"x" * 60, b"")] * 5),
        ],
        _split,
        (MessageIllegal,),
        _hold_items,
    ),
    Target("record.checksum", logs, _checksums, mend=mend_records, tokens=RECORD_TOKENS),
    Target(
        "record.decode",
        answers,
        _messages,
        (MalformedRecord,),
        mend=mend_records,
        tokens=RECORD_TOKENS,
        share=15,
    ),
    Target("record.compress", lambda: list(_bodies()), _unpack, (MalformedRecord,), _hold_body),
    Target(
        "record.deliver_time",
        lambda: [b"DELAY\x013\x02", b"A\x01b\x02DELAY\x0118\x02DELAY\x01x\x02"],
        _deliver_time,
        holds=_hold_time,
        tokens=(b"DELAY\x01",),
    ),
    Target("arrow.columns", logs, _columns, mend=mend_records, tokens=RECORD_TOKENS, share=15),
    Target("offline.texts", logs, _texts, mend=mend_records, tokens=RECORD_TOKENS, share=50),
]
