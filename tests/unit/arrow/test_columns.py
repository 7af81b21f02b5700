"""Records into columns: every value arrives, both builders agree to the byte, and bad blocks only ever raise."""

import ipaddress
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bolide.arrow import _columns, batches, columns, columns_twin, record_row
from bolide.arrow.batches import make_batch
from bolide.model.errors import BadBody, MalformedRecord, ProtocolError
from bolide.model.message import SysFlag, format_properties
from bolide.pipeline.schema import COLUMNS, arrow_schema, whole_schema
from bolide.record import stored_twin
from bolide.record.codec import encode_record
from bolide.record.compress import pack_body
from bolide.record.decode import decode_messages

NAMES = (*COLUMNS, "key")
EVERYTHING = (-(2**63), 2**63 - 1)
V4 = bytes([10, 0, 0, 7]) + (4711).to_bytes(4, "big")
V6 = ipaddress.ip_address("2001:db8::7").packed + (4711).to_bytes(4, "big")

Builder = Callable[..., columns_twin.ColumnBuilder]
BUILDERS: tuple[Builder, ...] = (_columns.ColumnBuilder, columns_twin.ColumnBuilder)


def record(**changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "topic": b"orders",
        "body": b"hello",
        "properties": format_properties(
            {"TAGS": "paid", "KEYS": "42  43", "UNIQ_KEY": "ABC", "a": "b"}
        ).encode(),
        "queue_id": 3,
        "flag": 9,
        "queue_offset": 5,
        "log_offset": 1024,
        "sys_flag": 0,
        "born_timestamp_ms": 1_700_000_000_000,
        "born_host": V4,
        "store_timestamp_ms": 1_700_000_000_001,
        "store_host": V4,
        "reconsume_times": 2,
        "prepared_offset": 0,
    }
    return encode_record(**(fields | changes))


def rows_of(data: bytes, **options: Any) -> list[dict[str, Any]]:
    """Through the builder in use and Arrow, validated, back to Python."""
    builder = columns.ColumnBuilder("broker-a", NAMES, **options)
    at = 0
    while at < len(data):
        at = builder.append(data, at, *EVERYTHING)
        assert not builder.full
    batch = make_batch(arrow_schema(whole_schema()), builder.rows, builder.take())
    batch.validate(full=True)
    rows: list[dict[str, Any]] = batch.to_pylist()
    return rows


def test_every_field_of_a_record_has_its_column() -> None:
    (row,) = rows_of(record())
    assert (row["topic"], row["brokerName"], row["queueId"], row["queueOffset"]) == (
        "orders",
        "broker-a",
        3,
        5,
    )
    assert (row["body"], row["tags"], row["keys"]) == (b"hello", "paid", ["42", "43"])
    assert dict(row["properties"]) == {"TAGS": "paid", "KEYS": "42  43", "UNIQ_KEY": "ABC", "a": "b"}
    assert (row["msgId"], row["offsetMsgId"]) == ("ABC", "0A000007000012670000000000000400")
    assert row["bornTimestamp"].timestamp() == 1_700_000_000.0
    assert row["storeTimestamp"].timestamp() == 1_700_000_000.001
    assert (row["bornHost"], row["storeHost"]) == ("10.0.0.7:4711", "10.0.0.7:4711")
    assert (row["reconsumeTimes"], row["flag"], row["sysFlag"], row["logOffset"]) == (2, 9, 0, 1024)


def test_the_columns_say_what_the_client_says() -> None:
    data = b"".join(
        record(queue_offset=at, born_host=V6 if at % 2 else V4, store_host=V6 if at % 3 else V4)
        for at in range(20)
    )
    for row, message in zip(rows_of(data), decode_messages(data, "broker-a"), strict=True):
        assert (row["bornHost"], row["storeHost"]) == (message.born_host, message.store_host)
        assert (row["msgId"], row["offsetMsgId"]) == (message.message_id, message.offset_message_id)
        assert (row["tags"], tuple(row["keys"])) == (message.tags, message.keys)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (" 42  43 ", ["42", "43"]),
        ("\u3000=", ["\u3000="]),
        ("42\t43 44\n", ["42\t43", "44\n"]),
        ("   ", []),
    ],
)
def test_keys_are_what_stands_between_blanks_and_no_other_space_divides_them(
    text: str, keys: list[str]
) -> None:
    """RocketMQ: KEY_SEPARATOR; the index of a broker knows the same keys."""
    data = record(properties=format_properties({"KEYS": text}).encode())
    (row,) = rows_of(data)
    (message,) = decode_messages(data, "broker-a")
    (readable, _) = stored_twin.message_at(data, 0, "broker-a")
    assert (row["keys"], message.keys, readable.keys) == (keys, tuple(keys), tuple(keys))


