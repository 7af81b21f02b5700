"""Records to messages: every form that brokers send, and an error for everything else."""

import io
import ipaddress
import sys
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from bolide.model.errors import MalformedRecord
from bolide.model.limit import MIB
from bolide.model.limits import PULL_COST_BYTES_MAX
from bolide.model.message import SysFlag, format_properties
from bolide.record import decode, stored_twin
from bolide.record.codec import encode_record
from bolide.record.compress import pack_body, unpack_body
from bolide.record.decode import decode_messages, decode_some, each_message
from tests.property.twins import STORED

V4 = bytes([10, 0, 0, 7]) + (4711).to_bytes(4, "big")
V6 = ipaddress.ip_address("2001:db8::7").packed + (4711).to_bytes(4, "big")


def record(
    body: bytes = b"hello",
    topic: str = "orders",
    properties: dict[str, str] | None = None,
    sys_flag: int = 0,
    born_host: bytes = V4,
    store_host: bytes = V4,
    queue_offset: int = 5,
) -> bytes:
    return encode_record(
        topic=topic.encode(),
        body=body,
        properties=format_properties(properties or {}).encode(),
        queue_id=3,
        flag=9,
        queue_offset=queue_offset,
        log_offset=1024,
        sys_flag=sys_flag,
        born_timestamp_ms=1_700_000_000_000,
        born_host=born_host,
        store_timestamp_ms=1_700_000_000_001,
        store_host=store_host,
        reconsume_times=2,
        prepared_offset=0,
    )


def test_every_field_of_a_record_reaches_the_message() -> None:
    data = record(properties={"TAGS": "paid", "KEYS": "42 43", "UNIQ_KEY": "ABC", "colour": "blue"})
    (message,) = decode_messages(data, "broker-a")
    assert (message.topic, message.body, message.broker_name) == ("orders", b"hello", "broker-a")
    assert (message.queue_id, message.queue_offset, message.log_offset) == (3, 5, 1024)
    assert (message.flag, message.reconsume_times) == (9, 2)
    assert (message.born_timestamp_ms, message.store_timestamp_ms) == (1_700_000_000_000, 1_700_000_000_001)
    assert (message.born_host, message.store_host) == ("10.0.0.7:4711", "10.0.0.7:4711")
    assert (message.tags, message.keys) == ("paid", ("42", "43"))
    assert message.properties["colour"] == "blue"
    assert (message.message_id, message.offset_message_id) == ("ABC", "0A000007000012670000000000000400")


def test_without_a_unique_key_the_offset_id_is_the_message_id() -> None:
    (message,) = decode_messages(record(), "b")
    assert message.message_id == message.offset_message_id == "0A000007000012670000000000000400"


@pytest.mark.parametrize(("born", "store"), [(V4, V6), (V6, V4), (V6, V6)])
def test_ipv6_hosts_are_read(born: bytes, store: bytes) -> None:
    """ST-12."""
    texts = {V4: "10.0.0.7:4711", V6: "[2001:db8::7]:4711"}
    (message,) = decode_messages(record(born_host=born, store_host=store), "b")
    assert (message.born_host, message.store_host) == (texts[born], texts[store])
    assert message.body == b"hello"


def test_a_long_topic_is_read_from_the_second_version() -> None:
    topic = "%RETRY%" + "g" * 200
    (message,) = decode_messages(record(topic=topic), "b")
    assert message.topic == topic


@pytest.mark.parametrize(
    "kind", [0, SysFlag.COMPRESSION_ZLIB, SysFlag.COMPRESSION_LZ4, SysFlag.COMPRESSION_ZSTD]
)
def test_packed_bodies_are_unpacked(kind: int) -> None:
    packed = pack_body(b"much to say" * 500, kind or SysFlag.COMPRESSION_ZLIB)
    (message,) = decode_messages(record(packed, sys_flag=SysFlag.COMPRESSED | kind), "b")
    assert message.body == b"much to say" * 500


def test_records_follow_each_other_and_may_come_as_a_view() -> None:
    data = b"".join(record(body=b"%d" % n, queue_offset=n) for n in range(4))
    messages = decode_messages(memoryview(data), "b")
    assert [(message.queue_offset, message.body) for message in messages] == [
        (n, b"%d" % n) for n in range(4)
    ]
    assert decode_messages(b"", "b") == []


