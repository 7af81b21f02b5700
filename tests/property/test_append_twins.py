"""Both implementations of the append do exactly the same.

Goal: one behaviour, whichever is installed.  Method: the same runs of requests are appended by both to segments that
may be full at any row; segment bytes, rows, ids, queue entries and the reason for stopping must be equal.
"""

import struct
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.model import send_rows as column
from bolide.model.properties import NOT_PLAIN_FAMILIES, RULES, Rule
from bolide.record.codec import RecordHead, inspect_record
from bolide.record.layout import CHECK_LENGTHS, CHECK_SUMS, RECORD_CHECKSUM_BYTES
from tests.property.twins import APPENDS, outcome

SUFFIX = b"MSG_REGION\x01R\x02TRACE_ON\x01true\x02CLUSTER\x01C\x02"
STORE_HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
BODY_BYTES_MAX = 400

NAMES = (
    b"TAGS",
    b"KEYS",
    b"WAIT",
    b"UNIQ_KEY",
    b"DELAY",
    b"TIMER_X",
    b"TIMER_",
    b"TRAN_MSG",
    b"INNER_NUM",
    b"WAIT\0",
    *(rule.name.encode() for rule in RULES),
    *(rule.name.encode()[:-1] for rule in RULES),
    *(rule.name.encode() + b"X" for rule in RULES),
)
VALUES = (b"true", b"false", b"TagA", b"", b"a\x01b", b'qu"ote', "ü".encode(), b"\xff\xfe", b"0" * 32)
PAIRS = st.lists(
    st.tuples(
        st.sampled_from(NAMES[:4]) | st.sampled_from(NAMES),
        st.sampled_from([b"\x01", b"\x01", b"\x01", b""]),
        st.sampled_from(VALUES),
        st.sampled_from([b"\x02", b"\x02", b"\x02", b""]),
    ).map(b"".join),
    max_size=4,
).map(b"".join)
PLAIN = st.sampled_from(
    [
        b"UNIQ_KEY\x01K1\x02WAIT\x01true\x02TAGS\x01TagA\x02",
        b"WAIT\x01true\x02UNIQ_KEY\x01K2\x02",
        b"TAGS\x01TagB\x02UNIQ_KEY\x01K3\x02WAIT\x01true",
        b"UNIQ_KEY\x01K4",
        b"KEYS\x01a b\x02UNIQ_KEY\x01K5\x02TAGS\x01",
    ]
)
PROPERTIES = PLAIN | PLAIN | PAIRS | st.tuples(PAIRS, PLAIN).map(b"".join)
ITEM = st.tuples(st.integers(-5, 5), st.binary(max_size=30), PROPERTIES)


def batch_of(items: list[tuple[int, bytes, bytes]]) -> bytes:
    return b"".join(
        struct.pack(">IIIiI", 22 + len(body) + len(text), 0, 0, flag, len(body))
        + body
        + struct.pack(">H", len(text))
        + text
        for flag, body, text in items
    )


@st.composite
def request(draw: st.DrawFn) -> dict[str, Any]:
    is_batch = draw(st.integers(0, 3)) == 0
    body = (
        batch_of(draw(st.lists(ITEM, min_size=1, max_size=4))) if is_batch else draw(st.binary(max_size=60))
    )
    if is_batch and draw(st.integers(0, 5)) == 0:
        body = body[: draw(st.integers(0, len(body)))] + draw(st.binary(max_size=3))
    return {
        "body": body,
        "properties": draw(PROPERTIES),
        "topic": draw(st.sampled_from([0, 0, 0, 1, 2])),
        "queue_id": draw(st.sampled_from([-1, 0, 1, 1, 2, 3])),
        "sys_flag": draw(st.sampled_from([0, 0, 0, 0, 1, 0x100, 4, 8, 12, 0x40, 0x80, -1])),
        "kind": (column.KIND_BATCH if is_batch else 0) | draw(st.sampled_from([0, column.KIND_ONE_WAY])),
    }