@pytest.mark.parametrize(
    "kind", [SysFlag.COMPRESSION_ZLIB, SysFlag.COMPRESSION_LZ4, SysFlag.COMPRESSION_ZSTD]
)
def test_packed_bodies_are_unpacked(kind: int) -> None:
    body = b"a long body " * 1000
    (row,) = rows_of(record(body=pack_body(body, kind), sys_flag=SysFlag.COMPRESSED | kind))
    assert row["body"] == body


NOT_PACKED = {"body": b"never packed", "sys_flag": int(SysFlag.COMPRESSED)}


def test_a_body_that_does_not_unpack_comes_as_it_is_stored_with_the_reason() -> None:
    bodies = [{}, NOT_PACKED, {}, NOT_PACKED, {}]
    rows = rows_of(b"".join(record(**changes) for changes in bodies))
    assert [row["body"] for row in rows] == [b"hello", b"never packed", b"hello", b"never packed", b"hello"]
    assert [bool(row["bodyError"]) for row in rows] == [False, True, False, True, False]
    assert rows[1]["bodyError"].startswith("the body does not unpack: ")
    assert rows[0]["bodyError"] is None


@pytest.mark.parametrize(
    ("body", "flag", "reason"),
    [
        (b"", SysFlag.COMPRESSED, "cut off"),
        (pack_body(b"x" * 100)[:-5], SysFlag.COMPRESSED, "cut off"),
        (b"x", SysFlag.COMPRESSED | 0x700, "unknown way"),
        (b"x" * 20, SysFlag.COMPRESSED | SysFlag.COMPRESSION_LZ4, "does not unpack"),
        (b"x" * 20, SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZSTD, "does not unpack"),
        (pack_body(bytes(2**26 + 1)), SysFlag.COMPRESSED, "unpacks to more than 67108864 bytes"),
    ],
)
def test_every_way_not_to_unpack_is_one_row_with_its_reason(body: bytes, flag: int, reason: str) -> None:
    first, bad, last = rows_of(record() + record(body=body, sys_flag=int(flag)) + record())
    assert (first["bodyError"], bad["body"], last["bodyError"]) == (None, body, None)
    assert reason in bad["bodyError"]


@pytest.mark.parametrize("make", BUILDERS)
@pytest.mark.parametrize("names", [("queueOffset",), ("queueOffset", "body"), NAMES])
def test_bad_bodies_are_left_out_and_counted_or_an_error_as_the_user_chose(
    make: Builder, names: tuple[str, ...]
) -> None:
    """Whichever columns are wanted: the number of rows must not depend on them."""
    data = b"".join(record(queue_offset=at, **(NOT_PACKED if at in (3, 4, 8) else {})) for at in range(10))
    builder = make("b", names, bad_bodies="skip", rows_max=5)
    at = builder.append(data, 0, *EVERYTHING)
    assert (builder.rows, builder.skipped) == (5, 2)
    builder.take()
    assert builder.append(data, at, *EVERYTHING) == len(data)
    assert (builder.rows, builder.skipped) == (2, 3)
    with pytest.raises(BadBody, match="the message at offset 3: the body does not unpack"):
        make("b", names, bad_bodies="fail").append(data, 0, *EVERYTHING)
    with pytest.raises(ValueError, match="deliver, skip, fail, not 'lose'"):
        make("b", names, bad_bodies="lose")