def test_a_body_that_does_not_unpack_comes_as_it_is_stored_and_says_so() -> None:
    bad = record(b"not zlib", sys_flag=SysFlag.COMPRESSED, queue_offset=5)
    before, message, behind = decode_messages(record(b"a") + bad + record(b"b"), "b")
    assert (message.body, message.queue_offset) == (b"not zlib", 5)
    assert "does not unpack" in str(message.body_error)
    assert (before.body_error, behind.body_error) == (None, None)


def test_messages_that_unpack_to_too_much_together_stay_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "BODY_UNPACKED_BYTES_MAX", 1_000_000)
    packed = pack_body(bytes(400_000))
    messages = decode_messages(record(packed, sys_flag=SysFlag.COMPRESSED) * 4, "b")
    assert [len(message.body) for message in messages] == [400_000, 400_000, len(packed), len(packed)]
    assert [message.body_error is None for message in messages] == [True, True, False, False]


def test_an_answer_is_decoded_as_far_as_it_may_take_memory_and_tells_where_it_stopped() -> None:
    packed = pack_body(bytes(1024 * 1024))
    bombs = [record(packed, sys_flag=SysFlag.COMPRESSED, queue_offset=n) for n in range(1000)]
    decoded = decode_some(b"".join(bombs), "b")
    assert len(b"".join(bombs)) < 2 * 1024 * 1024
    assert sum(message.cost_bytes for message in decoded.messages) <= PULL_COST_BYTES_MAX
    assert decoded.next_offset == len(decoded.messages) == 15


