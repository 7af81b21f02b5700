"""FrameReader: cutting a byte stream into frames, with limits before memory."""

import json
import tracemalloc
from typing import Any

import pytest

from bolide.model.errors import ProtocolError
from bolide.model.limits import FRAME_BYTES_MAX, HEADER_BYTES_MAX, INTAKE_BYTES
from bolide.model.send_rows import OPAQUE, RUN_TOPICS_MAX
from bolide.wire import frame as frame_module
from bolide.wire import frame_twin
from bolide.wire.command import COMPACT, Command, encode_frame
from bolide.wire.frame import FrameReader, Intake, decode_frame, scan_frame
from bolide.wire.send_run import SendRun
from tests.unit.wire.stage import frame, read_in_pieces, send_fields, send_frame

PULL = encode_frame(Command(11, {"topic": "T"}, opaque=1))
STREAM = b"".join(
    (
        PULL,
        send_frame(1),
        send_frame(2, b"x" * 700),
        encode_frame(Command(34, {}, b"b" * 300, opaque=3, form=COMPACT)),
        send_frame(4, b"y" * 40, e=5),  # not plain: a number where Java writes text
        send_frame(5),
        frame(b'{"code":0,"opaque":9,"flag":1}'),
        send_frame(6, b"z" * 3000),
        send_frame(7),
        PULL,
    )
)


def bodies(items: list[Any]) -> list[tuple[int, int, bytes]]:
    return [(item.code, item.opaque, item.body) for item in items]


@pytest.mark.parametrize("hot", [False, True])
@pytest.mark.parametrize("intake_bytes", [1024, 100_000])
@pytest.mark.parametrize("pieces", [1, 3, 7, 8, 9, 100, 1023, 10**6])
def test_any_way_of_cutting_the_stream_gives_the_same_items(
    pieces: int, intake_bytes: int, hot: bool
) -> None:
    whole = read_in_pieces(STREAM, 10**6, hot=False, intake_bytes=100_000)
    assert [item.opaque for item in whole] == [1, 1, 2, 3, 4, 5, 9, 6, 7, 1]
    assert read_in_pieces(STREAM, pieces, hot=hot, intake_bytes=intake_bytes) == whole


def test_consecutive_plain_sends_come_as_one_run() -> None:
    reader = FrameReader(Intake(4096), hot=True)
    data = send_frame(1) + send_frame(2) + PULL + send_frame(3)
    reader.writable()[: len(data)] = data
    reader.received(len(data))
    first = reader.next()
    assert isinstance(first, SendRun)
    assert first.count == 2
    command = reader.next()
    assert isinstance(command, Command)
    assert command.code == 11
    last = reader.next()
    assert isinstance(last, SendRun)
    assert last.count == 1
    assert reader.next() is None


def test_a_plain_send_larger_than_the_intake_is_followed_by_the_next_frame() -> None:
    """The memory of a large frame is given back whichever way the frame was taken."""
    stream = send_frame(1, b"x" * 5000) + send_frame(2) + PULL
    items = read_in_pieces(stream, 10**6, hot=True, intake_bytes=1024)
    assert [item.opaque for item in items] == [1, 2, 1]


def test_a_reader_between_frames_holds_nothing() -> None:
    reader = FrameReader(Intake(1024), hot=True)
    for data in (send_frame(1, b"x" * 5000), PULL):
        while data:
            target = reader.writable()
            count = min(len(target), len(data))
            target[:count] = data[:count]
            data = data[count:]
            reader.received(count)
            while reader.next() is not None:
                pass
            assert bool(reader._rest or reader._whole) == bool(data)
        assert reader._area is reader._intake.buffer  # nor does it know the memory of the last one


def test_two_readers_share_an_intake_without_mixing_their_bytes() -> None:
    intake = Intake(4096)
    readers = [FrameReader(intake) for _ in range(3)]
    frames = [encode_frame(Command(11, {"n": str(n)}, bytes([n]) * 200, opaque=n)) for n in range(3)]
    got: list[Any] = [[], [], []]
    for at in range(0, max(map(len, frames)), 11):
        for reader, data, items in zip(readers, frames, got, strict=True):
            items += reader.feed(data[at : at + 11])
    for number, items in enumerate(got):
        assert [item.body for item in items] == [bytes([number]) * 200]