def table_of(requests: list[dict[str, Any]]) -> tuple["array[int]", bytearray, bytearray]:
    """Rows as a scan leaves them, with the bodies and the property text they point into."""
    rows = array("q", bytes(8 * column.COLUMNS * max(1, len(requests))))
    buffer, properties = bytearray(b"frame"), bytearray()
    for number, one in enumerate(requests):
        at = number * column.COLUMNS
        rows[at + column.OPAQUE] = number
        rows[at + column.TOPIC] = one["topic"]
        rows[at + column.QUEUE_ID] = one["queue_id"]
        rows[at + column.SYS_FLAG] = one["sys_flag"]
        rows[at + column.BORN_TIMESTAMP] = 1_700_000_000_000 + number
        rows[at + column.FLAG] = -number
        rows[at + column.PROPERTIES_AT] = len(properties)
        rows[at + column.PROPERTIES_LENGTH] = len(one["properties"])
        rows[at + column.BODY_AT] = len(buffer)
        rows[at + column.BODY_LENGTH] = len(one["body"])
        rows[at + column.RECONSUME_TIMES] = number // 4
        rows[at + column.KIND] = one["kind"]
        buffer += one["body"]
        properties += one["properties"]
    return rows, buffer, properties or bytearray(1)


def appended(
    module: Any,
    requests: list[dict[str, Any]],
    segment_bytes: int,
    born_host: bytes,
    scratch_bytes: int = 70_000,
    sealed: bool = False,
    find: Callable[[Any, bytes], Any] | None = None,
    texts_room: int = 0,
) -> Any:
    """Everything that appending leaves behind, going on past rows that are left to the general path."""
    rows, buffer, properties = table_of(requests)
    texts_used = len(properties)
    properties += bytes(texts_room)
    log_offsets = array("q", bytes(8 * column.RECORDS_MAX))
    tails = [[module.QueueTail((f"T{t}", q), 10 * q, None) for q in range(3)] for t in range(2)]
    written = [[*tails[0]], [None, tails[1][1], None]]  # two queues of the second topic are new
    lanes = [module.TopicLane(b"T0", written[0], 2), module.TopicLane(b"x" * 128, written[1], 3), None]
    segment = bytearray(segment_bytes)
    touched: list[Any] = []
    appender = module.Appender(STORE_HOST, SUFFIX, BODY_BYTES_MAX, sealed)
    first, position, history = 0, 0, []
    scratch = bytearray(scratch_bytes)
    while first < len(requests):
        row, size, why = appender.append_run(
            rows, log_offsets, buffer, properties, lanes, first, len(requests), scratch, segment_bytes - position,
            5000 + position, born_host, 1_700_000_000_999, touched, find, texts_used,
        )  # fmt: skip
        segment[position : position + size] = scratch[:size]
        position += size
        records = sum(rows[n * column.COLUMNS + column.RECORDS_COUNT] for n in range(first, row))
        history.append((row, position, why, list(log_offsets[:records]), bytes(properties[texts_used:])))
        if why == module.NEEDS_QUEUE:
            lane = lanes[rows[row * column.COLUMNS + column.TOPIC]]
            lane.open_missing(tails[1][lane.missing])
            first = row
        else:
            first = row if row > first else row + 1
    entries = [[tail.entries(tail.start, tail.next_offset) for tail in lane] for lane in tails]
    return bytes(segment), rows.tolist(), history, entries, [tail.key for tail in touched]


@given(
    st.lists(request(), max_size=8),
    st.integers(8, 2500),
    st.sampled_from([8, 20]),
    st.integers(1, 2500),
    st.booleans(),
)
@settings(max_examples=250)
def test_both_append_the_same_bytes_and_stop_at_the_same_rows(
    requests: list[dict[str, Any]], segment_bytes: int, host_bytes: int, scratch_bytes: int, sealed: bool
) -> None:
    host = bytes(range(host_bytes))
    compiled, twin = (appended(m, requests, segment_bytes, host, scratch_bytes, sealed) for m in APPENDS)
    assert compiled == twin