@pytest.mark.parametrize("module", STORED, ids=["compiled", "twin"])
def test_bodies_that_unpack_to_too_much_end_an_answer_as_large_ones_do(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a few hundred kilobytes of them would be minutes of work, with nothing to show for it."""
    tried: list[int] = []

    def unpack(body: bytes, sys_flag: int, size_bytes_max: int) -> bytes:
        tried.append(len(body))
        raise MalformedRecord("the body unpacks to more than it may")

    monkeypatch.setattr(stored_twin, "unpack_body", unpack)
    stream = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(stream, closefd=False) as writer:
        writer.write(bytes(64 * MIB + 1))
    bomb = record(stream.getvalue(), sys_flag=SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZSTD)
    messages, end_at, cost_bytes = module.messages_in(bomb * 200, "b", PULL_COST_BYTES_MAX)
    assert (len(messages), end_at, len(tried)) == (1, len(bomb), 1)
    assert cost_bytes > PULL_COST_BYTES_MAX > messages[0].cost_bytes
    tried.clear()
    assert len(decode_messages(bomb * 20, "b")) == 20


def test_what_was_unpacked_in_vain_counts_when_all_messages_are_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[int] = []
    real = unpack_body

    def unpack(body: bytes, sys_flag: int, size_bytes_max: int) -> bytes:
        limits.append(size_bytes_max)
        return real(body, sys_flag, size_bytes_max)

    monkeypatch.setattr(stored_twin, "unpack_body", unpack)
    monkeypatch.setattr(decode, "BODY_UNPACKED_BYTES_MAX", 1_000_000)
    bomb = record(pack_body(bytes(1_000_001)), sys_flag=SysFlag.COMPRESSED)
    assert all(message.body_error for message in decode_messages(bomb * 10, "b"))
    assert limits == [1_000_000, *[0] * 9]


@pytest.mark.parametrize("module", STORED, ids=["compiled", "twin"])
def test_a_message_that_is_kept_does_not_keep_the_answer_that_it_came_with(module: Any) -> None:
    small = b"".join(record(b"x" * 100, queue_offset=n) for n in range(1000))
    large = record(bytes(100_000), queue_offset=1000)
    data = small + large + small
    before = sys.getrefcount(data)
    messages, end_at, _ = module.messages_in(data, "b", 1 << 40)
    kept = [message for message in messages if len(message.body) == 100]
    assert (end_at, len(kept)) == (len(data), 2000)
    del messages
    assert sys.getrefcount(data) == before
    assert [message.queue_offset for message in kept] == [*range(1000), *range(1000)]
    assert {(message.body, message.topic, message.born_host) for message in kept} == {
        (b"x" * 100, "orders", "10.0.0.7:4711")
    }
    one, _ = module.message_at(data, 0, "b")
    assert (one.body, sys.getrefcount(data)) == (b"x" * 100, before)


def test_one_message_is_decoded_however_large_it_is() -> None:
    large = pack_body(bytes(PULL_COST_BYTES_MAX + 1))
    data = record(large, sys_flag=SysFlag.COMPRESSED, queue_offset=7) + record(queue_offset=8)
    decoded = decode_some(data, "b")
    assert ([message.queue_offset for message in decoded.messages], decoded.next_offset) == ([7], 8)


def test_properties_count_for_what_they_take_and_not_for_what_they_are_sent_as() -> None:
    pairs = {f"{number:x}": "x" for number in range(5000)}
    decoded = decode_some(record(properties=pairs) * 100, "b")
    assert len(decoded.messages) == PULL_COST_BYTES_MAX // (1024 + 5 + 256 * 5000)


def test_messages_before_one_that_is_none_are_decoded_and_it_is_told_what_is_wrong() -> None:
    data = record(queue_offset=3) + record(queue_offset=4) + record(queue_offset=5)[:-1]
    decoded = decode_some(data, "b")
    assert [message.queue_offset for message in decoded.messages] == [3, 4]
    assert decoded.next_offset == 5
    assert "position" in str(decoded.broken)
    nothing = decode_some(b"rubbish", "b")
    assert (nothing.messages, nothing.next_offset) == ([], None)
    assert nothing.broken is not None


def test_one_after_the_other_each_message_may_unpack_to_as_much_as_it_may() -> None:
    packed = record(pack_body(bytes(30 * 1024 * 1024)), sys_flag=SysFlag.COMPRESSED)
    assert [message.body_error for message in each_message(packed * 3, "b")] == [None] * 3


@pytest.mark.parametrize("kept", [1, 8, 50, 90, 95, 101])
def test_a_record_that_is_cut_off_is_an_error(kept: int) -> None:
    with pytest.raises(MalformedRecord, match="at position"):
        decode_messages(record()[:kept], "b")


@pytest.mark.parametrize(
    ("at", "value"),
    [
        (0, (50).to_bytes(4, "big")),
        (0, (2**31).to_bytes(4, "big")),
        (4, bytes(4)),
        (84, (2**32 - 1).to_bytes(4, "big")),
        (84, (4).to_bytes(4, "big")),
        (93, b"\xff"),
        (36, (0x30).to_bytes(4, "big")),
    ],
    ids=["small", "huge", "magic", "body", "shorter-body", "topic-length", "hosts"],
)
def test_lengths_that_do_not_agree_are_an_error(at: int, value: bytes) -> None:
    data = bytearray(record())
    data[at : at + len(value)] = value
    with pytest.raises(MalformedRecord, match="position 0"):
        decode_messages(bytes(data), "b")


@given(st.data())
def test_any_bytes_are_messages_or_the_one_error(data: st.DataObject) -> None:
    """Goal: nothing but `MalformedRecord` escapes.  Method: damage a few bytes of sound records."""
    damaged = bytearray(record(properties={"TAGS": "a"}) + record(pack_body(b"x" * 50), sys_flag=1))
    places = st.integers(0, len(damaged) - 1)
    for at, value in data.draw(st.dictionaries(places, st.integers(0, 255), max_size=6)).items():
        damaged[at] = value
    try:
        decode_messages(bytes(damaged), "b")
    except MalformedRecord:
        pass


def test_properties_in_another_encoding_do_not_hold_up_the_queue() -> None:
    """C++ clients send what they have, GBK for example; Java replaces what it cannot read, and so do we."""
    data = record(properties={"city": "XXXX"}).replace(b"XXXX", "北京".encode("gbk"))
    (message,) = decode_messages(data, "b")
    assert message.body == b"hello"
    assert "\ufffd" in message.properties["city"]