@pytest.mark.parametrize(
    "start",
    [
        b"\x01\x00\x00\x01\x00\x00\x00\x02{}",
        b"\xff\xff\xff\xff\x00\x00\x00\x02{}",
        b"\x80\x00\x00\x00\x00\x00\x00\x02{}",
        b"\x00\x00\x00\x03\x00\x00\x00\x00",
        b"\x00\x00\x00\x00\x00\x00\x00\x00",
        b"\x00\x00\x00\x06\x00\x00\x00\x03{}",
        b"\x00\x00\x00\x06\x00\xff\xff\xff{}",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03",
        b"GET / HTTP/1.1\r\n",
        b"\x00\x00\x00\x06\x00\x00\x00\x02[]",
        b"\x00\x00\x00\x06\x07\x00\x00\x02{}",
    ],
    ids=[
        *("too long", "all ones", "negative", "shorter than the mark", "zeros", "header longer than frame"),
        *("header much longer", "TLS", "HTTP", "not an object", "unknown form"),
    ],
)
@pytest.mark.parametrize("hot", [False, True])
def test_bytes_that_are_no_frame_are_a_protocol_error(start: bytes, hot: bool) -> None:
    with pytest.raises(ProtocolError):
        read_in_pieces(start, 1000, hot=hot, intake_bytes=4096)


def test_a_frame_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not() -> None:
    header = b'{"code":1}'
    for extra, fits in ((0, True), (1, False)):
        data = frame(header, b"x" * (1000 - 4 - len(header) + extra))
        reader = FrameReader(Intake(256), size_bytes_max=1000)
        if fits:
            assert bodies(reader.feed(data)) == [(1, 0, b"x" * 986)]
        else:
            with pytest.raises(ProtocolError, match="1001 bytes; 1000 are allowed"):
                reader.feed(data)


@pytest.mark.parametrize("hot", [False, True])
@pytest.mark.parametrize("form", [0, COMPACT])
def test_a_header_over_the_limit_is_refused_when_its_length_has_come(form: int, hot: bool) -> None:
    """Not when it has come itself."""
    for length, fits in ((HEADER_BYTES_MAX, True), (HEADER_BYTES_MAX + 1, False)):
        start = (4 + length).to_bytes(4, "big") + (form << 24 | length).to_bytes(4, "big") + b"{"
        if fits:
            assert read_in_pieces(start, 1000, hot=hot, intake_bytes=4096) == []
        else:
            with pytest.raises(ProtocolError, match="262145 bytes; 262144 are allowed"):
                read_in_pieces(start, 1000, hot=hot, intake_bytes=4096)


def test_an_answer_may_have_a_larger_header_where_that_is_wanted() -> None:
    """Of a batch of many messages it has all their ids."""
    answer = encode_frame(Command(0, {"msgId": "x" * HEADER_BYTES_MAX}, flag=1))
    (item,) = FrameReader(Intake(), header_bytes_max=FRAME_BYTES_MAX).feed(answer)
    assert len(item.fields["msgId"]) == HEADER_BYTES_MAX