ASKING = st.sampled_from(
    [
        b"DELAY\x013\x02",
        b"DELAY\x0118",
        b"TIMER_DELAY_MS\x015000\x02",
        b"TIMER_DELIVER_MS\x01" + b"7" * 60 + b"\x02",
        b"TRAN_MSG\x01true\x02",
        b"TRAN_MSG\x01true\x02PGROUP\x01g\x02",
        b"REAL_TOPIC\x01T\x02",
        b"WAIT\x01\x02",
        b"WAIT\x01true\x02",
        b"A\x01" + b"v" * 150 + b"\x02",
        "Ä\x01ö\x02".encode(),
        b"\xff\x01b\x02",
    ]
)
ASKS = st.tuples(
    ASKING,
    PLAIN.map(lambda text: text if text.endswith(b"\x02") else text + b"\x02"),
    st.lists(ASKING, max_size=2),
).map(lambda texts: texts[0].removesuffix(b"\x02") + b"\x02" + texts[1] + b"".join(texts[2]))


class Detoured:
    """Detours of three kinds, by the words that ask; some words have none, and some have one that is kept."""

    def __init__(self, module: Any) -> None:
        self.asked: list[bytes] = []
        self._detour = module.Detour
        self.tails = [module.QueueTail((f"W{number}", number), 100 * number, None) for number in range(3)]

    def __call__(self, lane: Any, asked: bytes) -> Any:
        self.asked.append(asked)
        pairs = b"REAL_TOPIC\x01" + lane.topic[:5] + b"\x02REAL_QID\x01"
        made = (
            self._detour(self.tails[0], b"", pairs, 5000, b"", 300, 350),
            self._detour(self.tails[1], b"", b"TIMER_OUT_MS\x017\x02" + pairs, -1, b"v1 T b 8 ", 300, 350),
            self._detour(self.tails[2], b"TRAN_ID\x01", pairs, -1, b"", 300, 350),
            None,
        )[len(asked) % 4]
        if made is not None and len(asked) % 2:
            lane.detours[asked] = made
        return made

    def entries(self) -> list[bytes]:
        return [tail.entries(tail.start, tail.next_offset) for tail in self.tails]


@given(
    st.lists(
        st.tuples(request(), ASKS | PROPERTIES, st.booleans()).map(
            lambda one: one[0] | ({"properties": one[1], "kind": 0} if one[2] else {})
        ),
        max_size=24,
    ),
    st.integers(8, 9000),
    st.integers(1, 9000),
    st.sampled_from([0, 30, 100, 4000]),
    st.booleans(),
)
@settings(max_examples=250)
def test_both_send_rows_that_ask_the_same_way(
    requests: list[dict[str, Any]], segment_bytes: int, scratch_bytes: int, texts_room: int, sealed: bool
) -> None:
    left = []
    for module in APPENDS:
        find = Detoured(module)
        one = appended(module, requests, segment_bytes, bytes(8), scratch_bytes, sealed, find, texts_room)
        left.append((one, find.asked, find.entries()))
    assert left[0] == left[1]


def test_a_row_that_asks_is_written_as_its_detour_says() -> None:
    text = b"UNIQ_KEY\x01K\x02%b\x02WAIT\x01true\x02TAGS\x01b"
    words = [b"DELAY\x01" + b"3" * digits for digits in range(1, 5)]
    for module in APPENDS:
        for asked in words:
            find = Detoured(module)
            request = plain(properties=text % asked, queue_id=2, sys_flag=4)
            segment, rows, history, *_ = appended(
                module, [request], 4096, bytes(8), find=find, texts_room=100
            )
            assert find.asked == [b"\x04" + asked]
            if len(find.asked[0]) % 4 == 3:
                assert history[0][2] == module.NEEDS_GENERAL_PATH
                continue
            (record,) = records_of(segment)
            written = b"UNIQ_KEY\x01K\x02%b\x02TAGS\x01b\x02" % asked + SUFFIX
            number = len(find.asked[0]) % 4
            own = (b"", b"TIMER_OUT_MS\x017\x02", b"TRAN_ID\x01K\x02")[number]
            assert properties_of(record) == written + own + b"REAL_TOPIC\x01T0\x02REAL_QID\x012\x02"
            assert rows[column.QUEUE_OFFSET] == 100 * number


