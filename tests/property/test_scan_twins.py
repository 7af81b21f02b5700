"""Both implementations of `scan_sends` and `encode_send_answers` do exactly the same, whatever the bytes are.

Goal: one meaning of a send header.  Method: headers in every spelling JSON allows and mutations of them go through
both; stop position, rows, topics and property text must be equal.  What they accept must also mean the same to the
general path.
"""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bolide.model import send_rows as column
from bolide.model.end_rows import ENDS_MAX
from bolide.model.errors import ProtocolError
from bolide.model.limits import FRAME_BYTES_MAX, HEADER_BYTES_MAX, HEADER_FIELDS_MAX
from bolide.wire.frame import decode_frame
from bolide.wire.headers.send import SendRequest
from bolide.wire.headers.transaction import EndTransaction
from bolide.wire.send_run import EndRow, SendRun
from tests.property.twins import FRAMES
from tests.unit.wire.stage import frame, send_fields, send_frame, send_header

SEEDS = st.integers(0, 2**40)

TEXTS = ("", "x", "TagA", 'a"b\\c/', "\x01\x02", "\U0001f600ü", "K\x01v\x02UNIQ_KEY\x01A\x02WAIT\x01true\x02")
TOPICS = ("T", "topic_a", "%RETRY%g", "x" * 127, "x" * 128, "ü" * 63, "ü" * 64)
NUMBERS = (0, 1, -1, 7, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 10**17, 10**18 - 1, 10**18, 10**30)
ODD_VALUES = ("null", "true", "1.5", "1e3", "[]", "{}", "{", "-0", "00", "+1", "NaN", '"', "7", '""', "")
ODD_TEXT = (
    "\\ud800",
    "\\udc00",
    "\\x",
    "\\u12g4",
    "\x1f",
    "\\ud800\\u0041",
    "\\/",
    "\\",
    "\\ud83d\\ude00",
    "\\u0000",
)
BLANKS = ("", "", "", "", " ", "\n", "\t \r\n")