@pytest.mark.parametrize("make", BUILDERS)
def test_bodies_that_are_not_wanted_are_not_unpacked(make: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> bytes:
        raise AssertionError("unpacked")

    for module in (_columns, columns_twin):
        monkeypatch.setattr(module, "unpack_body", never)
    builder = make("b", ["queueOffset"])
    builder.append(record(**NOT_PACKED), 0, *EVERYTHING)
    assert builder.rows == 1


@pytest.mark.parametrize("make", BUILDERS)
def test_small_messages_that_unpack_to_large_ones_are_spread_over_batches(make: Builder) -> None:
    """What a batch takes is counted unpacked: 20 bombs of 10 kB are not one batch of 200 kB."""
    bomb = record(body=pack_body(bytes(10_000)), sys_flag=int(SysFlag.COMPRESSED))
    builder = make("b", ["body"], size_bytes_max=15_000)
    data, at, batches = bomb * 20, 0, 0
    while at < len(data):
        at = builder.append(data, at, *EVERYTHING)
        assert builder.size_bytes <= 15_000 + 10_000 + len(bomb)
        builder.take()
        batches += 1
    assert batches == 10


CUT_OFF = {
    "body": pack_body(bytes(100_000))[:-5],
    "sys_flag": int(SysFlag.COMPRESSED),
}


@pytest.mark.parametrize("make", BUILDERS)
@pytest.mark.parametrize("bad_bodies", ["deliver", "skip"])
def test_what_is_unpacked_in_vain_ends_a_turn_and_loses_no_record(make: Builder, bad_bodies: str) -> None:
    """Such work leaves nothing behind that could fill a batch, and must not hold up whoever waits for the next turn."""
    data = b"".join(record(queue_offset=at, **(CUT_OFF if at < 10 else {})) for at in range(12))
    builder = make("b", ["queueOffset", "bodyError"], bad_bodies=bad_bodies, size_bytes_max=150_000)
    at, places = 0, []
    while at < len(data):
        before = builder.in_vain_bytes
        at = builder.append(data, at, *EVERYTHING)
        assert builder.in_vain_bytes - before < 3 * 150_000
        assert not builder.full
        places.append((builder.rows, builder.skipped))
    assert len(places) > 5
    assert places == sorted(set(places))
    assert (builder.rows, builder.skipped) == ((12, 0) if bad_bodies == "deliver" else (2, 10))


@pytest.mark.parametrize("make", BUILDERS)
def test_what_is_unpacked_for_a_column_that_nobody_wants_ends_a_turn_too(make: Builder) -> None:
    bomb = record(body=pack_body(bytes(10_000)), sys_flag=int(SysFlag.COMPRESSED))
    builder = make("b", ["queueOffset"], bad_bodies="skip", size_bytes_max=15_000)
    assert builder.append(bomb * 20, 0, *EVERYTHING) == 2 * len(bomb)
    assert (builder.rows, builder.full, builder.in_vain_bytes) == (2, False, 20_000)
    assert builder.append(bomb * 20, 2 * len(bomb), *EVERYTHING) == 4 * len(bomb)
    assert builder.rows == 4


@pytest.mark.parametrize("make", BUILDERS)
def test_what_came_before_a_broken_record_is_kept(make: Builder) -> None:
    good = record()
    builder = make("broker-a", NAMES)
    with pytest.raises(MalformedRecord):
        builder.append(good + good + b"\xff" * 200, 0, *EVERYTHING)
    batch = make_batch(arrow_schema(whole_schema()), builder.rows, builder.take())
    batch.validate(full=True)
    assert batch.to_pylist() == rows_of(good * 2)


def test_a_message_without_properties_has_no_tag_no_keys_and_its_place_as_id() -> None:
    first, second = rows_of(record(properties=b"") + record())
    assert (first["tags"], first["keys"], first["properties"]) == (None, [], [])
    assert first["msgId"] == first["offsetMsgId"]
    assert second["tags"] == "paid"


def test_of_a_repeated_property_the_last_value_counts() -> None:
    (row,) = rows_of(record(properties=b"a\x011\x02TAGS\x01x\x02a\x012\x02TAGS\x01y\x02"))
    assert (row["tags"], row["properties"]) == ("y", [("a", "2"), ("TAGS", "y")])


def test_text_that_is_not_utf8_is_repaired() -> None:
    (row,) = rows_of(record(topic=b"t\xff", properties=b"TAGS\x01\xd6\xd0\x02"))
    assert (row["topic"], row["tags"]) == ("t\ufffd", "\ufffd\ufffd")


def test_a_time_beyond_microseconds_is_null() -> None:
    (row,) = rows_of(record(born_timestamp_ms=2**63 - 1, store_timestamp_ms=-(2**63)))
    assert (row["bornTimestamp"], row["storeTimestamp"]) == (None, None)


def test_only_messages_with_a_wanted_tag_are_kept() -> None:
    data = b"".join(
        record(properties=format_properties({"TAGS": tag}).encode()) for tag in ("a", "b", "ab", "")
    )
    assert [row["tags"] for row in rows_of(data, tags=["b", "ab"])] == ["b", "ab"]


@pytest.mark.parametrize("make", BUILDERS)
def test_records_outside_of_the_range_are_left_out(make: Builder) -> None:
    data = b"".join(record(queue_offset=at) for at in range(10))
    builder = make("b", ["queueOffset"])
    builder.append(data, 0, 3, 7)
    (values,) = (buffers[1] for buffers in builder.take().values())
    assert values is not None
    assert list(values.cast("q")) == [3, 4, 5, 6]


@pytest.mark.parametrize("make", BUILDERS)
def test_a_full_batch_stops_and_the_next_goes_on_there(make: Builder) -> None:
    one = record()
    builder = make("broker-a", NAMES, rows_max=3)
    assert builder.append(one * 5, 0, *EVERYTHING) == 3 * len(one)
    assert (builder.full, builder.rows) == (True, 3)
    first = make_batch(arrow_schema(whole_schema()), builder.rows, builder.take())
    assert builder.append(one * 5, 3 * len(one), *EVERYTHING) == 5 * len(one)
    second = make_batch(arrow_schema(whole_schema()), builder.rows, builder.take())
    assert (first.num_rows, second.num_rows, builder.rows) == (3, 2, 0)
    assert pa.Table.from_batches([first, second]).to_pylist() == rows_of(one * 5)


@pytest.mark.parametrize("make", BUILDERS)
def test_the_size_of_a_batch_is_bounded_by_bytes_too(make: Builder) -> None:
    builder = make("b", NAMES, size_bytes_max=1000)
    builder.append(record(body=bytes(600)) * 5, 0, *EVERYTHING)
    assert builder.rows == 2


@pytest.mark.parametrize("make", BUILDERS)
def test_an_impossible_builder_is_refused(make: Builder) -> None:
    for wrong in ({"rows_max": 0}, {"rows_max": 2**21}, {"size_bytes_max": 2**31}):
        with pytest.raises(ValueError, match="out of range"):
            make("b", NAMES, **wrong)
    with pytest.raises(ValueError, match="no such column: colour"):
        make("b", ["colour"])
    with pytest.raises(ValueError, match="too long"):
        make("b" * 2000, NAMES)


# ---- both builders, the same bytes ------------------------------------------------------------------------------


def outcome_of(make: Builder, data: bytes, names: tuple[str, ...] = NAMES, **options: Any) -> object:
    """Everything that can be seen of a builder, batch by batch, or its error."""
    batches = []
    try:
        builder = make("broker-ä", names, **options)
        at = 0
        while at < len(data):
            at = builder.append(data, at, 0, 1000)
            seen = (
                at,
                builder.rows,
                builder.size_bytes,
                builder.full,
                builder.skipped,
                builder.in_vain_bytes,
            )
            taken = {
                name: [None if one is None else one.tobytes() for one in buffers]
                for name, buffers in builder.take().items()
            }
            batches.append((seen, taken))
    except MalformedRecord as error:
        return batches, str(error)
    return batches, None


pieces = st.sampled_from([b"\x01", b"\x02", b"TAGS", b"KEYS", b"UNIQ_KEY", b" ", b"a", b"\xc3\xa4", b"\xff"])
properties = st.one_of(
    st.lists(pieces, max_size=30).map(b"".join),
    st.binary(max_size=60),
    st.text("aä日😀 \x01\x02", max_size=20).map(str.encode),
    st.integers(60, 200).map(lambda n: b"".join(b"k%d\x01v\x02" % (at % 90) for at in range(n))),
)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
edge = record_row.TIME_MS_MAX
times = st.one_of(int64, st.sampled_from([edge, edge + 1, -edge, -edge - 1]))
hosts = st.one_of(st.binary(min_size=8, max_size=8), st.binary(min_size=20, max_size=20), st.just(V4))
plain_flags = st.integers(0, 2**31 - 1).map(lambda flag: flag & ~SysFlag.COMPRESSED)
bodies = st.one_of(
    st.tuples(st.binary(max_size=40), plain_flags),
    st.tuples(st.binary(max_size=40), int32),
    st.sampled_from([SysFlag.COMPRESSION_ZLIB, SysFlag.COMPRESSION_LZ4, SysFlag.COMPRESSION_ZSTD]).flatmap(
        lambda kind: st.binary(max_size=40).map(
            lambda body: (pack_body(body, kind), int(SysFlag.COMPRESSED | kind))
        )
    ),
)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    body, sys_flag = draw(bodies)
    return record(
        topic=draw(st.one_of(st.binary(max_size=300), st.just(b"orders"))),
        body=body,
        sys_flag=sys_flag,
        properties=draw(properties),
        queue_id=draw(int32),
        flag=draw(int32),
        queue_offset=draw(st.one_of(st.integers(0, 999), int64)),
        log_offset=draw(int64),
        born_timestamp_ms=draw(times),
        born_host=draw(hosts),
        store_timestamp_ms=draw(times),
        store_host=draw(hosts),
        reconsume_times=draw(int32),
    )


# Records have many parts to draw, and machines are shared.
patient = settings(suppress_health_check=[HealthCheck.too_slow])

limits = st.fixed_dictionaries(
    {"rows_max": st.sampled_from([1, 3, 8, 1000]), "size_bytes_max": st.sampled_from([100, 1000, 10**6])}
)
tag_choices = st.sampled_from([(), ("a",), ("a", "TAGS"), ("\ufffd",)])
bad_body_choices = st.sampled_from(columns_twin.BAD_BODIES)


@patient
@given(st.lists(records(), max_size=10).map(b"".join), limits, tag_choices, tag_choices, bad_body_choices)
def test_both_builders_give_the_same_bytes(
    data: bytes, limit: dict[str, int], tags: tuple[str, ...], keys: tuple[str, ...], bad_bodies: str
) -> None:
    compiled, readable = (
        outcome_of(make, data, NAMES, tags=tags, keys=keys, bad_bodies=bad_bodies, **limit)
        for make in BUILDERS
    )
    assert compiled == readable


@patient
@given(records(), st.lists(st.sampled_from(NAMES), unique=True).map(tuple), bad_body_choices)
def test_both_builders_give_the_same_bytes_for_any_choice_of_columns(
    data: bytes, names: tuple[str, ...], bad_bodies: str
) -> None:
    compiled, readable = (outcome_of(make, data, names, bad_bodies=bad_bodies) for make in BUILDERS)
    assert compiled == readable


@settings(patient, max_examples=300)
@given(st.lists(records(), min_size=1, max_size=3).map(b"".join), st.data())
def test_broken_blocks_raise_the_same_error_in_both(data: bytes, choose: st.DataObject) -> None:
    """Goal: no bytes crash the compiled builder.  Method: change some, cut some, compare with the twin."""
    broken = bytearray(data)
    for _ in range(choose.draw(st.integers(1, 4))):
        at = choose.draw(st.integers(0, len(broken) - 1))
        broken[at] = choose.draw(st.integers(0, 255))
    cut = bytes(broken[: choose.draw(st.integers(0, len(broken)))])
    assert outcome_of(BUILDERS[0], cut) == outcome_of(BUILDERS[1], cut)


@given(st.binary(max_size=400))
@example(b"\xff" * 200)
@example(b"\x00" * 91)
def test_any_bytes_raise_the_same_error_in_both(data: bytes) -> None:
    assert outcome_of(BUILDERS[0], data) == outcome_of(BUILDERS[1], data)


def test_every_length_field_is_checked() -> None:
    """Each of the four lengths set too high: an error that names it, never a byte from behind the record."""
    good = record()
    body_at, topic_at = 84, 88 + 5
    properties_at = topic_at + 1 + 6
    for position, width, message in (
        (0, 4, "says it has"),
        (body_at, 4, "a body of"),
        (topic_at, 1, "its topic does not fit"),
        (properties_at, 2, "its properties do not end"),
    ):
        bad = good[:position] + b"\xff" * width + good[position + width :]
        for make in BUILDERS:
            with pytest.raises(MalformedRecord, match=message):
                make("b", NAMES).append(bad, 0, *EVERYTHING)


@pytest.mark.parametrize("builder_class", BUILDERS)
def test_a_builder_turns_from_queue_to_queue_within_a_batch(builder_class: Builder) -> None:
    builder = builder_class("", ["brokerName", "queueId", "queueOffset"])
    assert builder.offset_due == 0
    for broker, queue_id, first in (("a", 3, 5), ("b", 4, 0), ("a", 3, 2)):
        builder.turn_to(broker, ("orders", queue_id))
        assert builder.offset_due == 0
        for offset in (first, first + 1):
            block = record(queue_id=queue_id, queue_offset=offset)
            assert builder.append(block, 0, *EVERYTHING) == len(block)
        assert builder.offset_due == first + 2
    builder.turn_to("a", ("orders", 3), ["other"])
    other = record(queue_offset=9)
    assert (builder.append(other, 0, *EVERYTHING), builder.offset_due) == (len(other), 10)
    with pytest.raises(ProtocolError, match="from offset 10 on"):
        builder.append(other, 0, *EVERYTHING)
    with pytest.raises(ValueError, match="broker name is too long"):
        builder.turn_to("b" * 1025, ("orders", 3))
    rows = builder.rows
    batch = make_batch(batches.schema_of(["brokerName", "queueId", "queueOffset"]), rows, builder.take())
    found = [tuple(row.values()) for row in batch.to_pylist()]
    assert found == [("a", 3, 5), ("a", 3, 6), ("b", 4, 0), ("b", 4, 1), ("a", 3, 2), ("a", 3, 3)]