def test_a_sealed_record_is_the_plain_one_with_a_checksum_behind_it() -> None:
    batch = plain(batch_of([(0, b"a", b"UNIQ_KEY\x01K\x02TAGS\x01b"), (1, b"b", b"UNIQ_KEY\x01K\x02")]))
    requests = [plain(), batch | {"kind": column.KIND_BATCH}, plain(properties=b"UNIQ_KEY\x01K")]
    for module in APPENDS:
        segments = [appended(module, requests, 4096, bytes(8), sealed=sealed)[0] for sealed in (False, True)]
        plain_texts, sealed_texts = (
            [properties_of(record) for record in records_of(segment)] for segment in segments
        )
        assert len(plain_texts) == 4
        assert [text[:-RECORD_CHECKSUM_BYTES] for text in sealed_texts] == plain_texts


def records_of(segment: bytes) -> Iterator[bytes]:
    at = 0
    while isinstance(head := inspect_record(segment, at, len(segment), CHECK_SUMS), RecordHead):
        yield segment[at : at + head.size]
        at += head.size


def properties_of(record: bytes) -> bytes:
    head = inspect_record(record, 0, len(record), CHECK_LENGTHS)
    assert isinstance(head, RecordHead)
    return record[head.properties_at :]


def plain(body: bytes = b"body", **changes: Any) -> dict[str, Any]:
    properties = b"UNIQ_KEY\x01K\x02WAIT\x01true\x02"
    return {
        "body": body, "properties": properties, "topic": 0, "queue_id": 0, "sys_flag": 0, "kind": 0, **changes,
    }  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_property_leaves_the_fast_path_when_its_row_says_so(rule: Rule) -> None:
    """Alone, behind others, without a value, and in a message of a batch; names that are only alike do not."""
    own = rule.name.encode()
    key = b"" if rule.name == "UNIQ_KEY" else b"UNIQ_KEY\x01K\x02"
    meant = own + b"X" if rule.is_family else own
    others = [b"X" + own, own.lower(), own[:-1], own if rule.is_family else own + b"Y"]
    if own.startswith(NOT_PLAIN_FAMILIES) and not rule.is_family:  # names like it belong to the family
        others = others[:2]
    for name, is_plain in [(meant, rule.is_plain), *((other, True) for other in others)]:
        for text in (key + name + b"\x01true\x02", name + b"\x01true\x02" + key, key + name + b"\x01true"):
            batch = batch_of([(0, b"a", b"UNIQ_KEY\x01K\x02"), (0, b"b", text)])
            text += b"UNIQ_KEY\x01K\x02" if text.endswith(b"\x02") else b"\x02UNIQ_KEY\x01K\x02"
            for request in (plain(properties=text), plain(batch, kind=column.KIND_BATCH)):
                if not key and name != meant and request["kind"]:
                    continue  # the message of the batch has no unique key
                for module in APPENDS:
                    ((_, _, why, *_),) = appended(module, [request], 4096, bytes(8))[2]
                    assert (why == module.DONE) == is_plain, (name, text)


def test_both_stop_at_every_border_of_a_segment_alike() -> None:
    """A record needs its own size and 8 bytes more; one byte less and the row waits for the next segment."""
    batch = plain(batch_of([(0, b"a", b"UNIQ_KEY\x01K\x02")] * 3), kind=column.KIND_BATCH)
    for requests in ([plain()] * 3, [plain(), batch], [batch, plain()]):
        for size in range(700):
            compiled, twin = (appended(m, requests, size, bytes(8)) for m in APPENDS)
            assert compiled == twin, size


def test_a_row_is_left_alone_when_it_fits_but_for_one_byte() -> None:
    for module in APPENDS:
        _, _, ((row, size, why, *_),), *_ = appended(module, [plain()], 4096, bytes(8))
        assert (row, why) == (1, module.DONE)
        for room, expected in ((size + 8, module.DONE), (size + 7, module.SEGMENT_FULL)):
            segment, _, history, entries, touched = appended(module, [plain()], room, bytes(8))
            assert history[0][2] == expected
            if expected == module.SEGMENT_FULL:
                assert not any(segment)
                assert entries == [[b""] * 3] * 2
                assert touched == []