class Speller:
    """Writes send headers in the many ways JSON allows.  Most are plain; some have an oddity or two."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._oddities = self._random.choice((0, 0, 1, 1, 2))

    def header(self) -> bytes:
        code = self._random.choice((310, 310, 310, 320, 10))
        meanings = self._fields()
        letters = dict(zip(meanings, "befghijmacd", strict=True))
        return self._spelled(code, meanings, {name: name for name in meanings} if code == 10 else letters)

    def pull_header(self) -> bytes:
        fields: dict[str, str | int] = {
            "consumerGroup": self._random.choice(TEXTS),
            "topic": self._random.choice(TOPICS),
            "queueId": self._number(),
            "queueOffset": self._number(),
            "commitOffset": self._number(),
            "subscription": self._random.choice(("*", "TagA || ü")),
            "sysFlag": self._random.randrange(8),
        }
        code = self._random.choice((11, 11, 11, 361, 310))
        return self._spelled(code, fields, {name: name for name in fields})

    def end_header(self) -> bytes:
        fields: dict[str, str | int] = {
            "producerGroup": self._random.choice(TEXTS),
            "commitLogOffset": self._random.choice(NUMBERS[:-2]),
            "tranStateTableOffset": self._random.choice(NUMBERS[:-2]),
            "commitOrRollback": self._number(),
            "transactionId": self._random.choice(TEXTS),
            "msgId": self._random.choice(TEXTS),
            "fromTransactionCheck": self._random.choice(("true", "false")) if not self._odd(0.1) else "TRUE",
        }
        return self._spelled(37, fields, {name: name for name in fields})

    def _spelled(self, code: int, meanings: dict[str, str | int], spelling: dict[str, str]) -> bytes:
        names = self._random.sample(sorted(meanings), len(meanings))
        if self._odd(0.1):
            names = names[2:] + self._random.choices(names, k=2)
        fields = [(spelling[name], self._value(str(meanings[name]))) for name in names]
        head = [
            ("code", str(code)),
            ("extFields", self._object(fields)),
            ("flag", self._random.choice(("0", "0", "2"))),
            ("language", self._value("JAVA")),
            ("opaque", str(self._random.choice(NUMBERS[:5]))),
            ("version", "493"),
        ]
        if self._random.random() < 0.3:
            self._random.shuffle(head)
        if self._odd(0.2):
            head.append(self._random.choice(head))
        if self._odd(0.2):
            at = self._random.randrange(len(head))
            head[at] = (head[at][0], self._random.choice((*ODD_VALUES, *map(str, NUMBERS))))
        text = self._blank() + self._object(head) + self._blank()
        return text.encode()

    def _fields(self) -> dict[str, str | int]:
        return {
            "topic": self._random.choice(TOPICS if self._odd(0.2) else TOPICS[:4]),
            "queueId": self._number(),
            "sysFlag": self._number(),
            "bornTimestamp": self._random.choice(NUMBERS[:-2]),
            "flag": self._number(),
            "properties": "".join(self._random.choices(TEXTS, k=self._random.randrange(4))),
            "reconsumeTimes": self._number(),
            "batch": self._random.choice(("true", "false")) if not self._odd(0.1) else "TRUE",
            "producerGroup": self._random.choice(TEXTS),
            "defaultTopic": self._random.choice(TOPICS),
            "defaultTopicQueueNums": self._number(),
        }

    def _number(self) -> int:
        return self._random.choice(NUMBERS if self._odd(0.1) else NUMBERS[:5])

    def _odd(self, likely: float) -> bool:
        if self._oddities and self._random.random() < likely:
            self._oddities -= 1
            return True
        return False

    def _blank(self) -> str:
        return self._random.choice(BLANKS)

    def _value(self, value: str) -> str:
        return self._random.choice(ODD_VALUES) if self._odd(0.05) else self._text(value)

    def _text(self, text: str) -> str:
        escape = 0.2 if set(text) & set('"\x01') or self._odd(0.05) else 0.0
        parts = [self._character(character, escape) for character in text]
        if self._odd(0.05):
            parts.insert(self._random.randint(0, len(parts)), self._random.choice(ODD_TEXT))
        return '"' + "".join(parts) + '"'

    def _character(self, character: str, escape: float) -> str:
        if self._random.random() >= escape or character in "-_%":
            return json.dumps(character, ensure_ascii=False)[1:-1]
        units = character.encode("utf-16-be")
        form = self._random.choice(("\\u{:04x}", "\\u{:04X}"))
        return "".join(form.format(units[at] << 8 | units[at + 1]) for at in range(0, len(units), 2))

    def _object(self, members: list[tuple[str, str]]) -> str:
        parts = []
        for name, value in members:
            key = f'"\\u{ord(name[0]):04x}{name[1:]}"' if self._odd(0.02) else f'"{name}"'
            parts.append(self._blank() + key + self._blank() + ":" + self._blank() + value + self._blank())
        return "{" + ",".join(parts) + "}"


def scanned(module: Any, data: bytes, properties_bytes: int = 4096) -> tuple[Any, ...]:
    """Everything a scan leaves behind."""
    run = SendRun(properties_bytes)
    buffer = bytearray(data)
    stop = module.scan_sends(run, buffer, 0, len(buffer), FRAME_BYTES_MAX)
    rows: list[Any] = [
        tuple(run.rows[row * column.COLUMNS :][: column.QUEUE_OFFSET]) for row in range(run.count)
    ]
    rows += [run.end(number) for number in range(run.end_count)]
    return (
        stop,
        run.count + run.end_count,
        rows,
        run.topics,
        run.properties_used,
        bytes(run.properties[: run.properties_used]),
    )


def scanned_by_both(data: bytes, properties_bytes: int = 4096) -> tuple[Any, ...]:
    compiled, twin = (scanned(module, data, properties_bytes) for module in FRAMES)
    assert compiled == twin
    return compiled


@given(SEEDS)
@settings(max_examples=300)
def test_both_scans_take_the_same_requests_with_the_same_rows(seed: int) -> None:
    stream = b"".join(frame(Speller(seed + number).header(), b"x" * number) for number in range(4))
    scanned_by_both(stream)


@given(SEEDS)
@settings(max_examples=300)
def test_both_scans_take_the_same_ends_of_transactions_between_sends(seed: int) -> None:
    spellers = [Speller(seed + number) for number in range(6)]
    headers = [one.end_header() if number % 2 else one.header() for number, one in enumerate(spellers)]
    scanned_by_both(b"".join(map(frame, headers)))


@given(SEEDS)
@settings(max_examples=300)
def test_an_end_that_the_scan_takes_means_the_same_to_the_general_path(seed: int) -> None:
    data = frame(Speller(seed).end_header())
    _, count, rows, *_ = scanned_by_both(data)
    if not count:
        return
    try:
        command = decode_frame(data)
    except ProtocolError:  # a part that an end does not need is odd
        return
    request = EndTransaction.decode(command.fields)
    assert command.is_one_way
    assert rows == [
        EndRow(
            request.commit_log_offset,
            request.tran_state_table_offset,
            request.commit_or_rollback,
            request.producer_group,
            request.transaction_id or "",
            request.msg_id or "",
        )
    ]


def test_some_of_the_spelled_ends_are_plain_and_many_are_not() -> None:
    """A third of them is one-way."""
    plain = sum(scanned_by_both(frame(Speller(seed).end_header()))[1] for seed in range(300))
    assert 30 < plain < 150


def test_a_run_takes_so_many_ends_and_the_rest_is_a_run_of_its_own() -> None:
    fields = {
        "producerGroup": "g",
        "commitLogOffset": "1",
        "tranStateTableOffset": "2",
        "commitOrRollback": "8",
    }
    end = frame(send_header(fields, code=37, flag=2))
    stop, count, *_ = scanned_by_both(end * (ENDS_MAX + 3))
    assert (stop, count) == (ENDS_MAX * len(end), ENDS_MAX)


def test_many_of_the_spelled_requests_are_plain_and_many_are_not() -> None:
    """Otherwise the tests around this one would prove little."""
    plain = sum(scanned_by_both(frame(Speller(seed).header()))[1] for seed in range(300))
    assert 100 < plain < 250


@given(SEEDS, st.binary(max_size=20))
@settings(max_examples=300)
def test_what_the_scan_takes_means_the_same_to_the_general_path(seed: int, body: bytes) -> None:
    data = frame(Speller(seed).header(), body)
    _, count, rows, topics, _, properties = scanned_by_both(data)
    if not count:
        return
    try:
        command = decode_frame(data)
    except ProtocolError:  # a part that storing does not need is odd
        return
    decode = SendRequest.decode_long if command.code == 10 else SendRequest.decode
    request = decode(command.fields)
    (row,) = rows
    assert row[column.OPAQUE] == command.opaque
    assert topics == [request.topic.encode()]
    assert row[column.QUEUE_ID] == request.queue_id
    assert row[column.SYS_FLAG] == request.sys_flag
    assert row[column.BORN_TIMESTAMP] == request.born_timestamp_ms
    assert row[column.FLAG] == request.flag
    assert row[column.RECONSUME_TIMES] == request.reconsume_times
    assert properties == request.properties.encode()
    assert bool(row[column.KIND] & column.KIND_BATCH) == request.batch
    assert bool(row[column.KIND] & column.KIND_ONE_WAY) == command.is_one_way
    assert data[row[column.BODY_AT] :][: row[column.BODY_LENGTH]] == body


@given(st.data())
def test_mutated_frames_stop_both_scans_at_the_same_place(data: st.DataObject) -> None:
    stream = bytearray(
        send_frame(1) + send_frame(2, b"body", i='K\x01a"b\\\U0001f600\x02') + send_frame(3, b"")
    )
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(stream) - 1))
        match data.draw(st.integers(0, 3)):
            case 0:
                stream[at] = data.draw(st.integers(0, 255))
            case 1:
                stream[at] = data.draw(st.sampled_from(b'"\\{}[]:,0129tfn-e \x00\x1f\x80\xc2\xed\xf4'))
            case 2:
                del stream[at]
                stream += b"x"
            case _:
                stream.insert(at, data.draw(st.sampled_from(b'"\\{},0u')))
    scanned_by_both(bytes(stream))


@given(st.binary(max_size=120))
def test_random_headers_never_disturb_the_scan(header: bytes) -> None:
    scanned_by_both(frame(header))


@given(st.text(max_size=60), st.integers(0, 70))
def test_both_scans_agree_on_how_much_property_text_fits(text: str, room: int) -> None:
    scanned_by_both(send_frame(1, i=text) + send_frame(2, i=text), room)


def test_a_header_as_each_client_writes_it_is_plain() -> None:
    ordered = dict(sorted(json.loads(send_header()).items(), reverse=False))
    go = {name: ordered[name] for name in ("code", "language", "version", "opaque", "flag", "extFields")}
    pretty = json.dumps(go, indent=2).encode()
    null = send_header(send_fields(i=None), remark="")
    long = send_header(
        {
            **{"producerGroup": "g", "topic": "T", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4"},
            **{"queueId": "0", "sysFlag": "0", "bornTimestamp": "1", "flag": "0", "properties": "p"},
        },
        code=10,
    )
    for header in (send_header(), json.dumps(go).encode(), pretty, null, long):
        assert scanned_by_both(frame(header, b"x"))[1] == 1, header


def test_a_run_ends_before_one_topic_too_many_and_goes_on_from_there() -> None:
    names = [f"topic_{number}" for number in range(column.RUN_TOPICS_MAX + 1)]
    frames = [send_frame(1, b"", b=name) for name in (*names[:-1], *names[:3], names[-1], names[0])]
    stop, count, _, topics, *_ = scanned_by_both(b"".join(frames), 10**6)
    assert count == len(frames) - 2
    assert stop == sum(map(len, frames[:-2]))
    assert topics == [name.encode() for name in names[:-1]]
    assert scanned_by_both(b"".join(frames[-2:]))[1] == 2


def test_a_run_ends_at_its_limit_of_rows_and_goes_on_from_there() -> None:
    data = send_frame(1, b"") * (column.ROWS_MAX + 3)
    stop, count, *_ = scanned_by_both(data, 10**6)
    assert count == column.ROWS_MAX
    assert stop == len(data) // (column.ROWS_MAX + 3) * column.ROWS_MAX


@given(
    st.lists(st.sampled_from([b'"', b"\\", b",", b":", b"[", b"{", b"]", b"x", b"\n", b"\xff"]), max_size=30)
)
@settings(max_examples=300)
def test_both_count_the_same_marks(parts: list[bytes]) -> None:
    header = b"".join(parts)
    compiled, twin = (module.count_marks(memoryview(header)) for module in FRAMES)
    assert compiled == twin


@given(st.dictionaries(st.text(max_size=3), st.text(max_size=3) | st.lists(st.integers(0, 9))))
def test_a_header_has_a_mark_for_each_thing_in_it(fields: dict[str, Any]) -> None:
    """One for each colon, comma and opening bracket that writing it takes."""
    lists = [value for value in fields.values() if isinstance(value, list)]
    commas = max(0, len(fields) - 1) + sum(max(0, len(value) - 1) for value in lists)
    for module in FRAMES:
        assert module.count_marks(json.dumps(fields).encode()) == 1 + len(fields) + commas + len(lists)


@pytest.mark.parametrize("more", [0, 1])
def test_both_scans_leave_a_header_with_too_many_fields_to_the_general_path(more: int) -> None:
    odd = {f"x{number}": "" for number in range(HEADER_FIELDS_MAX - len(send_fields()) + more)}
    assert scanned_by_both(frame(send_header(send_fields(**odd)), b"x"))[1] == 1 - more


@pytest.mark.parametrize("more", [0, 1])
def test_both_scans_leave_a_header_that_is_too_long_to_the_general_path(more: int) -> None:
    header = send_header()
    header += b" " * (HEADER_BYTES_MAX - len(header) + more)
    assert scanned_by_both(frame(header, b"x"))[1] == 1 - more


@given(st.data())
def test_both_write_the_same_answers(data: st.DataObject) -> None:
    """Rows with any numbers, batches with several ids, one-way rows, with and without a unique key."""
    run = SendRun(256)
    run.properties[:] = bytes(range(32, 127)) + bytes(256 - 95)
    count = data.draw(st.integers(0, 5))
    records = 0
    for row in range(count):
        at = row * column.COLUMNS
        ids = data.draw(st.integers(1, 4))
        for number in range(ids):
            run.log_offsets[records + number] = data.draw(st.integers(0, 2**62))
        run.rows[at + column.OPAQUE] = data.draw(st.integers(-(2**31), 2**31 - 1))
        run.rows[at + column.QUEUE_ID] = data.draw(st.integers(0, 2**31 - 1))
        run.rows[at + column.QUEUE_OFFSET] = data.draw(st.integers(0, 2**62))
        run.rows[at + column.RECORDS_AT] = records
        run.rows[at + column.RECORDS_COUNT] = ids
        run.rows[at + column.KIND] = data.draw(
            st.sampled_from([0, 0, column.KIND_ONE_WAY, column.KIND_BATCH])
        )
        run.rows[at + column.UNIQUE_KEY_AT] = data.draw(st.integers(0, 60))
        run.rows[at + column.UNIQUE_KEY_LENGTH] = data.draw(st.sampled_from([0, 1, 32]))
        run.rows[at + column.RECALL_HANDLE_AT] = data.draw(st.integers(0, 60))
        run.rows[at + column.RECALL_HANDLE_LENGTH] = data.draw(st.sampled_from([0, 1, 32]))
        records += ids
    first = data.draw(st.integers(0, count))
    tail = b',"MSG_REGION":"R"},"flag":1,"opaque":'
    compiled, twin = (m.encode_send_answers(run, first, count, b"7F00000100002A9F", tail) for m in FRAMES)
    assert compiled == twin