@pytest.mark.parametrize(
    "members",
    [
        b",".join(b'"":0' for _ in range(10_000)),
        b'"extFields":{' + b",".join(b'"":""' for _ in range(10_000)) + b"}",
        b'"x":[' + b",".join(b"[]" for _ in range(10_000)) + b"]",
        b'"x":' + b"[" * 1000 + b"]" * 1000,
        b'"x":' + b'{"":' * 1000 + b"0" + b"}" * 1000,
    ],
    ids=["members", "fields", "lists", "nested lists", "nested objects"],
)
@pytest.mark.parametrize("code", [34, 310, 11])
def test_a_header_full_of_small_things_is_refused_before_any_is_made(
    members: bytes, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode(*args: Any) -> Command:
        raise AssertionError("something was made")

    monkeypatch.setattr("bolide.wire.frame.decode_command", decode)
    header = b'{"code":%d,"flag":0,"opaque":1,%s}' % (code, members)
    with pytest.raises(ProtocolError, match="more than 128 fields"):
        read_in_pieces(frame(header), 10**6, hot=True, intake_bytes=100_000)


def test_punctuation_in_texts_is_no_field() -> None:
    text = 'a,b:c[d{e"f\\g' * 1000
    (item,) = FrameReader(Intake()).feed(encode_frame(Command(34, {"x": text})))
    assert item.fields == {"x": text}


def test_the_largest_legal_send_fits_however_it_is_escaped() -> None:
    """32,767 bytes of properties, all of which have to be written as six."""
    fields = send_fields(i="\x03" * 32_767, a="\x03" * 255, c="\x03" * 255)
    header = json.dumps({"code": 310, "flag": 0, "opaque": 1, "extFields": fields}).encode()
    assert len(header) > 6 * 32_767
    (item,) = read_in_pieces(frame(header, b"x"), 10**6, hot=True, intake_bytes=256 * 1024)
    assert item.fields["i"] == fields["i"]


def test_what_a_reader_keeps_is_counted() -> None:
    intake = Intake(1024)
    reader = FrameReader(intake)
    small, large = frame(b'{"code":1}', b"x" * 500), frame(b'{"code":1}', b"x" * 30_000)
    assert reader.feed(small[:300]) == []
    assert (reader.kept, reader.large_bytes) == (300, 0)
    assert len(reader.feed(small[300:])) == 1
    assert (reader.kept, reader.large_bytes) == (0, 0)
    assert reader.feed(large[:9]) == []
    assert (reader.kept, reader.large_bytes) == (9, len(large))
    for at in range(9, 25_000, 100):
        assert len(reader.writable()) <= 1024  # no more with one read than of small frames
        assert reader.feed(large[at : at + 100]) == []
    assert len(reader.feed(large[at + 100 :])) == 1
    assert (reader.kept, reader.large_bytes) == (0, 0)


def test_an_announced_length_costs_no_memory_until_the_bytes_come() -> None:
    """A few bytes that promise 16 MiB must not make the server pay for them."""
    start = FRAME_BYTES_MAX.to_bytes(4, "big") + b"\x00\x00\x00\x02{}"
    intake = Intake()
    tracemalloc.start()
    try:
        readers = [FrameReader(intake) for _ in range(20)]
        for reader in readers:
            assert reader.feed(start) == []
            reader.writable()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 20 * 1024 * 1024  # at most a few intakes each


def test_while_a_large_frame_comes_little_of_it_is_copied_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(size: int) -> bytearray:
        made.append(size)
        return frame_twin.blank(size)

    monkeypatch.setattr(frame_module, "blank", counted)
    assert len(FrameReader(Intake()).feed(frame(b'{"code":1}', bytes(FRAME_BYTES_MAX - 14)))) == 1
    assert made == [5 * INTAKE_BYTES, 21 * INTAKE_BYTES, 4 + FRAME_BYTES_MAX]


def test_of_a_large_send_that_is_not_plain_only_the_body_is_copied() -> None:
    body = bytes(4_000_000)
    whole = send_frame(1, body, m="true")
    run = scan_frame(whole, b"")
    assert run.count == 1
    tracemalloc.start()
    try:
        command = decode_frame(run.frame(0))
        assert tracemalloc.get_traced_memory()[1] < 1.2 * len(body)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        assert scan_frame(whole[: -len(body)], command.body).count == 1
        assert tracemalloc.get_traced_memory()[1] - before < 1.2 * len(body)
    finally:
        tracemalloc.stop()


def test_the_largest_frame_arrives_whole() -> None:
    body = bytes(FRAME_BYTES_MAX - 4 - 10)
    items = FrameReader(Intake()).feed(frame(b'{"code":1}', body))
    assert bodies(items) == [(1, 0, body)]


def test_a_whole_frame_decodes_alone() -> None:
    assert decode_frame(PULL).fields == {"topic": "T"}


@pytest.mark.parametrize("data", [b"", PULL[:-1], PULL[:5], PULL + b"\x00"])
def test_what_is_not_exactly_one_frame_does_not_decode(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_frame(data)


def test_rows_that_are_given_back_come_again_with_what_follows_them() -> None:
    reader = FrameReader(Intake(4096), hot=True)
    data = b"".join(send_frame(number) for number in range(5)) + PULL + send_frame(9)[:20]
    reader.writable()[: len(data)] = data
    reader.received(len(data))
    run = reader.next()
    assert isinstance(run, SendRun)
    assert run.count == 5
    reader.give_back(run, 2)
    reader.set_aside()
    reader.writable()[:20] = send_frame(9)[20:40]  # of the frame that was cut
    reader.received(20)
    again = reader.next()
    assert isinstance(again, SendRun)
    assert [decode_frame(again.frame(row)).opaque for row in range(again.count)] == [2, 3, 4]
    command = reader.next()
    assert isinstance(command, Command)
    assert command.code == 11
    assert reader.next() is None
    assert reader._rest


def test_rows_of_many_topics_that_are_given_back_are_not_all_scanned_again_each_time() -> None:
    """As those of topics that do not exist: a few of them are served before the others come again."""
    count, served_at_once = 1000, 8
    data = b"".join(send_frame(number, b"", b=f"topic_{number}") for number in range(count))
    reader = FrameReader(Intake(len(data)), hot=True)
    reader.writable()[:] = data
    reader.received(len(data))
    served = scanned = 0
    while (run := reader.next()) is not None:
        assert isinstance(run, SendRun)
        assert run.column(0, OPAQUE) == served
        scanned += run.count
        served += min(run.count, served_at_once)
        if run.count > served_at_once:
            reader.give_back(run, served_at_once)
    assert served == count
    assert scanned <= RUN_TOPICS_MAX * count / served_at_once