def test_a_malformed_batch_never_asks_for_a_new_segment() -> None:
    broken = batch_of([(0, b"a" * 100, b"UNIQ_KEY\x01K\x02")]) + b"x"
    for module in APPENDS:
        _, _, history, *_ = appended(module, [plain(broken, kind=column.KIND_BATCH)], 50, bytes(8))
        assert history[0][2] == module.NEEDS_GENERAL_PATH


def test_a_run_stops_when_its_ids_are_full() -> None:
    """More records than there is room for their ids: the rest is a run of its own."""
    requests = [plain(b"x", queue_id=0)] * 3
    for module in APPENDS:
        rows, buffer, properties = table_of(requests * 6000)
        lane = module.TopicLane(b"T", [module.QueueTail(("T", 0), 0, None)], 1)
        log_offsets = array("q", bytes(8 * column.RECORDS_MAX))
        scratch = bytearray(column.RECORDS_MAX * 250)
        row, _, why = module.Appender(STORE_HOST, SUFFIX, BODY_BYTES_MAX).append_run(
            rows,
            log_offsets,
            buffer,
            properties,
            [lane],
            0,
            18_000,
            scratch,
            len(scratch),
            0,
            bytes(8),
            0,
            [],
        )
        assert (row, why) == (column.RECORDS_MAX, module.DONE)


def test_properties_are_plain_up_to_their_limit() -> None:
    room = 32767 - len(SUFFIX) - len(b"UNIQ_KEY\x01K\x02A\x01\x02")
    for extra, wait in ((0, b""), (1, b""), (0, b"WAIT\x01true\x02"), (1, b"WAIT\x01true\x02")):
        text = b"UNIQ_KEY\x01K\x02" + wait + b"A\x01" + b"v" * (room + extra)
        for ending in (b"", b"\x02"):
            compiled, twin = (
                appended(m, [plain(properties=text + ending)], 65536, bytes(8)) for m in APPENDS
            )
            assert compiled == twin
            assert (compiled[2][0][2] == 0) == (extra == 0)


def test_a_batch_with_a_delay_in_its_own_properties_needs_the_general_path() -> None:
    body = batch_of([(0, b"a", b"UNIQ_KEY\x01K\x02")])
    for module in APPENDS:
        for text, why in ((b"DELAY\x013\x02", module.NEEDS_GENERAL_PATH), (b"WAIT\x01true\x02", module.DONE)):
            row = plain(body, kind=column.KIND_BATCH, properties=text)
            assert appended(module, [row], 4096, bytes(8))[2][0][2] == why


def test_a_lane_needs_a_queue_to_write_to() -> None:
    for module in APPENDS:
        tail = module.QueueTail(("T", 0), 0, None)
        for tails, write_queues in (([], 0), ([tail], 0), ([tail], 2), ([tail], -1)):
            assert outcome(module.TopicLane, b"T", tails, write_queues)[1][0] is ValueError


@given(st.data())
def test_tails_behave_alike(data: st.DataObject) -> None:
    """Appending, dropping what is written, reading and starting again, in any order."""
    tails = [module.QueueTail(("T", 0), 7, "owner") for module in APPENDS]
    for _ in range(data.draw(st.integers(1, 8))):
        first = tails[0]
        match data.draw(st.sampled_from(["append", "append", "drop", "reset"])):
            case "append":
                for number in range(data.draw(st.sampled_from([1, 3, 40, 300]))):
                    for tail in tails:
                        tail.append(number, 100, -number)
            case "drop":
                offset = data.draw(st.integers(first.start, first.next_offset))
                for tail in tails:
                    tail.drop_before(offset)
            case _:
                offset = data.draw(st.integers(0, 50))
                for tail in tails:
                    tail.reset(offset)
        states = [(t.start, t.next_offset, t.entries(t.start, t.next_offset), t.key, t.owner) for t in tails]
        assert states[0] == states[1]
